//! What the picture of such a run shows, from the base to all levers together: numbers and words. The page draws them.
//!
//! Each mark is a contrast that was measured. Nothing is multiplied.

use super::text::{apart, cell, confirmed, costs, level_numbers, listed, not_multiplied};
use super::{LevelRow, LeverCost, LeverReport, LeverRow};
use crate::report::versus::Versus;
use crate::stats::levers::Gain;

pub struct Waterfall {
    pub title: String,
    /// What the axis counts.
    pub axis: &'static str,
    /// The base, each lever, the smallest set that is enough, and all together.
    pub rows: Vec<WaterfallRow>,
    /// What the durability levels cost: never among all.
    pub levels: Vec<WaterfallRow>,
    /// Effects in here are not claimed: as far apart the same target came out from itself.
    pub band: Option<(f64, f64)>,
    /// How many times as fast all are together.
    pub together: Option<f64>,
    pub blocks: usize,
    pub by_cpu: bool,
    /// Only the near ends of intervals are claimed.
    pub is_noisy: bool,
}

pub struct WaterfallRow {
    pub name: String,
    /// It cannot be combined with the others.
    pub is_struck: bool,
    /// What it costs, why it helps, or why it stands apart.
    pub below: String,
    pub place: WaterfallPlace,
    /// What is said of its marks, a line each.
    pub numbers: Vec<String>,
}

pub enum WaterfallPlace {
    At(Vec<WaterfallMark>),
    /// It has no number, and why.
    Nowhere(String),
}

