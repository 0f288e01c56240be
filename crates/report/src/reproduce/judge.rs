//! Whether a sentence of a post still holds. What it compares and in which direction is data; the judgement comes from
//! the blocks of today alone, by the rules of every other claim.

use std::collections::BTreeMap;

use serde::Serialize;

use super::measured::{self, ByBlock};
use super::posts::{CostKind, Direction, Panel, Post, PostCell, Sentence, SentenceSource, StandIn, Unit};
use super::stood_in;
use crate::aa;
use crate::point::Point;
use crate::run_report::RunReport;
use crate::standing::{Standing, lengths_s};
use crate::versus::{Versus, versus};
use kvfair_core::part::Part;
use kvfair_core::record::Record;
use kvfair_core::units;
use kvfair_stats::paired::LEAST_BLOCKS;

/// Costs that differ by no more than this are level, as a ratio.
pub const LEVEL: f64 = 1.1;
/// Why a cell has no number where nothing else is known.
pub const NOT_MEASURED: &str = "it was not measured";
const CLIENT_LIMITED: &str = "limited by the load generator";
/// So many comparisons are told in words; the page and `--json` have all.
const TOLD: usize = 2;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Judgement {
    StillSo,
    Reversed,
    CannotBeTold,
    CannotBeRun,
}

impl Judgement {
    pub const ALL: [Judgement; 4] =
        [Judgement::StillSo, Judgement::Reversed, Judgement::CannotBeTold, Judgement::CannotBeRun];

    pub fn in_words(self) -> &'static str {
        match self {
            Judgement::StillSo => "still so",
            Judgement::Reversed => "reversed",
            Judgement::CannotBeTold => "cannot be told",
            Judgement::CannotBeRun => "cannot be run here",
        }
    }
}

/// A sentence of a post, and what today's run says of it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedSentence {
    pub says: String,
    pub source: SentenceSource,
    pub cost: CostKind,
    pub judgement: Judgement,
    /// Some of its comparisons cannot be run here.
    pub in_part: bool,
    pub why: String,
    pub pairs: Vec<JudgedPair>,
}

impl JudgedSentence {
    /// "still so in part": nothing is said of what cannot be run.
    pub fn in_words(&self) -> String {
        let in_part = if self.in_part && self.judgement == Judgement::StillSo { " in part" } else { "" };
        format!("{}{in_part}", self.judgement.in_words())
    }
}

/// Two cells: the first costs less than the second, or as much, says the post.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct JudgedPair {
    pub one: String,
    pub other: String,
    /// The point of a sweep; empty without one.
    pub point: String,
    /// What the second costs in times of the first: in the post, of a single run.
    pub then: Option<f64>,
    pub today: Option<Versus>,
    pub judgement: Judgement,
    pub why: String,
}

/// What runs for a cell today, or why nothing does.
#[derive(Clone, Debug)]
pub enum CellToday<'a> {
    Run {
        target: &'a str,
        stand_in: Option<&'a StandIn>,
    },
    Absent(String),
    /// It is here, and the run had no time for it.
    LeftOut(String),
}

/// Everything that a sentence is judged by.
pub struct Evidence<'a> {
    pub post: &'a Post,
    pub run: &'a RunReport<'a>,
    pub today: &'a BTreeMap<&'a str, CellToday<'a>>,
}

/// What is known of two costs.
#[derive(Clone, Copy, Debug)]
struct Compared {
    blocks: usize,
    /// The second in times of the first.
    ratio: Versus,
    /// The first costs less, and would tomorrow; the second does.
    is_less: bool,
    is_more: bool,
    /// None without an A/A control.
    noise_floor: Option<f64>,
}

pub fn judged(seen: &Evidence<'_>, sentence: &Sentence) -> JudgedSentence {
    let cost = sentence.cost.unwrap_or(seen.post.measure);
    let standings = by_point(seen, sentence, cost);
    let pairs: Vec<JudgedPair> =
        sentence.pairs.iter().filter_map(|pair| judged_pair(seen, sentence, cost, &standings, pair)).collect();
    let judgement = together(pairs.iter().map(|pair| pair.judgement));
    let why = reasons(judgement, &pairs);
    let in_part = pairs.iter().any(|pair| pair.judgement == Judgement::CannotBeRun);
    JudgedSentence { says: sentence.says.clone(), source: sentence.source, cost, judgement, in_part, why, pairs }
}

