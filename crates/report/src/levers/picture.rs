//! What the picture of such a run shows, from the base to all levers together.
//!
//! Each mark is a contrast that was measured. Nothing is multiplied.

use super::text::{apart, cell, confirmed, costs, level_numbers, listed, not_multiplied};
use super::{LevelRow, LeverCost, LeverReport, LeverRow};
use crate::chart::axis::Axis;
use crate::chart::marks::{MarkKind, MarkShape};
use crate::chart::palette::{GREY, LINES};
use crate::chart::rows::{PictureRow, RowMark, RowPicture, RowSection, caption};
use kvfair_stats::levers::Gain;
use kvfair_stats::paired::Ratio;

/// One lever: base against it.
const ALONE: MarkKind = MarkKind::new(MarkShape::Dot, LINES[0], "the lever alone");
/// One lever: all but it against all.
const LAST: MarkKind = MarkKind::new(MarkShape::HollowDot, LINES[1], "the lever added last");
/// Several levers: base against them.
const SET: MarkKind = MarkKind::new(MarkShape::Diamond, LINES[2], "several levers");
/// A durability level against the weakest one.
const LEVEL: MarkKind = MarkKind::new(MarkShape::Square, LINES[3], "costs durability");
const BASE: MarkKind = MarkKind::new(MarkShape::Diamond, GREY, "");
/// A durability level farther than so many times the rest of the axis is an arrow at its end: it would leave no room
/// for the levers.
const LEVEL_ROOM: f64 = 4.0;

pub fn picture(report: &LeverReport) -> RowPicture {
    let gains = || report.levers.iter().flat_map(|lever| [lever.alone, lever.last]).chain([report.together]).flatten();
    let is_noisy = gains().any(|gain| gain.bar.is_some_and(|bar| bar.is_noisy));
    let floor = gains().filter_map(|gain| Some(gain.bar?.floor)).reduce(f64::max);
    let mut rows = vec![base(report)];
    rows.extend(report.levers.iter().map(|lever| one(lever, report.is_advice)));
    rows.extend(enough(report));
    rows.extend(together(report));
    let levels = report.durability.iter().skip(1).map(|row| level(row, &report.durability[0])).collect();
    let across = match report.cost {
        LeverCost::Seconds => "times as fast as now",
        LeverCost::CpuSeconds => "times less CPU than now",
    };
    let mut picture = RowPicture::new(title(report), across.to_string(), vec![RowSection::new("", rows)]);
    picture.band = floor.map(|floor| ((1.0 / (1.0 + floor), 1.0 + floor), "noise: same target twice"));
    let together = report.together.filter(Gain::helps).filter(|_| !report.is_advice);
    picture.guide = together.map(|gain| (gain.ratio.estimate, "all together"));
    add_levels(&mut picture, levels);
    picture.caption = caption_of(report, &picture, is_noisy);
    let marks = picture.sections.iter_mut().flat_map(|section| &mut section.rows).flat_map(|row| &mut row.marks);
    marks.for_each(|mark| mark.kind.is_thin = is_noisy);
    picture
}

fn title(report: &LeverReport) -> String {
    match report.is_advice {
        true => format!("What each lever gains alone at {}", report.base),
        false => format!("From {} as it is now to all levers together", report.base),
    }
}

/// Apart: durability levels are another promise.
fn add_levels(picture: &mut RowPicture, rows: Vec<PictureRow>) {
    let most = LEVEL_ROOM * picture.numbers().fold(1.0, f64::max);
    let title = "apart: gained by keeping less after a crash".to_string();
    let levels = RowSection { title, is_apart: true, rows };
    let all: Vec<f64> = picture.numbers().chain([1.0]).collect();
    if !levels.rows.is_empty() {
        picture.sections.push(levels);
    }
    picture.axis = Axis::around(picture.numbers().map(|number| number.min(most)).chain(all), "x");
}

