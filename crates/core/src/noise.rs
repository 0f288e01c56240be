//! What else went on while a trial ran, and what follows from it: by rules that never look at the trial's result.
//!
//! Shares are of the wall time of all processors for what others took, and of wall time for who waited. What a machine
//! does not tell is `None`, and no rule speaks of it.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};

/// What was seen beside one trial, from the first phase that is measured to the end of the final flush; or beside the
/// queries that followed, where the gates judge these more harshly.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Noise {
    /// Wall time over which it was seen; 0 where the trial did not come to its end.
    pub seen_s: f64,
    /// Processors of the machine, of whose time the shares are.
    pub cpus: u32,
    /// Programs that are neither ours nor the kernel's. Nothing is said beside a server that kvfair did not start: its
    /// own work could not be told from a stranger's.
    pub foreign_share: Option<f64>,
    /// The kernel's own threads, which write back what stores have written. `None` where they cannot be seen, and with
    /// them others' programs: in containers.
    pub kernel_share: Option<f64>,
    /// Busy with what is no process' that can be seen: interrupts and waking up; in a container all others' work.
    pub unclaimed_share: Option<f64>,
    /// What the host gave to others.
    pub steal_share: Option<f64>,
    /// The thread that waited longest for a processor, of the server and of the trial's process, its waking up taken
    /// off; of phases with no more busy threads than processors, since more wait for each other, where those are most
    /// of the time.
    pub server_delay_share: Option<f64>,
    pub client_delay_share: Option<f64>,
    /// The one who watches sleeps between looks, and woke up far too late: nothing ran, ours or not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stalled_share: Option<f64>,
    /// The best time of the same loop of arithmetic, before the trial.
    pub processor_probe_ns: Option<u64>,
    /// The median time to sync a page that was written to the data directory, before the trial; at `power` only.
    pub disk_sync_ns: Option<u64>,
}

/// What the readings of a run are held against.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Yardstick {
    /// The best: a processor is never faster than it is.
    pub processor_probe_ns: Option<u64>,
    /// The median, once there are a few: disks have good moments, which are not the rule.
    pub disk_sync_ns: Option<u64>,
}

/// Of so many readings a median says what is usual.
const USUAL: usize = 5;

impl Yardstick {
    pub fn of<'a>(all: impl Iterator<Item = &'a Noise>) -> Yardstick {
        let (probes, syncs): (Vec<_>, Vec<_>) = all.map(|noise| (noise.processor_probe_ns, noise.disk_sync_ns)).unzip();
        let mut syncs: Vec<u64> = syncs.into_iter().flatten().collect();
        syncs.sort_unstable();
        Yardstick {
            processor_probe_ns: probes.into_iter().flatten().min(),
            disk_sync_ns: syncs.get(syncs.len() / 2).copied().filter(|_| syncs.len() >= USUAL),
        }
    }
}

/// The blocks of a run that are discarded: those with a discarded trial, by all that was seen in the run. A block
/// before the first warms up and is none.
pub fn discarded_blocks<'a>(seen: impl Iterator<Item = (u32, &'a Noise)> + Clone) -> BTreeSet<u32> {
    let yardstick = Yardstick::of(seen.clone().map(|(_, noise)| noise));
    let discarded = seen.filter(|(block, noise)| *block > 0 && matches!(noise.gate(yardstick), Gate::Discard(_)));
    discarded.map(|(block, _)| block).collect()
}

/// Something that is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    Foreign,
    Unclaimed,
    Steal,
    ServerDelay,
    ClientDelay,
    /// All stood still.
    Stall,
    /// The load generator sent late, though it had time: see [`super::disturbed`].
    Lag,
    /// Slower than the best of the run by that share.
    ProcessorProbe,
    /// Slower than the median of the run by that share.
    Disk,
}

/// From where on a sign is told, doubted, and makes a trial discarded. A share above it counts.
struct Limit {
    sign: Sign,
    note: f64,
    warn: f64,
    discarded: f64,
}

const NEVER: f64 = f64::INFINITY;