/// Of all comparisons of a sentence. What could not be run is no evidence; one reversed comparison refutes it.
fn together(judgements: impl Iterator<Item = Judgement> + Clone) -> Judgement {
    let worst_first = [Judgement::Reversed, Judgement::CannotBeTold, Judgement::StillSo];
    let found = worst_first.into_iter().find(|judgement| judgements.clone().any(|one| one == *judgement));
    found.unwrap_or(Judgement::CannotBeRun)
}

/// The part and the number of clients of a sweep's point.
type AtPoint = Option<(Part, u32)>;
type ByPoint<'a> = BTreeMap<AtPoint, Standing<'a>>;
type CellCosts<'a> = BTreeMap<&'a str, ByBlock>;

/// The cells of a sentence against each other at each point: claims hold for all pairs of it together.
fn by_point<'a>(seen: &Evidence<'a>, sentence: &Sentence, cost: CostKind) -> ByPoint<'a> {
    let counted = &seen.run.standings.counted;
    let lengths_of = lengths_s(seen.run.records, counted);
    let mut costs: BTreeMap<AtPoint, (&Panel, CellCosts<'a>)> = BTreeMap::new();
    let mut lengths: BTreeMap<&str, f64> = BTreeMap::new();
    for (panel, cell) in sentence.pairs.iter().flatten().filter_map(|id| seen.post.cell(id)) {
        let Some(CellToday::Run { target, .. }) = seen.today.get(cell.id.as_str()) else { continue };
        let of = |record: &Record| measured::cost(record, cost, panel);
        let by_block = measured::by_block(seen.run.records, counted, target, of);
        if !by_block.is_empty() {
            lengths.insert(&cell.id, lengths_of.get(target).copied().unwrap_or_default());
            costs.entry(panel.point()).or_insert((panel, BTreeMap::new())).1.insert(&cell.id, by_block);
        }
    }
    let standing = |(point, (panel, costs))| {
        let noise = aa::noise(seen.run.records, counted, |record| measured::cost(record, cost, panel));
        Some((point, Standing::new(costs, &lengths, &noise, &counted.seeds)?))
    };
    costs.into_iter().filter_map(standing).collect()
}

fn judged_pair(
    seen: &Evidence<'_>,
    sentence: &Sentence,
    cost: CostKind,
    standings: &ByPoint<'_>,
    [one, other]: &[String; 2],
) -> Option<JudgedPair> {
    let ((panel, first), (_, second)) = (seen.post.cell(one)?, seen.post.cell(other)?);
    let compared = compared(standings.get(&panel.point()), one, other);
    let stood_in = [first, second].into_iter().find_map(|cell| stand_in(seen, cell));
    let (judgement, why) = match absent(seen, first, second) {
        Some(why) => (Judgement::CannotBeRun, why),
        None => match (compared, seen.run.standings.refused) {
            (_, Some(refused)) if cost == CostKind::Seconds => (Judgement::CannotBeTold, refused.in_words()),
            _ if cost == CostKind::Seconds && is_client_limited(seen, panel, [first, second]) => {
                (Judgement::CannotBeTold, CLIENT_LIMITED.to_string())
            }
            (Some(compared), _) => unrefuted(judge(sentence.is, compared), stood_in),
            (None, _) => (Judgement::CannotBeTold, no_number(seen, cost, [first, second])),
        },
    };
    Some(JudgedPair {
        one: named(first, panel, seen),
        other: named(second, seen.post.cell(other)?.0, seen),
        point: if panel.part.is_none() { String::new() } else { panel.title.clone() },
        then: then(first, second, seen.post, cost),
        today: compared.map(|compared| compared.ratio),
        judgement,
        why,
    })
}

/// A program in the place of the post's store does not refute what the post says of that store.
fn unrefuted(found: (Judgement, String), stand_in: Option<&StandIn>) -> (Judgement, String) {
    match stand_in {
        Some(stand_in) if found.0 == Judgement::Reversed => {
            (Judgement::CannotBeTold, format!("reversed with {}, which refutes nothing", stand_in.words))
        }
        _ => found,
    }
}

fn stand_in<'a>(seen: &Evidence<'a>, cell: &PostCell) -> Option<&'a StandIn> {
    match seen.today.get(cell.id.as_str()) {
        Some(CellToday::Run { stand_in, .. }) => *stand_in,
        _ => None,
    }
}