pub struct WaterfallMark {
    pub kind: MarkKind,
    pub versus: Versus,
    /// False where no effect is seen, or too little was measured to tell.
    pub is_claimed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MarkKind {
    /// One lever: base against it.
    Alone,
    /// One lever: all but it against all.
    Last,
    /// Several levers: base against them.
    Set,
    /// A durability level against the weakest one.
    Level,
}

pub fn waterfall(report: &LeverReport) -> Waterfall {
    let gains = || report.levers.iter().flat_map(|lever| [lever.alone, lever.last]).chain([report.together]).flatten();
    let floor = gains().filter_map(|gain| Some(gain.bar?.floor)).reduce(f64::max);
    let is_helpful = |gain: &Gain| gain.helps();
    let by_cpu = report.cost == LeverCost::CpuSeconds;
    let mut rows = vec![base(report)];
    rows.extend(report.levers.iter().map(|lever| one(lever, report.is_advice)));
    rows.extend(enough(report));
    rows.extend(together(report));
    Waterfall {
        title: match report.is_advice {
            true => format!("What each lever gains alone at {}", report.base),
            false => format!("From {} as it is now to all levers together", report.base),
        },
        axis: if by_cpu { "times less CPU than now" } else { "times as fast as now" },
        rows,
        levels: report.durability.iter().skip(1).map(|row| level(row, &report.durability[0])).collect(),
        band: floor.map(|floor| (1.0 / (1.0 + floor), 1.0 + floor)),
        together: report.together.filter(is_helpful).filter(|_| !report.is_advice).map(|gain| gain.ratio.estimate),
        blocks: report.blocks,
        by_cpu,
        is_noisy: gains().any(|gain| gain.bar.is_some_and(|bar| bar.is_noisy)),
    }
}

fn mark(kind: MarkKind, gain: &Gain) -> WaterfallMark {
    WaterfallMark { kind, versus: gain.ratio.into(), is_claimed: gain.effect.is_some() }
}

fn row(name: &str, below: String, place: WaterfallPlace, numbers: Vec<String>) -> WaterfallRow {
    WaterfallRow { name: name.to_string(), is_struck: false, below, place, numbers }
}

fn base(report: &LeverReport) -> WaterfallRow {
    let here = Versus { ratio: 1.0, low: None, high: None, preliminary: false };
    let mark = WaterfallMark { kind: MarkKind::Set, versus: here, is_claimed: false };
    row(&report.base, "as it is now".to_string(), WaterfallPlace::At(vec![mark]), vec!["1x".to_string()])
}

fn one(lever: &LeverRow, is_advice: bool) -> WaterfallRow {
    let is_struck = !is_advice && lever.not_in_all.is_some();
    let below = match apart(lever).filter(|_| is_struck) {
        Some(why) => why,
        None => [costs(lever), lever.counters.clone()].concat().join("; "),
    };
    if let Some(reason) = &lever.failed {
        return WaterfallRow {
            is_struck,
            ..row(&lever.change, below, WaterfallPlace::Nowhere(reason.clone()), Vec::new())
        };
    }
    let marks = [(MarkKind::Alone, &lever.alone), (MarkKind::Last, &lever.last)];
    let marks: Vec<WaterfallMark> =
        marks.into_iter().filter_map(|(kind, gain)| Some(mark(kind, gain.as_ref()?))).collect();
    let mut numbers = vec![format!("alone: {}", cell(lever.alone.as_ref()))];
    if !is_advice {
        numbers.push(match is_struck {
            true => "cannot be combined".to_string(),
            false => format!("last: {}", cell(lever.last.as_ref())),
        });
    }
    if marks.is_empty() {
        let why = "not measured: no block has both".to_string();
        return WaterfallRow { is_struck, ..row(&lever.change, below, WaterfallPlace::Nowhere(why), Vec::new()) };
    }
    WaterfallRow { is_struck, ..row(&lever.change, below, WaterfallPlace::At(marks), numbers) }
}

/// The smallest set; nothing where all are needed, or none helps.
fn enough(report: &LeverReport) -> Option<WaterfallRow> {
    let enough = &report.enough;
    if report.is_advice || enough.is_all || enough.levers.is_empty() {
        return None;
    }
    let below = format!("{}; {}", listed(&enough.levers), confirmed(enough));
    Some(match &enough.gain {
        Some(gain) => row("enough", below, WaterfallPlace::At(vec![mark(MarkKind::Set, gain)]), vec![cell(Some(gain))]),
        None => row("enough", below, WaterfallPlace::Nowhere("not measured in fresh blocks".to_string()), Vec::new()),
    })
}

fn together(report: &LeverReport) -> Option<WaterfallRow> {
    let gain = report.together.as_ref().filter(|_| !report.is_advice)?;
    let not = not_multiplied(report).map(|product| format!("measured, not {product}"));
    let marks = WaterfallPlace::At(vec![mark(MarkKind::Set, gain)]);
    Some(row("all together", not.unwrap_or_default(), marks, vec![cell(Some(gain))]))
}

fn level(level: &LevelRow, weakest: &LevelRow) -> WaterfallRow {
    let name = format!("{} -> {}", level.level, weakest.level);
    let below = level.keeps.clone();
    let Some(ratio) = level.ratio else {
        return row(&name, below, WaterfallPlace::Nowhere("no number".to_string()), Vec::new());
    };
    let is_claimed = !ratio.interval.contains(1.0);
    let mark = WaterfallMark { kind: MarkKind::Level, versus: ratio.into(), is_claimed };
    row(&name, below, WaterfallPlace::At(vec![mark]), vec![level_numbers(level)])
}

#[cfg(test)]
pub mod tests {
    use super::super::{EnoughLevers, LevelRow};
    use super::*;
    use crate::model::trial::Durability;
    use crate::stats::floor::Bar;
    use crate::stats::levers::{Confirmation, Confirmed, Contrast, LeverEffect, LeverSet};
    use crate::stats::paired::{Interval, Ratio};

    fn ratio(estimate: f64) -> Ratio {
        Ratio { estimate, interval: Interval::Exact { low: estimate * 0.98, high: estimate * 1.02 } }
    }

    pub fn gain(estimate: f64, effect: Option<LeverEffect>) -> Gain {
        let bar = Some(Bar { floor: 0.05, near_end: 0.0, is_noisy: false });
        let contrast = Contrast::together(LeverSet::of([0]));
        Gain { contrast, ratio: ratio(estimate), blocks: 11, p: Some(0.01), bar, effect }
    }

