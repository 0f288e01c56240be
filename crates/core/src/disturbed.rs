//! Whether what a phase shows is the store's: of one that the machine disturbed nothing is said.
//!
//! Two rules. The gates look at no result. A missed rate or a broken promise is the store's, unless what the machine
//! took from the store or from the load generator accounts for at least half of what was missed.

use std::fmt;

use super::noise::{GRAIN_S, Gate, Noise, Reason, Sign, Yardstick};
use super::promise::Promise;
use super::record::{Open, Phase, Record};

/// What disturbed a phase.
#[derive(Clone, Debug, PartialEq)]
pub struct Disturbed {
    /// It explains what was missed; otherwise the gates alone discard the phase.
    pub stalled: bool,
    pub reasons: Vec<Reason>,
}

impl fmt::Display for Disturbed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reasons = self.reasons.iter().map(Reason::to_string).collect::<Vec<_>>().join("; ");
        let stalled = if self.stalled { "the machine stalled: " } else { "" };
        write!(out, "{stalled}{reasons}")
    }
}

/// So much of what was missed must be the machine's.
const EXPLAINED: f64 = 0.5;
/// A load generator that uses more of its threads' time is late by itself; and where the store and the generator use
/// more of all processors, they may keep each other waiting.
const GENERATOR_BUSY: f64 = 0.9;
const OURS_BUSY: f64 = 0.8;

/// What disturbed this phase of a trial: by the gates, or by a stall that explains why its rate was missed. None in
/// records from before phases had noise of their own, and where noise is accepted.
pub fn disturbed(record: &Record, phase: &Phase) -> Option<Disturbed> {
    let noise = judged(record, phase)?;
    let explained = || explains_rate(noise, phase).map(|reasons| Disturbed { stalled: true, reasons });
    discarded(noise, Yardstick::default()).or_else(explained)
}

/// The same of a whole trial, with what it was held against: the first of its phases that was disturbed, the gates of
/// the trial, and where a promise was broken also what explains that.
pub fn trial(record: &Record, yardstick: Yardstick, promise: Option<Promise>) -> Option<Disturbed> {
    let of_trial = Noise {
        processor_probe_ns: record.noise.processor_probe_ns,
        disk_sync_ns: record.noise.disk_sync_ns,
        ..Noise::default()
    };
    let points = || record.measured().filter_map(|phase| Some((phase, judged(record, phase)?)));
    let whole = if points().next().is_some() { of_trial } else { record.noise };
    let by_promise = || {
        let mut broken = points().filter_map(|(phase, noise)| explains_promise(noise, phase, promise?));
        broken.next().map(|reasons| Disturbed { stalled: true, reasons })
    };
    let by_phase = record.measured().find_map(|phase| disturbed(record, phase));
    let by_trial = discarded(&whole, yardstick).filter(|_| !record.run.accepts_noise);
    both(by_phase, by_trial).or_else(by_promise)
}

/// All reasons: a slow processor must not hide the programs that made it slow.
fn both(by_phase: Option<Disturbed>, by_trial: Option<Disturbed>) -> Option<Disturbed> {
    match (by_phase, by_trial) {
        (Some(phase), Some(trial)) => Some(Disturbed { reasons: [phase.reasons, trial.reasons].concat(), ..phase }),
        (by_phase, by_trial) => by_phase.or(by_trial),
    }
}

fn judged<'a>(record: &Record, phase: &'a Phase) -> Option<&'a Noise> {
    phase.noise.as_ref().filter(|_| !record.run.accepts_noise)
}

fn discarded(noise: &Noise, yardstick: Yardstick) -> Option<Disturbed> {
    match noise.gate(yardstick) {
        Gate::Discard(reasons) => Some(Disturbed { stalled: false, reasons }),
        _ => None,
    }
}

/// Why a rate was missed, if that was the machine's doing.
fn explains_rate(noise: &Noise, phase: &Phase) -> Option<Vec<Reason>> {
    let open = phase.open.as_ref().filter(|open| !open.is_kept(phase.took_s))?;
    // Where it was given up not all that was due was asked: what was answered would have come in so long.
    let due_s = open.late.map_or(open.due_s, |_| phase.metrics.units as f64 / open.rate.max(1) as f64);
    let missed_s = phase.took_s - due_s;
    let late_s = || Some(open.lag_ns.times().ok()?.max_ns() as f64 / 1e9).filter(|_| lag_is_evidence(noise, phase));
    explains(missed_s, lost(noise), late_s, phase)
}