/// A cell's name, with what runs in its place; where panels have cells of the same name, with the panel.
fn named(cell: &PostCell, panel: &Panel, seen: &Evidence<'_>) -> String {
    let is_twice = seen.post.cells().filter(|(_, other)| other.name == cell.name).count() > 1;
    let name = match is_twice && panel.part.is_none() {
        true => format!("{} {}", cell.name, panel.title),
        false => cell.name.clone(),
    };
    stand_in(seen, cell).map_or(name.clone(), |found| stood_in(&name, &found.words))
}

/// What the second costs in times of the first in the post's table, which tells of times only.
fn then(first: &PostCell, second: &PostCell, post: &Post, cost: CostKind) -> Option<f64> {
    let (first, second) = (first.figure?, second.figure?);
    let ratio = if post.unit == Unit::Seconds { second / first } else { first / second };
    (cost == CostKind::Seconds).then_some(ratio)
}

fn compared(standing: Option<&Standing<'_>>, one: &str, other: &str) -> Option<Compared> {
    let standing = standing?;
    Some(Compared {
        blocks: standing.blocks,
        ratio: standing.versus(other, one)?,
        is_less: standing.is_less(one, other),
        is_more: standing.is_less(other, one),
        noise_floor: standing.bar(one, other).map(|bar| bar.floor),
    })
}

/// Why two cells cannot be compared here.
fn absent(seen: &Evidence<'_>, first: &PostCell, second: &PostCell) -> Option<String> {
    let of = |cell: &PostCell| seen.today.get(cell.id.as_str());
    let whys = [first, second].map(|cell| match of(cell) {
        Some(CellToday::Absent(why)) => Some(why.clone()),
        Some(CellToday::Run { .. } | CellToday::LeftOut(_)) => None,
        None => Some(NOT_MEASURED.to_string()),
    });
    if let Some(why) = whys.into_iter().flatten().next() {
        return Some(why);
    }
    let engine = |cell| stand_in(seen, cell).filter(|found| found.is_engine).map(|found| found.words.clone());
    match (engine(first), engine(second)) {
        (Some(words), None) | (None, Some(words)) => Some(format!("{words}: an engine is no server")),
        _ => None,
    }
}

/// The generator's own limit is near at the point of one of them: as in every sweep, such times are not ranked.
fn is_client_limited(seen: &Evidence<'_>, panel: &Panel, cells: [&PostCell; 2]) -> bool {
    let is_of = |point: &Point, cell: &PostCell| {
        let is_target = matches!(
            seen.today.get(cell.id.as_str()),
            Some(CellToday::Run { target, .. }) if point.target == *target
        );
        is_target && Some((point.part, point.clients)) == panel.point()
    };
    seen.run.points.iter().filter(|point| point.client_limited).any(|point| cells.iter().any(|cell| is_of(point, cell)))
}

/// Why a cell that was run has no such number.
fn no_number(seen: &Evidence<'_>, cost: CostKind, cells: [&PostCell; 2]) -> String {
    let failed = cells.into_iter().find_map(|cell| {
        let target = match seen.today.get(cell.id.as_str())? {
            CellToday::Run { target, .. } => target,
            CellToday::LeftOut(why) => return Some(why.clone()),
            CellToday::Absent(_) => return None,
        };
        let row = seen.run.rows.iter().find(|row| row.target == *target)?;
        (!row.status.has_numbers()).then(|| format!("{target}: {}", row.status.in_words()))
    });
    failed.unwrap_or_else(|| match cost {
        CostKind::Unsteadiness => "no trial took some seconds".to_string(),
        _ => "no block has a number of both that the machine left alone".to_string(),
    })
}