/// From what a quiet machine shows of itself (docs/method.md, Noise). A stall is judged as a delay is.
const LIMITS: [Limit; 8] = [
    Limit { sign: Sign::Foreign, note: NEVER, warn: 0.02, discarded: 0.05 },
    Limit { sign: Sign::Unclaimed, note: NEVER, warn: 0.20, discarded: 0.40 },
    Limit { sign: Sign::Steal, note: NEVER, warn: 0.005, discarded: 0.02 },
    Limit { sign: Sign::ServerDelay, note: NEVER, warn: 0.02, discarded: 0.10 },
    Limit { sign: Sign::ClientDelay, note: NEVER, warn: 0.02, discarded: 0.10 },
    Limit { sign: Sign::Stall, note: NEVER, warn: 0.02, discarded: 0.10 },
    Limit { sign: Sign::ProcessorProbe, note: 0.03, warn: NEVER, discarded: 0.10 },
    Limit { sign: Sign::Disk, note: 0.50, warn: 1.00, discarded: 3.00 },
];

/// Less than this says nothing, however short the trial: the kernel counts steal, idling and the work of processes that
/// ended in ticks of 10 ms, and a difference of two such counts is up to a tick off at each end.
pub(super) const GRAIN_S: f64 = 0.03;

/// Why a trial is doubted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reason {
    pub sign: Sign,
    pub share: f64,
}

/// What is to be done with a trial. Each names only what made it so.
#[derive(Clone, Debug, PartialEq)]
pub enum Gate {
    Ok,
    Note(Vec<Reason>),
    Warn(Vec<Reason>),
    /// It counts for nothing and its block is run again.
    Discard(Vec<Reason>),
}

impl Noise {
    /// Judges by these readings and those of the run's other trials alone.
    pub fn gate(&self, yardstick: Yardstick) -> Gate {
        let over = |bound: fn(&Limit) -> f64| -> Vec<Reason> {
            let seen = LIMITS.iter().filter_map(|limit| Some((limit, self.share(limit.sign, yardstick)?)));
            let counts = |sign, share| share * self.seconds_of_a_share(sign) >= GRAIN_S;
            seen.filter(|(limit, share)| *share > bound(limit) && counts(limit.sign, *share))
                .map(|(limit, share)| Reason { sign: limit.sign, share })
                .collect()
        };
        let (discarded, warn, note) =
            (over(|limit| limit.discarded), over(|limit| limit.warn), over(|limit| limit.note));
        match (discarded.is_empty(), warn.is_empty(), note.is_empty()) {
            (false, ..) => Gate::Discard(discarded),
            (_, false, _) => Gate::Warn(warn),
            (_, _, false) => Gate::Note(note),
            _ => Gate::Ok,
        }
    }

    /// This, or what was seen beside another part of the same trial where that is judged more harshly. Probes are made
    /// once, before the trial.
    pub fn or_worse(self, other: Noise) -> Noise {
        let Noise { processor_probe_ns, disk_sync_ns, .. } = self;
        let other = Noise { processor_probe_ns, disk_sync_ns, ..other };
        let weight = |noise: &Noise| match noise.gate(Yardstick::default()) {
            Gate::Ok => 0,
            Gate::Note(_) => 1,
            Gate::Warn(_) => 2,
            Gate::Discard(_) => 3,
        };
        if weight(&other) > weight(&self) { other } else { self }
    }

    fn share(&self, sign: Sign, yardstick: Yardstick) -> Option<f64> {
        let slower =
            |now: Option<u64>, best: Option<u64>| Some(now? as f64 / best.filter(|&best| best > 0)? as f64 - 1.0);
        match sign {
            Sign::Foreign => self.foreign_share,
            // Where all programs are seen what is left is our own waking up.
            Sign::Unclaimed => self.unclaimed_share.filter(|_| self.kernel_share.is_none()),
            Sign::Steal => self.steal_share,
            Sign::ServerDelay => self.server_delay_share,
            Sign::ClientDelay => self.client_delay_share,
            Sign::Stall => self.stalled_share,
            Sign::Lag => None,
            Sign::ProcessorProbe => slower(self.processor_probe_ns, yardstick.processor_probe_ns),
            Sign::Disk => slower(self.disk_sync_ns, yardstick.disk_sync_ns),
        }
    }

