//! What was seen of the machine before a run, and what of it spoils one.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::noise::percent;
use super::trial::Durability;
use super::units;

/// The machine before the first trial. What it does not tell is `None`, and stands in `lacking`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Preflight {
    /// What looking took.
    pub took_s: f64,
    /// Share of the last ten seconds in which something waited for a processor.
    pub cpu_pressure_share: Option<f64>,
    /// A thread that never sleeps waited so much of its time for a processor.
    pub spin_delay_share: Option<f64>,
    /// Of all processors' time: what other programs took, and what the host did.
    pub foreign_share: Option<f64>,
    pub steal_share: Option<f64>,
    /// As in a trial's noise; the disk with a few pages.
    pub processor_probe_ns: Option<u64>,
    pub disk_sync_ns: Option<u64>,
    /// Of the data directory's disk, and of the job's data.
    pub free_bytes: Option<u64>,
    pub data_bytes: Option<u64>,
    /// The data directory is in memory: tmpfs or ramfs.
    pub in_memory: Option<bool>,
    pub swap_used_bytes: Option<u64>,
    /// A governor or profile that saves power holds the clock down.
    pub saves_power: Option<bool>,
    pub on_battery: Option<bool>,
    /// Transparent huge pages are given to all who did not ask.
    pub huge_pages_always: Option<bool>,
    /// Libraries that are loaded into every program.
    pub preloaded: Vec<String>,
    /// Sources that this machine lacks, and what is not known without them.
    pub lacking: Vec<String>,
}

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// It is printed beside the results.
    Warn,
    /// What would be measured is not what is asked for.
    Refuse,
}

/// One thing that spoils a run, and the way out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub id: &'static str,
    pub weight: Severity,
    pub words: String,
    pub fix: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.words)
    }
}

/// What findings are called, and when there is one: before the first trial.
pub const KINDS: [(&str, &str); 11] = [
    ("pressure", "threads waited for a processor for more than 5 % of the last 10 s"),
    ("spin", "a thread that never sleeps waited for a processor for more than 1 % of the time"),
    ("foreign", "other programs used more than 2 % of the CPU"),
    ("steal", "the host took more than 0.5 % of the CPU"),
    ("room", "the disk has less room than three times the data"),
    ("tmpfs", "the data directory is in memory: what is acknowledged reaches no disk"),
    ("eatmydata", "libeatmydata is loaded: what is acknowledged reaches no disk"),
    ("swap", "the machine has swapped memory out"),
    ("governor", "the processors' governor holds the clock down"),
    ("battery", "the machine runs on its battery"),
    ("huge-pages", "transparent huge pages are on for all memory"),
];

/// Shares above these are told: a quiet machine stays below them (docs/method.md, Noise).
const PRESSURE: f64 = 0.05;
const SPIN_DELAY: f64 = 0.01;
const FOREIGN: f64 = 0.02;
const STEAL: f64 = 0.005;
/// A run needs so many times its data: what a store keeps, what it rewrites, and the data itself.
const ROOM: u64 = 3;

impl Preflight {
    /// Whether nobody else was at work while we looked.
    pub fn is_quiet(&self) -> bool {
        let above = |share: Option<f64>, limit: f64| share.is_some_and(|share| share > limit);
        !(above(self.spin_delay_share, SPIN_DELAY)
            || above(self.foreign_share, FOREIGN)
            || above(self.steal_share, STEAL))
    }

    /// All that spoils a run of this durability level.
    pub fn findings(&self, durability: Durability) -> Vec<Finding> {
        let mut found = self.strangers();
        found.extend(self.settings(durability));
        found
    }

    /// Who else is at work.
    fn strangers(&self) -> Vec<Finding> {
        let others = "stop other programs, or run when they are done";
        let host = "the host is shared: run at another time, or on a machine of your own";
        let all = [
            (
                "pressure",
                self.cpu_pressure_share,
                PRESSURE,
                "of the last 10 s something waited for a processor",
                others,
            ),
            (
                "spin",
                self.spin_delay_share,
                SPIN_DELAY,
                "of its time a lone busy thread waited for a processor",
                others,
            ),
            ("foreign", self.foreign_share, FOREIGN, "of the processors go to other programs", others),
            ("steal", self.steal_share, STEAL, "of the processors go to other guests of the host", host),
        ];
        let seen = all.into_iter().filter_map(|(id, share, limit, what, fix)| {
            let share = share.filter(|&share| share > limit)?;
            Some(Finding { id, weight: Severity::Warn, words: format!("{} {what}", percent(share)), fix })
        });
        seen.collect()
    }