/// By what the blocks show.
fn judge(direction: Direction, seen: Compared) -> (Judgement, String) {
    let told = |judgement| (judgement, String::new());
    let not_told = |why: String| (Judgement::CannotBeTold, why);
    let Some((low, high)) = seen.ratio.low.zip(seen.ratio.high) else {
        let blocks = units::counted(seen.blocks as u64, "block");
        return not_told(format!("{blocks}: an interval needs {LEAST_BLOCKS}"));
    };
    if seen.noise_floor.is_none() {
        return not_told("no store was run twice often enough, so the noise is unknown".to_string());
    }
    match direction {
        Direction::Less if seen.is_less => told(Judgement::StillSo),
        Direction::Less if seen.is_more => told(Judgement::Reversed),
        Direction::Less => not_told(unclear(seen, low, high)),
        Direction::Level if low >= 1.0 / LEVEL && high <= LEVEL => told(Judgement::StillSo),
        Direction::Level if (seen.is_less && low > LEVEL) || (seen.is_more && high < 1.0 / LEVEL) => {
            (Judgement::Reversed, format!("they differ by more than {:.0} %", (LEVEL - 1.0) * 100.0))
        }
        Direction::Level => not_told(format!("the interval has an end beyond {:.0} %", (LEVEL - 1.0) * 100.0)),
    }
}

fn unclear(seen: Compared, low: f64, high: f64) -> String {
    match seen.noise_floor {
        _ if low <= 1.0 && high >= 1.0 => "the interval contains 1".to_string(),
        Some(floor) => format!("not surely beyond the noise of {:.0} %", (floor * 100.0).ceil()),
        None => "the noise is unknown".to_string(),
    }
}

/// The comparisons that decide, in words.
fn reasons(judgement: Judgement, pairs: &[JudgedPair]) -> String {
    let of = |judgement: Judgement| pairs.iter().filter(move |pair| pair.judgement == judgement);
    let (held, not_run) = (of(Judgement::StillSo).count(), of(Judgement::CannotBeRun).count());
    let mut said = Vec::new();
    if pairs.len() > 1 && judgement != Judgement::CannotBeRun {
        let all = pairs.len();
        said.push(match not_run {
            0 => format!("{held} of {all} comparisons hold"),
            _ => format!("{held} of {all} comparisons hold, {not_run} cannot be run here"),
        });
    }
    let mut decisive: Vec<&JudgedPair> = of(judgement).collect();
    if judgement == Judgement::CannotBeRun {
        let mut whys: Vec<&str> = decisive.iter().map(|pair| pair.why.as_str()).collect();
        whys.dedup();
        return whys.first().map_or_else(String::new, |why| why.to_string());
    }
    // Of what holds, what holds by least.
    decisive.sort_by(|one, other| distance(one).total_cmp(&distance(other)));
    said.extend(decisive.iter().take(TOLD).map(|pair| pair.in_words()));
    if decisive.len() > TOLD {
        said.push(format!("{} more like these", decisive.len() - TOLD));
    }
    said.join("; ")
}

fn distance(pair: &JudgedPair) -> f64 {
    pair.today.map_or(f64::MAX, |today| libm::log(today.ratio).abs())
}

/// A ratio of single runs, which has no interval.
pub fn once(ratio: f64) -> String {
    versus(Versus { ratio, low: None, high: None, preliminary: false })
}