    /// What a whole share amounts to; no end where it is no share of a trial's time.
    pub(super) fn seconds_of_a_share(&self, sign: Sign) -> f64 {
        match sign {
            Sign::Foreign | Sign::Unclaimed | Sign::Steal => self.seen_s * f64::from(self.cpus),
            Sign::ServerDelay | Sign::ClientDelay | Sign::Stall | Sign::Lag => self.seen_s,
            Sign::ProcessorProbe | Sign::Disk => f64::INFINITY,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = percent(self.share);
        match self.sign {
            Sign::Foreign => write!(out, "other programs used {share} of the CPU"),
            Sign::Unclaimed => write!(out, "{share} of the processors went to what cannot be seen from in here"),
            Sign::Steal => write!(out, "{share} steal: the host took the processors away"),
            Sign::ServerDelay => write!(out, "the server waited for a processor for {share} of the time"),
            Sign::ClientDelay => write!(out, "the client waited for a processor for {share} of the time"),
            Sign::Stall => write!(out, "the machine stood still for {share} of the time"),
            Sign::Lag => write!(out, "the load generator was kept from sending for {share} of the time"),
            Sign::ProcessorProbe => write!(out, "the processor was {share} slower than at its best in this run"),
            Sign::Disk => write!(out, "the disk took {share} longer to sync than is usual in this run"),
        }
    }
}

/// `12 %`, `2.3 %`.
pub fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent >= 9.95 { format!("{percent:.0} %") } else { format!("{percent:.1} %") }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ten seconds on two processors, nothing amiss.
    fn quiet() -> Noise {
        Noise {
            seen_s: 10.0,
            cpus: 2,
            foreign_share: Some(0.004),
            kernel_share: Some(0.3),
            unclaimed_share: Some(0.3),
            steal_share: Some(0.0),
            server_delay_share: Some(0.01),
            client_delay_share: Some(0.01),
            stalled_share: Some(0.0),
            processor_probe_ns: Some(1_000),
            disk_sync_ns: Some(1_000),
        }
    }

    const USUALLY: Yardstick = Yardstick { processor_probe_ns: Some(1_000), disk_sync_ns: Some(1_000) };

    #[test]
    fn a_quiet_trial_is_ok_whatever_the_kernel_did_for_it() {
        assert_eq!(quiet().gate(USUALLY), Gate::Ok);
    }

    #[test]
    fn what_no_machine_tells_judges_nothing() {
        assert_eq!(Noise::default().gate(USUALLY), Gate::Ok);
        assert_eq!(Noise { processor_probe_ns: Some(9_000), ..Noise::default() }.gate(Yardstick::default()), Gate::Ok);
        assert_eq!(
            Noise { processor_probe_ns: Some(9), ..quiet() }.gate(Yardstick { processor_probe_ns: Some(0), ..USUALLY }),
            Gate::Ok
        );
    }

    #[test]
    fn the_part_of_a_trial_that_was_disturbed_speaks_for_it() {
        let build = quiet();
        let disturbed = Noise { foreign_share: Some(0.3), processor_probe_ns: None, disk_sync_ns: None, ..quiet() };
        let either = build.or_worse(disturbed);
        assert_eq!((either.foreign_share, either.processor_probe_ns), (Some(0.3), Some(1_000)));
        assert_eq!(either.or_worse(Noise { processor_probe_ns: None, disk_sync_ns: None, ..quiet() }), either);
        let doubted = Noise { foreign_share: Some(0.03), ..quiet() };
        assert_eq!(build.or_worse(doubted), doubted);
        assert_eq!(doubted.or_worse(either), either);
        let short = Noise { seen_s: 0.02, ..disturbed };
        assert_eq!(build.or_worse(short), build, "what is within a tick says nothing");
    }

