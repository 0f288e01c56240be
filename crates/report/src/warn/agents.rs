//! The rule about agents: those that began apart from the others, had no time left, or were not alone on their machine
//! are named.

use std::collections::BTreeMap;

use super::{Warning, warning};
use crate::run_report::RunReport;
use kvfair_core::agents::{AgentPhase, SATURATED_SHARE, SPREAD_WARN_S, named, spread_s};
use kvfair_core::noise::{Gate, Yardstick, percent};
use kvfair_core::record::Record;
use kvfair_core::units;

pub(super) fn agents(report: &RunReport<'_>) -> Vec<Warning> {
    of_records(report.records)
}

fn of_records(records: &[Record]) -> Vec<Warning> {
    let counted = || records.iter().filter(|record| record.block > 0 && !record.discarded);
    let phases = || counted().flat_map(|record| record.measured().map(move |phase| (record, phase)));
    let apart = phases().map(|(record, phase)| (record, phase.agents.as_slice()));
    let apart = apart.max_by(|one, other| spread_s(one.1).total_cmp(&spread_s(other.1)));
    let apart = apart.filter(|(_, agents)| spread_s(agents) > SPREAD_WARN_S).and_then(began_apart);
    let (mut busy, mut noisy) = (BTreeMap::new(), BTreeMap::new());
    for (record, agent) in phases().flat_map(|(record, phase)| phase.agents.iter().map(move |agent| (record, agent))) {
        if agent.is_saturated() {
            let share: &mut f64 = busy.entry(name(record, agent)).or_default();
            *share = share.max(agent.busy_share());
        }
        if let Some(why) = disturbed(agent) {
            noisy.insert(name(record, agent), why);
        }
    }
    let mut found = Vec::from_iter(apart);
    if !busy.is_empty() {
        let each = busy.iter().map(|(name, share)| format!("{name} {}", percent(*share)));
        let evidence = format!(
            "threads worked for more than {} of the time, and may be the limit: {}",
            percent(SATURATED_SHARE),
            each.collect::<Vec<_>>().join(", ")
        );
        found.push(warning("agents", true, evidence, "more agents, each on a machine of its own"));
    }
    if !noisy.is_empty() {
        let each: Vec<String> = noisy.into_iter().map(|(name, why)| format!("{name}: {why}")).collect();
        found.push(warning("agents", false, each.join("; "), "stop other programs there"));
    }
    found
}

fn name(record: &Record, agent: &AgentPhase) -> String {
    let host = record.agents.iter().find(|known| known.rank == agent.rank).map_or("", |known| known.host.as_str());
    named(agent.rank, host)
}

fn began_apart((record, agents): (&Record, &[AgentPhase])) -> Option<Warning> {
    let last = agents.iter().max_by(|one, other| one.began_us.total_cmp(&other.began_us))?;
    let (apart_ms, last) = (spread_s(agents) * 1e3, name(record, last));
    let took_s = agents.iter().map(|agent| agent.took_s).fold(0.0, f64::max);
    let took = units::seconds(took_s);
    let evidence = format!("they began up to {apart_ms:.1} ms apart in a part of {took} s, {last} last");
    Some(warning("agents", true, evidence, "fewer agents a machine, or machines that do nothing else"))
}

fn disturbed(agent: &AgentPhase) -> Option<String> {
    match agent.noise?.gate(Yardstick::default()) {
        Gate::Warn(reasons) | Gate::Discard(reasons) => {
            Some(reasons.iter().map(ToString::to_string).collect::<Vec<_>>().join("; "))
        }
        Gate::Ok | Gate::Note(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histograms::tests::record;
    use kvfair_core::agents::Agent;
    use kvfair_core::noise::Noise;
    use kvfair_core::part::Part;
    use kvfair_core::record::Phase;

    fn said(change: impl Fn(&mut AgentPhase)) -> Vec<(String, bool)> {
        let agent =
            |rank| AgentPhase { rank, threads: 2, took_s: 1.0, cpu_s: 0.5, bound_us: 50.0, ..AgentPhase::default() };
        let mut agents: Vec<AgentPhase> = (0..3).map(agent).collect();
        change(&mut agents[2]);
        let mut record = record("a", "finished", &[]);
        let host = |rank| Agent { rank, host: format!("host{rank}"), ..Agent::default() };
        record.agents = (0..3).map(host).collect();
        record.phases = vec![Phase { part: Part::Run, took_s: 1.0, agents, ..Phase::default() }];
        let told = |mut record: Record| {
            record.discarded = true;
            of_records(&[record])
        };
        assert!(told(record.clone()).is_empty(), "what does not count is not told of");
        of_records(&[record]).into_iter().map(|warning| (warning.evidence, warning.weighty)).collect()
    }

    #[test]
    fn an_agent_that_is_no_good_is_named() {
        assert!(said(|_| ()).is_empty());
        assert!(said(|agent| agent.began_us = 9_900.0).is_empty());
        let apart = said(|agent| agent.began_us = 12_000.0);
        assert_eq!(
            apart,
            [("they began up to 12.1 ms apart in a part of 1.00 s, agent 2 (host2) last".to_string(), true)]
        );
        let busy = said(|agent| agent.cpu_s = 1.9);
        let words = "threads worked for more than 90 % of the time, and may be the limit: agent 2 (host2) 95 %";
        assert_eq!(busy, [(words.to_string(), true)]);
        let noise = Noise { seen_s: 1.0, cpus: 2, foreign_share: Some(0.3), ..Noise::default() };
        let noisy = said(|agent| agent.noise = Some(noise));
        assert!(matches!(&noisy[..], [(words, false)] if words.starts_with("agent 2 (host2): ")), "{noisy:?}");
    }
}