impl JudgedPair {
    /// "Redis TCP Socket is 1.14x Redis Domain Socket then, 1.3x [1.2-1.4] today".
    pub fn in_words(&self) -> String {
        let point = if self.point.is_empty() { String::new() } else { format!("{}: ", self.point) };
        let numbers = match (self.then, self.today) {
            (Some(then), Some(today)) => format!(" is {} {} then, {} today", once(then), self.one, versus(today)),
            (Some(then), None) => format!(" is {} {} then", once(then), self.one),
            (None, Some(today)) => format!(" is {} {} today", versus(today), self.one),
            (None, None) => format!(" and {}", self.one),
        };
        let why = if self.why.is_empty() { String::new() } else { format!(" ({})", self.why) };
        format!("{point}{}{numbers}{why}", self.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compared(low: f64, high: f64) -> Compared {
        let ratio = Versus { ratio: (low * high).sqrt(), low: Some(low), high: Some(high), preliminary: false };
        // A noise floor of 5 %.
        Compared { blocks: 10, ratio, is_less: low > 1.05, is_more: high < 1.0 / 1.05, noise_floor: Some(0.05) }
    }

    #[track_caller]
    fn is(direction: Direction, seen: Compared, expected: Judgement, why: &str) {
        let (judgement, said) = judge(direction, seen);
        assert_eq!(judgement, expected, "{said}");
        assert!(said.contains(why), "{said}");
    }

    #[test]
    fn a_direction_is_still_so_reversed_or_cannot_be_told() {
        let less = Direction::Less;
        is(less, compared(1.2, 1.4), Judgement::StillSo, "");
        is(less, compared(0.7, 0.8), Judgement::Reversed, "");
        is(less, compared(0.9, 1.2), Judgement::CannotBeTold, "contains 1");
        is(less, compared(1.01, 1.04), Judgement::CannotBeTold, "noise of 5 %");
    }

    #[test]
    fn level_costs_are_within_a_tenth_with_their_whole_interval() {
        let level = Direction::Level;
        is(level, compared(0.95, 1.05), Judgement::StillSo, "");
        is(level, compared(1.2, 1.4), Judgement::Reversed, "more than 10 %");
        is(level, compared(0.6, 0.7), Judgement::Reversed, "more than 10 %");
        is(level, compared(1.05, 1.3), Judgement::CannotBeTold, "beyond 10 %");
    }

    #[test]
    fn few_blocks_and_no_control_tell_nothing() {
        let ratio = Versus { ratio: 3.0, low: None, high: None, preliminary: false };
        let once = Compared { blocks: 1, ratio, ..compared(2.0, 4.0) };
        let alone = Compared { noise_floor: None, ..compared(2.0, 4.0) };
        for direction in [Direction::Less, Direction::Level] {
            is(direction, once, Judgement::CannotBeTold, "1 block: an interval needs 4");
            is(direction, alone, Judgement::CannotBeTold, "noise is unknown");
        }
    }

    #[test]
    fn a_stand_in_is_named_by_what_ran() {
        for (words, named) in [
            ("FerretDB in place of MongoDB", "FerretDB for Mongo *"),
            ("a test server of the same protocol, in place of Tokyo Tyrant", "a test server for Mongo *"),
            ("Berkeley DB in the process, in place of MemcacheDB", "Berkeley DB in the process for Mongo *"),
        ] {
            assert_eq!(stood_in("Mongo", words), named);
        }
    }

    #[test]
    fn a_stand_in_confirms_and_does_not_refute() {
        let words = "FerretDB in place of MongoDB".to_string();
        let stand_in = StandIn { target: "ferretdb".to_string(), words, is_engine: false, names_itself: false };
        let of = |low, high, stand_in| unrefuted(judge(Direction::Less, compared(low, high)), stand_in);
        assert_eq!(of(0.7, 0.8, None).0, Judgement::Reversed);
        let (judgement, why) = of(0.7, 0.8, Some(&stand_in));
        assert_eq!(judgement, Judgement::CannotBeTold);
        assert_eq!(why, "reversed with FerretDB in place of MongoDB, which refutes nothing");
        assert_eq!(of(1.2, 1.4, Some(&stand_in)).0, Judgement::StillSo);
    }

    #[test]
    fn one_reversed_comparison_refutes_and_what_is_not_run_is_no_evidence() {
        use Judgement::{CannotBeRun, CannotBeTold, Reversed, StillSo};
        let of = |judgements: &[Judgement]| together(judgements.iter().copied());
        assert_eq!(of(&[StillSo, CannotBeRun]), StillSo);
        assert_eq!(of(&[StillSo, CannotBeTold, CannotBeRun]), CannotBeTold);
        assert_eq!(of(&[StillSo, CannotBeTold, Reversed]), Reversed);
        assert_eq!(of(&[CannotBeRun, CannotBeRun]), CannotBeRun);
    }

    #[test]
    fn words_name_what_decides() {
        let pair = |judgement, today: f64, why: &str| JudgedPair {
            one: "a".to_string(),
            other: "b".to_string(),
            point: String::new(),
            then: Some(1.5),
            today: Some(Versus { ratio: today, low: Some(today * 0.9), high: Some(today * 1.1), preliminary: false }),
            judgement,
            why: why.to_string(),
        };
        let pairs = [
            pair(Judgement::StillSo, 3.0, ""),
            pair(Judgement::StillSo, 2.0, ""),
            pair(Judgement::StillSo, 4.0, ""),
            pair(Judgement::CannotBeRun, 1.0, "no server"),
        ];
        let said = reasons(Judgement::StillSo, &pairs);
        assert_eq!(
            said,
            "3 of 4 comparisons hold, 1 cannot be run here; b is 1.50x a then, 2.0x [1.8-2.2] today; b is 1.50x a \
             then, 3.0x [2.7-3.3] today; 1 more like these"
        );
        assert_eq!(reasons(Judgement::CannotBeRun, &pairs), "no server");
    }
}
