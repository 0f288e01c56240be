//! What a run will do: targets, job, classes and the order of its trials, settled before anything is started.

use std::path::PathBuf;
use std::time::Duration;

use crate::jobs::draw::Rng;
use crate::jobs::keyed::questions::points_of;
use crate::jobs::{JobKind, Part};
use crate::stores::{Adapter, Login, Place};
use crate::words::load::At;
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
        shuffle(&mut order, self.seed.wrapping_add(u64::from(block).wrapping_mul(STEP)));
        order
    }

    /// A trial's points in their order: random, and the same for all targets of a block.
    pub fn points(&self, block: u32) -> Vec<At> {
        if self.job.load.is_none() {
            return vec![At::closed(self.clients, 0)];
        }
        let mut points = points_of(&self.job);
        shuffle(&mut points, !self.seed.wrapping_add(u64::from(block).wrapping_mul(STEP)));
        points
    }

    /// Units that a trial measures, of so many in a job's input.
    pub fn units_of_a_trial(&self, units: u64) -> u64 {
        if self.job.load.is_none() {
            return units;
        }
        let parts = (self.kind.open)(&self.job).parts().iter().filter(|&&part| part != Part::Load).count() as u64;
        points_of(&self.job).iter().map(|at| at.requests).sum::<u64>() * parts
    }
}

/// Seeds of neighbouring blocks lie so far apart: splitmix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Fisher and Yates' shuffle, from the end.
fn shuffle<T>(list: &mut [T], seed: u64) {
    let mut random = Rng::new(seed);
    for last in (1..list.len()).rev() {
        let drawn = (u128::from(random.draw()) * (last as u128 + 1)) >> 64;
        list.swap(last, drawn as usize);
    }
}

/// Now, in UTC, as it stands in file names: `20261121T020000Z`.
pub fn utc_now() -> String {
    jiff::Timestamp::now().strftime("%Y%m%dT%H%M%SZ").to_string()
}