/// Why a promise was broken, if that was the machine's doing: the time of the late requests, were they evenly due.
fn explains_promise(noise: &Noise, phase: &Phase, promise: Promise) -> Option<Vec<Reason>> {
    let open = phase.open.as_ref()?;
    let response = open.response_ns.times().ok()?;
    let beyond = |late: u64| late as f64 / response.count().max(1) as f64;
    let late = beyond(response.from(promise.limit_ns + 1));
    if late <= 1.0 - promise.quantile {
        return None;
    }
    let sent_late = || Some(beyond(open.lag_ns.times().ok()?.from(promise.limit_ns + 1)) * phase.took_s);
    explains(late * phase.took_s, lost(noise), || sent_late().filter(|_| lag_is_evidence(noise, phase)), phase)
}

fn explains(
    missed_s: f64,
    lost: Vec<(Reason, f64)>,
    late_s: impl Fn() -> Option<f64>,
    phase: &Phase,
) -> Option<Vec<Reason>> {
    let is_much = |part_s: f64| part_s >= GRAIN_S && part_s >= missed_s * EXPLAINED;
    if is_much(lost.iter().map(|(_, lost_s)| lost_s).sum()) {
        return Some(lost.into_iter().map(|(reason, _)| reason).collect());
    }
    let late_s = late_s().filter(|late_s| is_much(*late_s))?;
    Some(vec![Reason { sign: Sign::Lag, share: late_s / phase.took_s.max(f64::MIN_POSITIVE) }])
}

/// What kept the store or the load generator from working, each with its seconds: stalls, and what the gates doubt.
/// Where it is known how long threads waited, other programs count by that alone.
fn lost(noise: &Noise) -> Vec<(Reason, f64)> {
    let doubted = match noise.gate(Yardstick::default()) {
        Gate::Warn(reasons) | Gate::Discard(reasons) => reasons,
        Gate::Ok | Gate::Note(_) => Vec::new(),
    };
    let stall = noise.stalled_share.filter(|share| *share > 0.0).map(|share| Reason { sign: Sign::Stall, share });
    let counts = |sign: Sign| match sign {
        Sign::Foreign | Sign::Unclaimed => noise.client_delay_share.is_none(),
        Sign::Steal | Sign::ServerDelay | Sign::ClientDelay => true,
        Sign::Stall | Sign::Lag | Sign::ProcessorProbe | Sign::Disk => false,
    };
    let all = doubted.into_iter().filter(|reason| counts(reason.sign)).chain(stall);
    all.map(|reason| (reason, reason.share * noise.seconds_of_a_share(reason.sign))).collect()
}

/// Over connections that may have several requests under way, each is sent when it is due: a late one is the load
/// generator's, unless that had too much to do, waited for a lost connection, or was kept from working by the store.
fn lag_is_evidence(noise: &Noise, phase: &Phase) -> bool {
    let Some(server) = phase.server else { return false };
    let pipelined = phase.open.as_ref().is_some_and(|open: &Open| open.pipelined);
    let generator_s = phase.took_s * f64::from(phase.threads.max(1));
    let all_s = phase.took_s * f64::from(noise.cpus.max(1));
    pipelined
        && phase.metrics.reconnects == 0
        && phase.client.cpu_s() < GENERATOR_BUSY * generator_s
        && phase.client.cpu_s() + server.cpu_s() < OURS_BUSY * all_s
}

#[cfg(test)]
mod tests {
    use super::super::hist::Times;
    use super::super::metrics::Metrics;
    use super::super::record::Usage;
    use super::*;

    const QUIET: Noise = Noise {
        seen_s: 10.0,
        cpus: 2,
        foreign_share: Some(0.01),
        kernel_share: Some(0.01),
        unclaimed_share: Some(0.01),
        steal_share: Some(0.0),
        server_delay_share: Some(0.01),
        client_delay_share: Some(0.01),
        stalled_share: Some(0.0),
        processor_probe_ns: None,
        disk_sync_ns: None,
    };

    /// Ten seconds at 1,000 a second, of which so many requests were answered late, and so many sent late: 50 ms.
    fn phase(took_s: f64, late: u64, sent_late: u64) -> Phase {
        let of = |slow: u64| {
            let mut times = Times::default();
            times.record_many(200_000, 10_000 - slow);
            times.record_many(50_000_000, slow);
            times.into()
        };
        let open = Open {
            rate: 1_000,
            pipelined: true,
            due_s: 10.0,
            response_ns: of(late),
            lag_ns: of(sent_late),
            ..Open::default()
        };
        let usage = Usage { user_s: 2.0, ..Usage::default() };
        Phase {
            took_s,
            metrics: Metrics { units: 10_000, ..Metrics::default() },
            threads: 1,
            open: Some(open),
            client: usage,
            server: Some(usage),
            ..Phase::default()
        }
    }

    fn signs(reasons: Option<Vec<Reason>>) -> Vec<Sign> {
        reasons.into_iter().flatten().map(|reason| reason.sign).collect()
    }