    #[test]
    fn each_sign_is_noted_doubted_and_discarded_at_its_own_limits() {
        let with = |sign, share: f64| {
            let (some, slower) = (Some(share), Some((1_000.0 * (1.0 + share)) as u64));
            match sign {
                Sign::Foreign => Noise { foreign_share: some, ..quiet() },
                Sign::Unclaimed => Noise { unclaimed_share: some, kernel_share: None, ..quiet() },
                Sign::Steal => Noise { steal_share: some, ..quiet() },
                Sign::ServerDelay => Noise { server_delay_share: some, ..quiet() },
                Sign::ClientDelay => Noise { client_delay_share: some, ..quiet() },
                Sign::Stall => Noise { stalled_share: some, ..quiet() },
                Sign::Lag => unreachable!("it has no limit"),
                Sign::ProcessorProbe => Noise { processor_probe_ns: slower, ..quiet() },
                Sign::Disk => Noise { disk_sync_ns: slower, ..quiet() },
            }
        };
        for limit in LIMITS {
            let name = |gate: Gate| match gate {
                Gate::Ok => "ok",
                Gate::Note(reasons) | Gate::Warn(reasons) | Gate::Discard(reasons) if reasons.len() != 1 => "many",
                Gate::Note(_) => "note",
                Gate::Warn(_) => "warn",
                Gate::Discard(_) => "discarded",
            };
            let gate = |share| name(with(limit.sign, share).gate(USUALLY));
            let least = limit.note.min(limit.warn);
            let below = if limit.warn < NEVER { "warn" } else { "note" };
            assert_eq!(
                (gate(limit.discarded * 1.1), gate(limit.discarded * 0.9)),
                ("discarded", below),
                "{:?}",
                limit.sign
            );
            assert_ne!(gate(least * 1.1), "ok", "{:?}", limit.sign);
            assert_eq!(gate(least * 0.9), "ok", "{:?}", limit.sign);
        }
    }

    #[test]
    fn a_short_trial_is_not_void_for_a_few_ticks() {
        let short = Noise { seen_s: 0.1, foreign_share: Some(0.1), steal_share: Some(0.1), ..quiet() };
        assert_eq!(short.gate(USUALLY), Gate::Ok, "20 ms are two ticks");
        let noisy = Noise { foreign_share: Some(0.2), ..short };
        assert!(matches!(noisy.gate(USUALLY), Gate::Discard(reasons) if reasons.len() == 1), "40 ms are more");
        let waited = Noise { seen_s: 0.1, client_delay_share: Some(0.2), ..quiet() };
        assert_eq!(waited.gate(USUALLY), Gate::Ok, "20 ms of one thread");
    }

    #[test]
    fn one_void_trial_voids_its_block_and_the_first_one_none() {
        let busy = Noise { foreign_share: Some(0.5), ..quiet() };
        let seen = [(0, busy), (1, quiet()), (2, quiet()), (2, busy), (3, quiet())];
        assert_eq!(discarded_blocks(seen.iter().map(|(block, noise)| (*block, noise))), BTreeSet::from([2]));
    }

    #[test]
    fn reasons_are_sentences() {
        let noise = Noise { foreign_share: Some(0.123), processor_probe_ns: Some(1_312), ..quiet() };
        let Gate::Discard(reasons) = noise.gate(USUALLY) else { panic!("not discarded") };
        let said: Vec<String> = reasons.iter().map(Reason::to_string).collect();
        assert_eq!(
            said,
            ["other programs used 12 % of the CPU", "the processor was 31 % slower than at its best in this run"]
        );
        assert_eq!(percent(0.0234), "2.3 %");
    }

    #[test]
    fn a_run_is_held_against_its_fastest_loop_and_its_usual_disk() {
        let all: Vec<Noise> = [(900, Some(7)), (800, Some(1)), (850, None), (810, Some(5)), (820, Some(9))]
            .map(|(processor_probe, sync)| Noise {
                processor_probe_ns: Some(processor_probe),
                disk_sync_ns: sync,
                ..quiet()
            })
            .to_vec();
        assert_eq!(
            Yardstick::of(all.iter()),
            Yardstick { processor_probe_ns: Some(800), disk_sync_ns: None },
            "four are few"
        );
        let more = Noise { processor_probe_ns: None, disk_sync_ns: Some(6), ..quiet() };
        assert_eq!(Yardstick::of(all.iter().chain([&more])).disk_sync_ns, Some(6));
        assert_eq!(Yardstick::of([].iter()), Yardstick::default());
    }
}
