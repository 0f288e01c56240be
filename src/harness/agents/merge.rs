//! The sum of what several processes saw at the same time, as one process would have seen it: counts are added,
//! histograms bucket by bucket, so that nothing is lost.

use super::clocks::Offset;
use crate::harness::task::{PartSeen, ShareEnd};
use crate::model::agents::AgentPhase;
use crate::model::load::At;
use crate::model::record::{Open, Phase, Usage};

/// What all agents saw of a part of a point, each with the offset of its clock. The phase goes from the first one's
/// begin to the last one's end.
pub fn shares(ends: Vec<(ShareEnd, Offset)>, at: At) -> Result<PartSeen, String> {
    let first_ns = ends.iter().map(|(end, offset)| offset.ours(end.began_ns)).min().unwrap_or(0);
    let mut all = PartSeen::default();
    let (mut phases, mut agents, mut took_s) = (Vec::new(), Vec::new(), 0_f64);
    for (rank, (ShareEnd { seen, began_ns }, offset)) in (0..).zip(ends) {
        let PartSeen { phase, cut_off, asked, waits } = seen;
        let began_s = (offset.ours(began_ns) - first_ns) as f64 / 1e9;
        took_s = took_s.max(began_s + phase.took_s);
        agents.push(of_agent(rank, &phase, (began_s, offset))?);
        phases.push(phase);
        all.cut_off |= cut_off;
        all.asked.extend(asked);
        all.waits.extend(waits);
    }
    all.asked.sort_unstable();
    let sum = sum(phases)?;
    let open = sum.open.map(|open| Open { rate: at.rate.unwrap_or(open.rate), ..open });
    // Threads of other machines are not ours to look at.
    all.phase = Phase { took_s, open, agents, ..sum };
    Ok(all)
}

fn of_agent(rank: u32, phase: &Phase, (began_s, offset): (f64, Offset)) -> Result<AgentPhase, String> {
    let lag_ns = phase.open.as_ref().map(|open| open.lag_ns.times()).transpose()?;
    Ok(AgentPhase {
        rank,
        clients: phase.clients,
        threads: phase.threads,
        units: phase.metrics.units,
        began_us: began_s * 1e6,
        bound_us: offset.bound_ns as f64 / 1e3,
        took_s: phase.took_s,
        cpu_s: phase.client.cpu_s(),
        lag_p99_us: lag_ns.filter(|times| times.count() > 0).map(|times| times.value_at(0.99) as f64 / 1e3),
        noise: phase.noise,
    })
}

/// What processes saw that began at the same time: the last one ended it.
pub fn sum(phases: Vec<Phase>) -> Result<Phase, String> {
    let mut all = Phase::default();
    let mut times = all.times_ns.times()?;
    for phase in phases {
        times.merge(&phase.times_ns.times()?);
        all.metrics.add(&phase.metrics);
        let seconds = all.units_by_second.len().max(phase.units_by_second.len());
        all.units_by_second.resize(seconds, 0);
        all.units_by_second.iter_mut().zip(&phase.units_by_second).for_each(|(sum, units)| *sum += units);
        let noise = match (all.noise.take(), phase.noise) {
            (Some(one), Some(other)) => Some(one.or_worse(other)),
            (one, other) => one.or(other),
        };
        all = Phase {
            part: phase.part,
            point: phase.point,
            clients: all.clients + phase.clients,
            threads: all.threads + phase.threads,
            took_s: all.took_s.max(phase.took_s),
            timed_one_in: all.timed_one_in.max(phase.timed_one_in),
            clock_ns: all.clock_ns.max(phase.clock_ns),
            client: usage(all.client, phase.client),
            open: open(all.open, phase.open)?,
            noise,
            ..all
        };
    }
    Ok(Phase { times_ns: times.into(), ..all })
}

fn usage(one: Usage, other: Usage) -> Usage {
    let bytes = |one: Option<u64>, other: Option<u64>| one.zip(other).map(|(one, other)| one + other).or(one).or(other);
    let delay = one.run_delay_s.zip(other.run_delay_s).map(|(one, other)| one + other);
    Usage {
        user_s: one.user_s + other.user_s,
        system_s: one.system_s + other.system_s,
        bytes_written: bytes(one.bytes_written, other.bytes_written),
        bytes_read: bytes(one.bytes_read, other.bytes_read),
        run_delay_s: delay.or(one.run_delay_s).or(other.run_delay_s),
    }
}