    fn lever(change: &str, alone: Gain, last: Option<Gain>) -> LeverRow {
        LeverRow {
            name: change.to_string(),
            change: change.to_string(),
            pays: "memory <of> the client".to_string(),
            tried: Vec::new(),
            alone: Some(alone),
            last,
            not_in_all: None,
            synthetic: None,
            failed: None,
            counters: vec!["commands 1,474 -> 33".to_string()],
        }
    }

    /// Two levers that help and overlap, one that does nothing, one that hurts, one that cannot be combined, and one
    /// that failed.
    pub fn report() -> LeverReport {
        let (helps, hurts) = (Some(LeverEffect::Helps), Some(LeverEffect::Hurts));
        let apart = LeverRow {
            not_in_all: Some("a cache cannot see that".to_string()),
            ..lever("cache", gain(1.4, helps), None)
        };
        let failed = LeverRow {
            failed: Some("FAILED: wrong answers".to_string()),
            ..lever("broken=yes", gain(7.0, helps), Some(gain(6.0, helps)))
        };
        let level = |level, times: Option<f64>| LevelRow {
            level,
            keeps: "appendonly yes".to_string(),
            ratio: times.map(ratio),
            blocks: 6,
            failed: None,
        };
        LeverReport {
            headline: "fans, 1,000 profiles".to_string(),
            asked: crate::report::typed::words(&["levers", "fans", "store"]),
            is_advice: false,
            base: "store".to_string(),
            job: "fans".to_string(),
            cost: LeverCost::Seconds,
            blocks: 11,
            levers: vec![
                lever("via native", gain(5.8, helps), Some(gain(4.9, helps))),
                lever("unix", gain(1.5, helps), Some(gain(1.3, helps))),
                lever("<b>io-threads=4", gain(1.01, None), Some(gain(0.99, None))),
                lever("hz=500", gain(0.8, hurts), Some(gain(0.7, hurts))),
                apart,
                failed,
            ],
            together: Some(gain(6.2, helps)),
            enough: EnoughLevers {
                levers: vec!["via native".to_string(), "unix".to_string()],
                is_all: false,
                gain: Some(gain(6.1, helps)),
                confirmation: Some(Confirmation { all: gain(1.01, None), found: Confirmed::Enough }),
            },
            synthetic: None,
            tried_sets: Vec::new(),
            durability: vec![
                level(Durability::None, None),
                level(Durability::Crash, Some(3.0)),
                level(Durability::Power, None),
            ],
            left_out: Vec::new(),
        }
    }