fn caption_of(report: &LeverReport, picture: &RowPicture, is_noisy: bool) -> String {
    let blocks = match report.blocks {
        1 => "Seen once, no claim: one block has no interval.".to_string(),
        blocks => format!("{blocks} blocks; ratios compare trials of the same block."),
    };
    let rows = &picture.sections[0].rows;
    let all = picture.sections.iter().flat_map(|section| &section.rows);
    let mut kinds = all.flat_map(|row| &row.marks).map(|mark| mark.kind);
    let is_unclaimed = kinds.any(|kind| kind.stroke == GREY && !kind.words.is_empty());
    caption(&[
        (true, "Logarithmic axis."),
        (true, blocks.as_str()),
        (report.cost == LeverCost::CpuSeconds, "CPU of client and server: times cannot be told here."),
        (is_noisy, "Noisy: bars are thin, and only the end of an interval nearest to 1 is claimed."),
        (
            picture.band.is_none(),
            "No target was run twice often enough, so the noise is unknown and nothing is claimed.",
        ),
        (
            rows.iter().any(|row| row.marks.len() == 2),
            "Added last: with all other levers already on. A lever that gains as much as alone is independent \
             of them; one that gains less overlaps with them.",
        ),
        (report.durability.len() > 1, "A durability level changes the promise, so it is never one of all levers."),
        (is_unclaimed, "Grey: no effect seen."),
        (rows.len() > 2, "Sets of levers that were not measured have no number: gains are never multiplied."),
    ])
}

fn mark(kind: MarkKind, gain: &Gain) -> RowMark {
    at(claimed(kind, gain.effect.is_some()), gain.ratio)
}

fn at(kind: MarkKind, ratio: Ratio) -> RowMark {
    RowMark { kind, at: ratio.estimate, span: ratio.interval.bounds(), each: Vec::new() }
}

/// Grey where no effect is seen, or too little was measured to tell.
fn claimed(kind: MarkKind, is_claimed: bool) -> MarkKind {
    if is_claimed { kind } else { MarkKind::new(kind.shape, GREY, kind.words) }
}

fn row(name: &str, below: String, marks: Vec<RowMark>, numbers: Vec<String>) -> PictureRow {
    PictureRow { name: name.to_string(), below, marks, numbers, ..PictureRow::default() }
}

fn without_number(name: &str, below: String, reason: &str) -> PictureRow {
    PictureRow { reason: reason.to_string(), ..row(name, below, Vec::new(), Vec::new()) }
}

fn base(report: &LeverReport) -> PictureRow {
    let here = RowMark { kind: BASE, at: 1.0, span: None, each: Vec::new() };
    row(&report.base, "as it is now".to_string(), vec![here], vec!["1x".to_string()])
}

fn one(lever: &LeverRow, is_advice: bool) -> PictureRow {
    let is_struck = !is_advice && lever.not_in_all.is_some();
    let below = match apart(lever).filter(|_| is_struck) {
        Some(why) => why,
        None => [costs(lever), lever.counters.clone()].concat().join("; "),
    };
    let marks = [(ALONE, &lever.alone), (LAST, &lever.last)];
    let marks: Vec<RowMark> = marks.into_iter().filter_map(|(kind, gain)| Some(mark(kind, gain.as_ref()?))).collect();
    let mut numbers = vec![format!("alone: {}", cell(lever.alone.as_ref()))];
    if !is_advice {
        numbers.push(match is_struck {
            true => "cannot be combined".to_string(),
            false => format!("last: {}", cell(lever.last.as_ref())),
        });
    }
    let row = match &lever.failed {
        Some(reason) => without_number(&lever.change, below, reason),
        None if marks.is_empty() => without_number(&lever.change, below, "not measured: no block has both"),
        None => row(&lever.change, below, marks, numbers),
    };
    PictureRow { is_struck, ..row }
}

/// The smallest set; nothing where all are needed, or none helps.
fn enough(report: &LeverReport) -> Option<PictureRow> {
    let enough = &report.enough;
    if report.is_advice || enough.is_all || enough.levers.is_empty() {
        return None;
    }
    let below = format!("{}; {}", listed(&enough.levers), confirmed(enough));
    Some(match &enough.gain {
        Some(gain) => row("enough", below, vec![mark(SET, gain)], vec![cell(Some(gain))]),
        None => without_number("enough", below, "not measured in fresh blocks"),
    })
}

fn together(report: &LeverReport) -> Option<PictureRow> {
    let gain = report.together.as_ref().filter(|_| !report.is_advice)?;
    let not = not_multiplied(report).map(|product| format!("measured, not {product}"));
    Some(row("all together", not.unwrap_or_default(), vec![mark(SET, gain)], vec![cell(Some(gain))]))
}