/// When neighbouring requests were sent is known within one process alone, and is left out.
fn open(one: Option<Open>, other: Option<Open>) -> Result<Option<Open>, String> {
    let (Some(one), Some(other)) = (&one, &other) else {
        let alone = one.or(other);
        return Ok(alone.map(|open| Open { sends_ns: Vec::new(), ..open }));
    };
    let added = |one: &crate::model::hist::Packed, other: &crate::model::hist::Packed| -> Result<_, String> {
        let mut times = one.times()?;
        times.merge(&other.times()?);
        Ok(times.into())
    };
    Ok(Some(Open {
        rate: one.rate + other.rate,
        arrivals: one.arrivals,
        pipelined: one.pipelined,
        response_ns: added(&one.response_ns, &other.response_ns)?,
        lag_ns: added(&one.lag_ns, &other.lag_ns)?,
        due_s: one.due_s.max(other.due_s),
        late: if one.late.or(other.late).is_some() {
            Some(one.late.unwrap_or(0) + other.late.unwrap_or(0))
        } else {
            None
        },
        sends_ns: Vec::new(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::draw::Rng;
    use crate::model::agents::AgentShare;
    use crate::model::hist::Times;
    use crate::model::metrics::Metrics;
    use crate::model::part::Part;

    #[test]
    fn processes_are_added_up_and_the_last_one_ends_the_phase() {
        let phase = |units: u64, took_s: f64, by_second: &[u64]| {
            let mut times = Times::default();
            (0..units).for_each(|unit| times.record(100 + unit));
            Phase {
                part: Part::Run,
                clients: 1,
                threads: 1,
                took_s,
                metrics: Metrics { units, ops: 2 * units, ..Metrics::default() },
                timed_one_in: 1,
                times_ns: times.into(),
                units_by_second: by_second.to_vec(),
                ..Phase::default()
            }
        };
        let all = sum(vec![phase(30, 1.5, &[20, 10]), phase(40, 0.5, &[40])]).expect("its times are whole");
        assert_eq!((all.part, all.clients, all.threads, all.took_s), (Part::Run, 2, 2, 1.5));
        assert_eq!((all.metrics.units, all.metrics.ops, all.units_by_second), (70, 140, vec![60, 10]));
        assert_eq!(all.times_ns.times().expect("its times").count(), 70);
    }

    /// Samples with a long tail, as those of a server.
    fn samples(count: u64) -> Vec<u64> {
        let mut random = Rng::new(7);
        (0..count).map(|_| 20_000 + libm::pow((random.draw() >> 40) as f64, 1.1) as u64).collect()
    }

    #[test]
    fn merged_percentiles_are_those_of_the_pooled_samples() {
        let samples = samples(100_003);
        let mut sorted = samples.clone();
        sorted.sort_unstable();
        for world in [3, 8] {
            let mut rest = samples.as_slice();
            let mut ends = Vec::new();
            for rank in 0..world {
                // Shares as unequal as can be: each agent has half of what is left.
                let (own, left) = rest.split_at(if rank + 1 == world { rest.len() } else { rest.len() / 2 });
                rest = left;
                let mut times = Times::default();
                own.iter().for_each(|&sample| times.record(sample));
                let open = Open { response_ns: times.clone().into(), lag_ns: times.clone().into(), ..Open::default() };
                let metrics = Metrics { units: own.len() as u64, ..Metrics::default() };
                let phase = Phase { metrics, times_ns: times.into(), open: Some(open), ..Phase::default() };
                ends.push((
                    ShareEnd { seen: PartSeen { phase, ..PartSeen::default() }, began_ns: 0 },
                    Offset::default(),
                ));
            }
            let all = shares(ends, At::closed(world, samples.len() as u64)).expect("whole").phase;
            assert_eq!(all.metrics.units, samples.len() as u64);
            let open = all.open.as_ref().expect("a rate");
            for merged in [&all.times_ns, &open.response_ns, &open.lag_ns].map(|packed| packed.times().expect("whole"))
            {
                assert_eq!(merged.count(), samples.len() as u64);
                for quantile in [0.5, 0.99, 0.999] {
                    let rank = (quantile * sorted.len() as f64).ceil() as usize;
                    let (pooled, merged) = (sorted[rank - 1], merged.value_at(quantile));
                    // Three digits are kept.
                    assert!(
                        merged.abs_diff(pooled) as f64 <= pooled as f64 / 1_000.0,
                        "{quantile}: {merged}, {pooled}"
                    );
                }
            }
        }
    }

    #[test]
    fn clocks_are_taken_off_and_every_client_is_there_once() {
        let end = |rank: u32, began_ns, took_s| {
            let asked = AgentShare { rank, world: 3 }.of(10).map(|client| (client as u32, 100 + client)).collect();
            let phase = Phase { took_s, clients: 1, threads: 1, ..Phase::default() };
            ShareEnd { seen: PartSeen { phase, asked, ..PartSeen::default() }, began_ns }
        };
        let offset = |ns| Offset { ns, bound_ns: 3_000, seen_ns: 0 };
        // By our clock they begin at 5 ms, 4 ms and 6 ms.
        let ends = vec![
            (end(0, 5_000_000, 1.0), offset(0)),
            (end(1, 1_004_000_000, 1.0), offset(1_000_000_000)),
            (end(2, 1_000_000, 1.0), offset(-5_000_000)),
        ];
        let all = shares(ends, At::closed(10, 1)).expect("whole");
        let began: Vec<f64> = all.phase.agents.iter().map(|agent| agent.began_us.round()).collect();
        assert_eq!((began, all.phase.agents[0].bound_us), (vec![1_000.0, 0.0, 2_000.0], 3.0));
        assert!((all.phase.took_s - 1.002).abs() < 1e-9, "{}", all.phase.took_s);
        assert_eq!(all.asked, (0..10).map(|client| (client, 100 + u64::from(client))).collect::<Vec<_>>());
    }

    #[test]
    fn a_rate_that_one_gave_up_was_given_up() {
        let of = |late| Some(Open { rate: 10, due_s: 2.0, late, sends_ns: vec![1, 2], ..Open::default() });
        let added = |one, other| open(of(one), of(other)).expect("whole").expect("a rate");
        assert_eq!(
            (added(None, None).late, added(Some(4), None).late, added(Some(4), Some(3)).late),
            (None, Some(4), Some(7))
        );
        assert_eq!((added(None, None).rate, added(None, None).sends_ns.len()), (20, 0));
        assert_eq!(open(None, of(None)).expect("whole").expect("one").sends_ns.len(), 0);
    }
}
