//! Load from several processes, on this machine or on others (`--agents`): which share is whose, who they are, and what
//! each of them saw.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::noise::Noise;

/// Agents that start further apart are warned of.
pub const SPREAD_WARN_S: f64 = 0.010;
/// Beyond this their trial is refused: the agents did not work at the same time. It is no share of the time that the
/// part took: a fast store's trials would then be refused more often than a slow one's. It is 1 % of the ten seconds
/// for which a rate is kept.
pub const SPREAD_MAX_S: f64 = 0.100;
/// So often a trial is tried whose agents begin too far apart: on a busy machine that is chance.
pub const ATTEMPTS_TOGETHER: usize = 3;
/// An agent whose threads worked for more of the time may have been the limit itself.
pub const SATURATED_SHARE: f64 = 0.90;

/// How an agent is started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentCommand {
    /// What messages call its machine.
    pub host: String,
    /// For `sh -c`: it connects its standard input and output to those of `kvfair agent`.
    pub line: String,
}

/// The agents of a run.
#[derive(Clone, Debug, Default)]
pub struct AgentPlan {
    /// Nobody where trials drive their clients themselves.
    pub commands: Vec<AgentCommand>,
    /// A trial whose agents begin too far apart does not count. A pilot is too short for that.
    pub judges_start: bool,
}

/// Which part of the load is an agent's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentShare {
    /// Counted from 0.
    pub rank: u32,
    /// How many agents there are.
    pub world: u32,
}

impl AgentShare {
    /// This rank's part of `all` things that are numbered from 0 (clients, messages): consecutive numbers, none of
    /// which another rank has. Ranks differ by one at most.
    pub fn of(self, all: u64) -> Range<u64> {
        let from = |rank: u32| (u128::from(all) * u128::from(rank) / u128::from(self.world.max(1))) as u64;
        from(self.rank)..from(self.rank + 1)
    }
}

/// An agent of a trial, as its record has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Agent {
    pub rank: u32,
    /// As the file of hosts has it; "localhost" without one.
    pub host: String,
    /// Agents of one machine have one number; 0 is the machine of the head.
    pub machine: u32,
    pub processors: u32,
    /// The agent's clock minus the head's, in microseconds, when the trial began.
    pub clock_offset_us: f64,
    /// The offset is right to so much either way: half of the shortest round trip.
    pub clock_bound_us: f64,
}

impl Agent {
    /// "agent 2 (b.example)", as messages call it.
    pub fn name(&self) -> String {
        named(self.rank, &self.host)
    }
}

pub fn named(rank: u32, host: &str) -> String {
    format!("agent {rank} ({host})")
}

/// What one agent saw of a phase.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AgentPhase {
    pub rank: u32,
    pub clients: u32,
    pub threads: u32,
    pub units: u64,
    /// How long after the first agent it began, in microseconds, by the head's clock.
    pub began_us: f64,
    /// That is right to so much either way.
    pub bound_us: f64,
    pub took_s: f64,
    pub cpu_s: f64,
    /// How late the agent sent what was due, at the 99th percentile; of requests at a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_p99_us: Option<f64>,
    /// What else went on on its machine: of one agent a machine, and of none on the head's, which looks itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<Noise>,
}

impl AgentPhase {
    /// The part of the time in which its threads worked.
    pub fn busy_share(&self) -> f64 {
        self.cpu_s / (self.took_s * f64::from(self.threads)).max(1e-9)
    }

    pub fn is_saturated(&self) -> bool {
        self.busy_share() > SATURATED_SHARE
    }
}

/// How far apart agents began at the most, in seconds: what was seen, with what the clocks leave open.
pub fn spread_s(agents: &[AgentPhase]) -> f64 {
    let last = agents.iter().map(|agent| agent.began_us).fold(0.0, f64::max);
    let open = agents.iter().map(|agent| agent.bound_us).fold(0.0, f64::max);
    (last + if agents.len() > 1 { open } else { 0.0 }) / 1e6
}

/// How far apart agents began, in seconds, where that is too far for their trial to count.
pub fn too_far_apart_s(agents: &[AgentPhase]) -> Option<f64> {
    Some(spread_s(agents)).filter(|apart_s| *apart_s > SPREAD_MAX_S)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_all_there_is_and_differ_by_one_at_most() {
        for (all, world) in [(10, 3), (13, 8), (8, 8), (1, 1), (u64::MAX, 7), (3, 8), (0, 2)] {
            let shares: Vec<Range<u64>> = (0..world).map(|rank| AgentShare { rank, world }.of(all)).collect();
            assert_eq!((shares[0].start, shares[shares.len() - 1].end), (0, all));
            assert!(shares.windows(2).all(|two| two[0].end == two[1].start), "{shares:?}");
            let sizes = || shares.iter().map(|share| share.end - share.start);
            assert!(sizes().max().unwrap() - sizes().min().unwrap() <= 1, "{shares:?}");
        }
    }

    #[test]
    fn whether_a_trial_counts_depends_on_no_time_that_it_took() {
        for took_s in [0.01, 0.4, 4.0, 4_000.0] {
            let agent = |began_us| AgentPhase { began_us, took_s, ..AgentPhase::default() };
            assert_eq!(too_far_apart_s(&[agent(0.0), agent(99_000.0)]), None, "{took_s} s");
            assert_eq!(too_far_apart_s(&[agent(0.0), agent(101_000.0)]), Some(0.101), "{took_s} s");
        }
    }

    #[test]
    fn the_spread_is_the_last_start_and_what_the_clocks_leave_open() {
        let agent = |began_us, bound_us| AgentPhase { began_us, bound_us, ..AgentPhase::default() };
        assert_eq!(spread_s(&[agent(0.0, 5.0)]), 0.0, "one agent starts with itself");
        assert_eq!(spread_s(&[agent(0.0, 5.0), agent(2_000.0, 50.0)]), 0.002_05);
    }
}