    #[test]
    fn a_missed_rate_is_the_stores_unless_the_machine_took_half_of_the_time() {
        let explained = |noise: Noise, took_s: f64| signs(explains_rate(&noise, &phase(took_s, 0, 0)));
        assert_eq!(explained(QUIET, 11.0), [], "one second late, and the machine took 0.2 s of it");
        let stalled = |share: f64| Noise { stalled_share: Some(share), ..QUIET };
        assert_eq!(explained(stalled(0.06), 11.0), [Sign::Stall]);
        assert_eq!(explained(stalled(0.06), 14.0), [], "it would have been late all the same");
        assert_eq!(explained(stalled(0.06), 10.0), [], "it was kept");
        let stolen = Noise { steal_share: Some(0.015), server_delay_share: Some(0.05), ..QUIET };
        assert_eq!(explained(stolen, 11.0), [Sign::Steal, Sign::ServerDelay], "0.3 s and 0.5 s");
        let foreign = Noise { foreign_share: Some(0.04), ..QUIET };
        assert_eq!(explained(foreign, 11.0), [], "they kept no thread waiting");
        let unknown = Noise { client_delay_share: None, server_delay_share: None, ..foreign };
        assert_eq!(explained(unknown, 11.0), [Sign::Foreign], "0.8 s, and nothing is known of who waited");
    }

    #[test]
    fn reasons_of_a_phase_and_of_its_trial_are_all_told() {
        let of = |sign, share| Some(Disturbed { stalled: false, reasons: vec![Reason { sign, share }] });
        let told = both(of(Sign::Foreign, 0.9), of(Sign::ProcessorProbe, 0.15)).expect("reasons").to_string();
        let slower = "the processor was 15 % slower than at its best in this run";
        assert_eq!(told, format!("other programs used 90 % of the CPU; {slower}"));
        assert_eq!(both(None, of(Sign::ProcessorProbe, 0.15)).expect("a reason").to_string(), slower);
        assert_eq!(both(None, None), None);
    }

    #[test]
    fn what_was_given_up_is_late_by_what_was_answered() {
        let mut given_up = phase(2.0, 0, 0);
        given_up.open.as_mut().unwrap().late = Some(2_000);
        given_up.metrics.units = 1_000;
        let noise = |stalled_share| Noise { seen_s: 2.0, stalled_share: Some(stalled_share), ..QUIET };
        assert_eq!(signs(explains_rate(&noise(0.09), &given_up)), [], "a second for a second's requests, and 0.18 s");
        given_up.metrics.units = 1_700;
        assert_eq!(signs(explains_rate(&noise(0.09), &given_up)), [Sign::Stall], "0.3 s");
    }

    #[test]
    fn a_broken_promise_is_the_stores_unless_the_machine_explains_half_of_the_late_requests() {
        let promise: Promise = "p99:10ms".parse().unwrap();
        let explained = |noise: Noise, phase: Phase| signs(explains_promise(&noise, &phase, promise));
        assert_eq!(explained(QUIET, phase(10.0, 300, 0)), [], "3 % were late, and the machine was quiet");
        assert_eq!(explained(QUIET, phase(10.0, 90, 90)), [], "the promise was kept");
        assert_eq!(explained(QUIET, phase(10.0, 300, 200)), [Sign::Lag]);
        assert_eq!(explained(QUIET, phase(10.0, 300, 100)), [], "most were sent in time");
        let waited = Noise { server_delay_share: Some(0.03), ..QUIET };
        assert_eq!(explained(waited, phase(10.0, 300, 0)), [Sign::ServerDelay]);
        assert_eq!(explained(waited, phase(10.0, 900, 0)), [], "9 % were late");
    }

    #[test]
    fn a_generator_is_late_by_itself_where_it_or_the_store_leaves_no_processor_idle() {
        let late = || phase(10.0, 300, 300);
        let busy = |client_s: f64, server_s: Option<f64>| {
            let used = |user_s| Usage { user_s, ..Usage::default() };
            lag_is_evidence(&QUIET, &Phase { client: used(client_s), server: server_s.map(used), ..late() })
        };
        assert!(busy(2.0, Some(9.0)));
        assert!(!busy(9.5, Some(2.0)), "the generator had too much to do");
        assert!(!busy(8.0, Some(9.0)), "the server may have kept it waiting");
        assert!(!busy(2.0, None), "nothing is known of the server");
        let metrics = Metrics { reconnects: 1, ..late().metrics };
        assert!(!lag_is_evidence(&QUIET, &Phase { metrics, ..late() }), "it waited for a connection");
        let open = late().open.map(|open| Open { pipelined: false, ..open });
        assert!(
            !lag_is_evidence(&QUIET, &Phase { open, ..late() }),
            "a client with a thread of its own waits for answers"
        );
    }
}
