//! What a run will do: targets, job, classes and the order of its trials, settled before anything is started.

use std::path::PathBuf;
use std::time::Duration;

use crate::jobs::JobKind;
use crate::jobs::draw::Rng;
use crate::stores::{Adapter, Login, Place};
use crate::words::trial::{Configuration, Durability, JobSettings, Target, Verify, Via};

/// A target with all that is needed to reach it.
#[derive(Clone)]
pub struct Chosen {
    pub target: Target,
    pub adapter: &'static Adapter,
    /// Where it is, if it is somebody else's; we make a place for our own.
    pub place: Option<Place>,
    pub login: Login,
    pub via: Via,
}

/// Everything that was asked for, with nothing left to decide.
#[derive(Clone)]
pub struct Plan {
    pub chosen: Vec<Chosen>,
    pub kind: &'static JobKind,
    pub job: JobSettings,
    pub clients: u32,
    pub durability: Durability,
    pub configuration: Configuration,
    pub verify: Verify,
    /// Of one trial, from its opening to the end of settling.
    pub timeout: Duration,
    pub blocks: u32,
    /// Of the order of trials.
    pub seed: u64,
    pub answers_only: bool,
    /// Data stays in here, a directory for each target.
    pub keep: Option<PathBuf>,
    /// When the run began, in UTC.
    pub began: String,
}

impl Plan {
    /// The job as this target is asked.
    pub fn job_of(&self, chosen: &Chosen) -> JobSettings {
        JobSettings { via: chosen.via, ..self.job.clone() }
    }

    /// How a target's store keeps the class that is asked for, or why it cannot. As its makers ship it, none is asked
    /// for.
    pub fn keeps(&self, chosen: &Chosen) -> Result<&'static str, &'static str> {
        match self.configuration {
            Configuration::Matched => (chosen.adapter.keeps)(self.durability),
            Configuration::Shipped => Ok("as shipped"),
        }
    }

    /// The order of a block's trials, as places in `chosen`: random, and the same for the same seed and block.
    pub fn order(&self, block: u32) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.chosen.len()).collect();
        let mut random = Rng::new(self.seed.wrapping_add(u64::from(block).wrapping_mul(0x9e37_79b9_7f4a_7c15)));
        // Fisher and Yates' shuffle, from the end.
        for last in (1..order.len()).rev() {
            let drawn = (u128::from(random.draw()) * (last as u128 + 1)) >> 64;
            order.swap(last, drawn as usize);
        }
        order
    }
}

/// Now, in UTC, as it stands in file names: `20261121T020000Z`.
pub fn utc_now() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}