    fn named<'a>(waterfall: &'a Waterfall, name: &str) -> &'a WaterfallRow {
        let row = waterfall.rows.iter().chain(&waterfall.levels).find(|row| row.name == name);
        row.unwrap_or_else(|| panic!("no row {name}"))
    }

    fn marks(row: &WaterfallRow) -> Vec<(MarkKind, f64, bool)> {
        match &row.place {
            WaterfallPlace::At(marks) => {
                marks.iter().map(|mark| (mark.kind, mark.versus.ratio, mark.is_claimed)).collect()
            }
            WaterfallPlace::Nowhere(_) => Vec::new(),
        }
    }

    #[test]
    fn each_lever_has_its_gain_alone_and_as_the_last_one() {
        let seen = waterfall(&report());
        let names: Vec<&str> = seen.rows.iter().map(|row| row.name.as_str()).collect();
        let levers = ["via native", "unix", "<b>io-threads=4", "hz=500", "cache", "broken=yes"];
        assert_eq!(names, [&["store"], &levers[..], &["enough", "all together"]].concat());
        let native = named(&seen, "via native");
        assert_eq!(marks(native), [(MarkKind::Alone, 5.8, true), (MarkKind::Last, 4.9, true)]);
        assert_eq!(native.numbers, ["alone: 5.8x [5.7-5.9]", "last: 4.90x [4.80-5.00]"]);
        assert_eq!(native.below, "costs memory <of> the client; commands 1,474 -> 33");
        let nothing = named(&seen, "<b>io-threads=4");
        assert_eq!(marks(nothing), [(MarkKind::Alone, 1.01, false), (MarkKind::Last, 0.99, false)]);
        assert_eq!(nothing.numbers, ["alone: no effect seen (< 5 %)", "last: no effect seen (< 5 %)"]);
        assert!(marks(named(&seen, "hz=500")).iter().all(|(_, ratio, is_claimed)| *ratio < 1.0 && *is_claimed));
        let (low, high) = seen.band.expect("a noise floor");
        assert!((high - 1.05).abs() < 1e-9 && (low * high - 1.0).abs() < 1e-9 && !seen.is_noisy);
    }

    #[test]
    fn what_stands_apart_or_failed_says_why() {
        let seen = waterfall(&report());
        let apart = named(&seen, "cache");
        assert!(apart.is_struck && apart.below == "not with all: a cache cannot see that");
        assert_eq!((marks(apart).len(), apart.numbers[1].as_str()), (1, "cannot be combined"));
        let failed = named(&seen, "broken=yes");
        assert!(matches!(&failed.place, WaterfallPlace::Nowhere(why) if why == "FAILED: wrong answers"));
        assert!(failed.numbers.is_empty(), "no number of what failed");
        assert!(seen.rows.iter().filter(|row| row.is_struck).count() == 1);
        let mut without = report();
        (without.levers[0].alone, without.levers[0].last) = (None, None);
        assert!(matches!(named(&waterfall(&without), "via native").place, WaterfallPlace::Nowhere(_)));
    }

    #[test]
    fn the_smallest_set_and_all_are_what_was_measured() {
        let seen = waterfall(&report());
        assert_eq!(marks(named(&seen, "enough")), [(MarkKind::Set, 6.1, true)]);
        let words = "via native and unix; confirmed in 11 fresh blocks (all levers are at most 4 % faster)";
        assert_eq!(named(&seen, "enough").below, words);
        let all = named(&seen, "all together");
        assert_eq!(
            (all.below.as_str(), all.numbers[0].as_str()),
            ("measured, not 5.80x times 1.50x", "6.2x [6.1-6.3]")
        );
        assert_eq!(seen.together, Some(6.2));
        let mut whole = report();
        whole.enough.is_all = true;
        assert!(waterfall(&whole).rows.iter().all(|row| row.name != "enough"));
        let mut unconfirmed = report();
        (unconfirmed.enough.gain, unconfirmed.enough.confirmation) = (None, None);
        let seen = waterfall(&unconfirmed);
        assert!(matches!(named(&seen, "enough").place, WaterfallPlace::Nowhere(_)), "not measured, so no place");
    }

    /// 5.8 times 1.5 is 8.7: where all together are that, no product is denied.
    #[test]
    fn a_product_is_denied_only_where_all_together_are_something_else() {
        let mut independent = report();
        independent.together = Some(gain(8.7, Some(LeverEffect::Helps)));
        assert_eq!(named(&waterfall(&independent), "all together").below, "");
    }

    #[test]
    fn durability_levels_stand_apart() {
        let seen = waterfall(&report());
        assert_eq!(seen.levels.len(), 2);
        let crash = named(&seen, "crash -> none");
        assert_eq!(marks(crash), [(MarkKind::Level, 3.0, true)]);
        assert_eq!((crash.numbers[0].as_str(), crash.below.as_str()), ("3.00x [2.94-3.06]", "appendonly yes"));
        assert!(matches!(named(&seen, "power -> none").place, WaterfallPlace::Nowhere(_)));
        let mut alike = report();
        alike.durability[1].ratio = Some(ratio(1.01));
        assert_eq!(marks(named(&waterfall(&alike), "crash -> none")), [(MarkKind::Level, 1.01, false)]);
    }

    #[test]
    fn an_advice_has_each_lever_alone() {
        let mut advice = report();
        advice.is_advice = true;
        advice.levers.iter_mut().for_each(|lever| {
            (lever.last, lever.not_in_all) = (None, Some("each alone".to_string()));
        });
        let seen = waterfall(&advice);
        assert_eq!(seen.rows.len(), 1 + 6);
        assert!(seen.rows.iter().all(|row| !row.is_struck && marks(row).len() <= 1), "no lever is struck");
        assert_eq!((named(&seen, "cache").numbers.len(), seen.together), (1, None));
    }
}
