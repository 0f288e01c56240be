//! The record of a trial before anything has run.

use super::Bench;
use crate::harness::DEBUG_BUILD;
use crate::harness::machine;
use crate::harness::plan::Chosen;
use crate::model::levers::LeverTrial;
use crate::model::logins;
use crate::model::noise::Noise;
use crate::model::record::{Machine, Memory, Outcome, Record, Run, Verdict};
use crate::model::trial::{Data, METHOD};

impl Bench<'_> {
    /// The record of what is not run.
    pub fn left_out(&self, chosen: &Chosen, outcome: Outcome) -> Record {
        Record { outcome, ..self.blank(chosen, self.plan.first_block(), 0) }
    }

    /// What is known before anything has run.
    pub(super) fn blank(&self, chosen: &Chosen, block: u32, position: u32) -> Record {
        let (plan, data, mut job) = (self.plan, self.data_for(chosen, block), self.job_for(chosen, block));
        if let Data::Program { command, .. } = &mut job.data {
            *command = logins::hidden(command, &self.secrets());
        }
        Record {
            method: METHOD,
            kvfair: env!("CARGO_PKG_VERSION").to_string(),
            debug_build: DEBUG_BUILD,
            run: Run {
                began: plan.began.clone(),
                command: plan.command.iter().map(|word| logins::hidden(word, &self.secrets())).collect(),
                seeds: plan.seeds.clone(),
                blocks: plan.blocks.most,
                plus_minus: plan.blocks.plus_minus,
                answers_only: plan.answers_only,
                accepts_noise: plan.accepts_noise,
                needs_s: plan.needs_s,
                pinned: plan.pinned.clone(),
                sizes: plan.sizes.clone(),
                orders: plan.orders.clone(),
                rtts_us: plan.rtts_us.clone(),
                levers: plan.levers.as_ref().map(|(run, _)| run.clone()),
                closed_per_s: None,
            },
            block,
            position,
            aa_control: false,
            discarded: false,
            ahead: false,
            levers: plan.levers.as_ref().map(|(_, part)| LeverTrial { part: *part, changed: chosen.changed.clone() }),
            target: chosen.target.clone(),
            durability: plan.durability,
            tried: None,
            is_under_way: false,
            is_warm: false,
            still_cached_share: None,
            configuration: plan.configuration,
            keeps: plan.keeps(chosen).unwrap_or_default().to_string(),
            job,
            clients: plan.clients_of(chosen),
            network: plan.network_of(chosen),
            agents: Vec::new(),
            agents_apart_ms: Vec::new(),
            stream: data.summary.stream.clone(),
            store: None,
            room: None,
            outcome: Outcome::Finished,
            verdict: Verdict::NotReached,
            phases: Vec::new(),
            replicas: Vec::new(),
            memory: Memory::default(),
            counters: Default::default(),
            store_stats: Default::default(),
            bytes_on_disk: None,
            machine: Machine { preflight: self.preflight.clone(), ..machine::read(self.scratch) },
            noise: Noise::default(),
        }
    }
}