fn level(level: &LevelRow, weakest: &LevelRow) -> PictureRow {
    let name = format!("{} -> {}", level.level, weakest.level);
    let below = level.keeps.clone();
    let Some(ratio) = level.ratio else { return without_number(&name, below, "no number") };
    let kind = claimed(LEVEL, !ratio.interval.contains(1.0));
    row(&name, below, vec![at(kind, ratio)], vec![level_numbers(level)])
}

#[cfg(test)]
pub mod tests {
    use super::super::{EnoughLevers, LevelRow};
    use super::*;
    use crate::chart::drawn_rows::tests::dots;
    use kvfair_core::trial::Durability;
    use kvfair_stats::floor::Bar;
    use kvfair_stats::levers::{Confirmation, Confirmed, Contrast, LeverEffect, LeverSet};
    use kvfair_stats::paired::{Interval, Ratio};

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
            asked: crate::typed::words(&["levers", "fans", "store"]),
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

    fn named<'a>(picture: &'a RowPicture, name: &str) -> &'a PictureRow {
        let row = picture.sections.iter().flat_map(|section| &section.rows).find(|row| row.name == name);
        row.unwrap_or_else(|| panic!("no row {name}"))
    }

    fn rows(picture: &RowPicture) -> &[PictureRow] {
        &picture.sections[0].rows
    }

    /// The words of the legend, the ratio of each mark, and whether it is claimed.
    fn marks(row: &PictureRow) -> Vec<(&'static str, f64, bool)> {
        row.marks.iter().map(|mark| (mark.kind.words, mark.at, mark.kind.stroke != GREY)).collect()
    }

    const ALONE: &str = "the lever alone";
    const LAST: &str = "the lever added last";

    #[test]
    fn each_lever_has_its_gain_alone_and_as_the_last_one() {
        let seen = picture(&report());
        let names: Vec<&str> = rows(&seen).iter().map(|row| row.name.as_str()).collect();
        let levers = ["via native", "unix", "<b>io-threads=4", "hz=500", "cache", "broken=yes"];
        assert_eq!(names, [&["store"], &levers[..], &["enough", "all together"]].concat());
        let native = named(&seen, "via native");
        assert_eq!(marks(native), [(ALONE, 5.8, true), (LAST, 4.9, true)]);
        assert_eq!(native.numbers, ["alone: 5.8x [5.7-5.9]", "last: 4.90x [4.80-5.00]"]);
        assert_eq!(native.below, "costs memory <of> the client; commands 1,474 -> 33");
        let nothing = named(&seen, "<b>io-threads=4");
        assert_eq!(marks(nothing), [(ALONE, 1.01, false), (LAST, 0.99, false)]);
        assert_eq!(nothing.numbers, ["alone: no effect seen (< 5 %)", "last: no effect seen (< 5 %)"]);
        assert!(marks(named(&seen, "hz=500")).iter().all(|(_, ratio, is_claimed)| *ratio < 1.0 && *is_claimed));
        let ((low, high), _) = seen.band.expect("a noise floor");
        assert!((high - 1.05).abs() < 1e-9 && (low * high - 1.0).abs() < 1e-9);
        assert!(rows(&seen).iter().flat_map(|row| &row.marks).all(|mark| !mark.kind.is_thin), "not noisy");
    }

    #[test]
    fn marks_stand_at_their_ratios_to_either_side_of_1() {
        let seen = picture(&report());
        // The lever that cannot be combined has one mark, the one that failed has none.
        assert_eq!(dots(&seen).len(), 9);
        assert!(seen.axis.share(0.7) < seen.axis.share(1.0) && seen.axis.share(1.0) < seen.axis.share(1.3));
        assert!(!seen.axis.has(7.0), "what failed has no place on the axis");
    }

    /// The levers keep their room; the number stands beside the arrow.
    #[test]
    fn a_durability_level_far_away_has_no_place() {
        let mut far = report();
        far.durability[1].ratio = Some(ratio(900.0));
        let seen = picture(&far);
        assert!(!seen.axis.has(900.0) && seen.axis.has(6.2));
        assert!(named(&seen, "crash -> none").numbers[0].starts_with("900x"));
    }

    #[test]
    fn what_stands_apart_or_failed_says_why() {
        let seen = picture(&report());
        let apart = named(&seen, "cache");
        assert!(apart.is_struck && apart.below == "not with all: a cache cannot see that");
        assert_eq!((marks(apart).len(), apart.numbers[1].as_str()), (1, "cannot be combined"));
        let failed = named(&seen, "broken=yes");
        assert_eq!(failed.reason, "FAILED: wrong answers");
        assert!(failed.numbers.is_empty(), "no number of what failed");
        assert!(rows(&seen).iter().filter(|row| row.is_struck).count() == 1);
        let mut without = report();
        (without.levers[0].alone, without.levers[0].last) = (None, None);
        assert!(named(&picture(&without), "via native").marks.is_empty());
    }

    #[test]
    fn the_smallest_set_and_all_are_what_was_measured() {
        let seen = picture(&report());
        assert_eq!(marks(named(&seen, "enough")), [("several levers", 6.1, true)]);
        let words = "via native and unix; confirmed in 11 fresh blocks (all levers are at most 4 % faster)";
        assert_eq!(named(&seen, "enough").below, words);
        let all = named(&seen, "all together");
        assert_eq!(
            (all.below.as_str(), all.numbers[0].as_str()),
            ("measured, not 5.80x times 1.50x", "6.2x [6.1-6.3]")
        );
        assert_eq!(seen.guide, Some((6.2, "all together")));
        let mut whole = report();
        whole.enough.is_all = true;
        assert!(rows(&picture(&whole)).iter().all(|row| row.name != "enough"));
        let mut unconfirmed = report();
        (unconfirmed.enough.gain, unconfirmed.enough.confirmation) = (None, None);
        assert!(named(&picture(&unconfirmed), "enough").marks.is_empty(), "not measured, so no place");
    }

    /// 5.8 times 1.5 is 8.7: where all together are that, no product is denied.
    #[test]
    fn a_product_is_denied_only_where_all_together_are_something_else() {
        let mut independent = report();
        independent.together = Some(gain(8.7, Some(LeverEffect::Helps)));
        assert_eq!(named(&picture(&independent), "all together").below, "");
    }

    #[test]
    fn durability_levels_stand_apart() {
        let seen = picture(&report());
        assert!(seen.sections[1].is_apart && seen.sections[1].rows.len() == 2);
        let crash = named(&seen, "crash -> none");
        assert_eq!(marks(crash), [("costs durability", 3.0, true)]);
        assert_eq!((crash.numbers[0].as_str(), crash.below.as_str()), ("3.00x [2.94-3.06]", "appendonly yes"));
        assert!(named(&seen, "power -> none").marks.is_empty());
        let mut alike = report();
        alike.durability[1].ratio = Some(ratio(1.01));
        assert_eq!(marks(named(&picture(&alike), "crash -> none")), [("costs durability", 1.01, false)]);
    }

    #[test]
    fn an_advice_has_each_lever_alone() {
        let mut advice = report();
        advice.is_advice = true;
        advice.levers.iter_mut().for_each(|lever| {
            (lever.last, lever.not_in_all) = (None, Some("each alone".to_string()));
        });
        let seen = picture(&advice);
        assert_eq!(rows(&seen).len(), 1 + 6);
        assert!(rows(&seen).iter().all(|row| !row.is_struck && row.marks.len() <= 1), "no lever is struck");
        assert_eq!((named(&seen, "cache").numbers.len(), seen.guide), (1, None));
    }

    #[test]
    fn the_caption_says_what_is_not_drawn() {
        let words = picture(&report()).caption;
        let parts = ["11 blocks", "gains are never multiplied", "Grey: no effect seen."];
        assert!(parts.iter().all(|part| words.contains(part)), "{words}");
        assert!(!words.contains("Noisy") && !words.contains("CPU"), "{words}");
        let mut noisy = report();
        (noisy.cost, noisy.blocks) = (LeverCost::CpuSeconds, 1);
        noisy.levers[0].alone.as_mut().and_then(|gain| gain.bar.as_mut()).expect("a bar").is_noisy = true;
        let seen = picture(&noisy);
        for part in ["Noisy: bars are thin", "times cannot be told here", "Seen once"] {
            assert!(seen.caption.contains(part), "{part}: {}", seen.caption);
        }
        assert!(rows(&seen).iter().flat_map(|row| &row.marks).all(|mark| mark.kind.is_thin));
        noisy.levers.iter_mut().for_each(|lever| (lever.alone, lever.last) = (None, None));
        noisy.together = None;
        assert!(picture(&noisy).caption.contains("noise is unknown"));
    }
}