    /// What is set or short.
    fn settings(&self, durability: Durability) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut say = |is_so: bool, id, weight, words: String, fix| {
            if is_so {
                found.push(Finding { id, weight, words, fix });
            }
        };
        let is = |told: Option<bool>| told == Some(true);
        if let Some((free, data)) = self.free_bytes.zip(self.data_bytes) {
            let words = format!("{} are free for {} of data", units::bytes(free), units::bytes(data));
            say(
                free < ROOM.saturating_mul(data),
                "room",
                Severity::Warn,
                words,
                "make room, or set TMPDIR to a disk that has it",
            );
        }
        let tmpfs = "the data directory is in memory: nothing survives there a loss of power".to_string();
        let is_tmpfs = is(self.in_memory) && durability == Durability::Power;
        say(is_tmpfs, "tmpfs", Severity::Refuse, tmpfs, "set TMPDIR to a directory on a disk");
        let eatmydata = self.preloaded.iter().any(|name| name.contains("eatmydata"));
        let words = "libeatmydata is loaded into every program: no sync reaches a disk".to_string();
        say(eatmydata, "eatmydata", Severity::Refuse, words, "unset LD_PRELOAD");
        let swapped = self.swap_used_bytes.unwrap_or(0);
        let words = format!("{} are swapped out", units::bytes(swapped));
        say(swapped > 0, "swap", Severity::Warn, words, "free some memory, then swapoff and swapon");
        let words = "the processor saves power: its clock is held down".to_string();
        say(is(self.saves_power), "governor", Severity::Warn, words, "cpupower frequency-set -g performance");
        let words = "this machine runs on its battery".to_string();
        say(is(self.on_battery), "battery", Severity::Warn, words, "plug it in");
        let words = "huge pages are given to all programs: those that fork may stall".to_string();
        let fix = "echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
        say(is(self.huge_pages_always), "huge-pages", Severity::Warn, words, fix);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(preflight: &Preflight, durability: Durability) -> Vec<(&'static str, Severity)> {
        let found = preflight.findings(durability);
        assert!(found.iter().all(|finding| KINDS.iter().any(|(id, _)| *id == finding.id)), "{found:?}");
        found.into_iter().map(|finding| (finding.id, finding.weight)).collect()
    }

    #[test]
    fn a_machine_that_tells_nothing_is_not_accused() {
        assert_eq!(ids(&Preflight::default(), Durability::Power), []);
        assert!(Preflight::default().is_quiet());
    }

    #[test]
    fn each_finding_has_its_limit() {
        let at = |share| Preflight {
            cpu_pressure_share: Some(PRESSURE * share),
            spin_delay_share: Some(SPIN_DELAY * share),
            foreign_share: Some(FOREIGN * share),
            steal_share: Some(STEAL * share),
            ..Preflight::default()
        };
        assert_eq!(ids(&at(0.9), Durability::None), []);
        let warned: Vec<_> = ["pressure", "spin", "foreign", "steal"].map(|id| (id, Severity::Warn)).to_vec();
        assert_eq!(ids(&at(1.1), Durability::None), warned);
        assert!(at(0.9).is_quiet() && !at(1.1).is_quiet());
        let only_steal = Preflight { steal_share: Some(0.5), ..Preflight::default() };
        assert!(!only_steal.is_quiet());
        let pressed = Preflight { cpu_pressure_share: Some(0.9), ..Preflight::default() };
        assert!(pressed.is_quiet(), "ten seconds ago is not now: looking again would tell the same");
    }

    #[test]
    fn what_is_set_or_short_is_told_with_a_way_out() {
        let bad = Preflight {
            free_bytes: Some(299),
            data_bytes: Some(100),
            in_memory: Some(true),
            swap_used_bytes: Some(4_096),
            saves_power: Some(true),
            on_battery: Some(true),
            huge_pages_always: Some(true),
            preloaded: vec!["/usr/lib/libeatmydata.so".to_string()],
            ..Preflight::default()
        };
        let all: Vec<&str> = ids(&bad, Durability::Power).into_iter().map(|(id, _)| id).collect();
        assert_eq!(all, ["room", "tmpfs", "eatmydata", "swap", "governor", "battery", "huge-pages"]);
        assert!(!ids(&bad, Durability::Crash).contains(&("tmpfs", Severity::Refuse)), "a crash leaves memory alone");
        assert_eq!(bad.findings(Durability::Power)[0].to_string(), "299 B are free for 100 B of data");
        assert!(bad.findings(Durability::Power).iter().all(|finding| !finding.fix.is_empty()));
        let good = Preflight {
            free_bytes: Some(300),
            data_bytes: Some(100),
            in_memory: Some(false),
            swap_used_bytes: Some(0),
            preloaded: vec!["libjemalloc.so".to_string()],
            ..Preflight::default()
        };
        assert_eq!(ids(&good, Durability::Power), []);
    }
}
