//! `kvfair reproduce`: the posts that kvfair began with beside today: their tables, and whether their sentences still
//! hold. From records and the posts' data to plain data; `text` and `page` show it.

use std::collections::BTreeMap;

use serde::Serialize;

use self::judge::{CellToday, Evidence, NOT_MEASURED};
pub use self::judge::{JudgedPair, JudgedSentence, Judgement, once};
use self::measured::median;
use self::posts::{CostKind, Panel, PostCell};
pub use self::posts::{Declined, Post, Unit, declined, numbers, posts};
use super::cells::Row;
use super::run_report::{Detail, RunReport};
use super::standing::Standings;
use super::versus::Versus;
use super::words;
use kvfair_core::record::{Machine, Outcome, Record};
use kvfair_core::shell;
use kvfair_core::units;
use kvfair_stats::paired::LogRatios;

mod judge;
mod measured;
pub mod picture;
mod posts;
pub mod text;

/// The command's name: records of its runs begin with it.
pub const NAME: &str = "reproduce";

/// A post beside today.
#[derive(Clone, Debug, Serialize)]
pub struct PostReport {
    pub number: String,
    pub title: String,
    pub author: String,
    pub date: String,
    pub address: String,
    pub about: String,
    pub unit: String,
    pub then: ThenSetup,
    /// None where nothing was run.
    pub today: Option<TodaySetup>,
    /// What was typed, or would be.
    pub command: String,
    pub differs: Vec<String>,
    pub panels: Vec<PanelReport>,
    pub sentences: Vec<JudgedSentence>,
}

#[derive(Clone, Debug, Serialize)]
pub struct ThenSetup {
    pub machine: String,
    pub software: String,
}

#[derive(Clone, Debug, Serialize)]
pub struct TodaySetup {
    pub kvfair: String,
    pub began: String,
    pub machine: String,
    /// What was run, its noise included.
    pub headline: String,
    /// "redis 7.0.15", of each store that told it.
    pub versions: Vec<String>,
    /// The machine has a counter of energy.
    pub counts_energy: bool,
}

#[derive(Clone, Debug, Serialize)]
pub struct PanelReport {
    pub title: String,
    /// The cell that ratios are of; none where no cell has a figure and a number of today.
    pub base: Option<String>,
    pub rows: Vec<CellReport>,
}

#[derive(Clone, Debug, Serialize)]
pub struct CellReport {
    pub name: String,
    /// The ratios are in times of it.
    pub is_base: bool,
    /// What was run for it.
    pub target: Option<String>,
    pub stand_in: Option<String>,
    /// A single run, no interval.
    pub then: Option<f64>,
    /// In times of the base: as long, or as long for as much.
    pub then_ratio: Option<f64>,
    pub today: Option<f64>,
    pub today_ratio: Option<Versus>,
    pub cpu_us_per_op: Option<f64>,
    pub joules_per_op: Option<f64>,
    /// Why it has no number of today.
    pub why: Option<String>,
}

/// Why a store is not run.
pub fn not_installed(store: &str, get_it: &str) -> String {
    format!("{store} is not installed: {get_it}")
}

/// A post and the records of its run. `absent` says of targets why they cannot be run here.
pub fn report(post: &Post, records: &[Record], absent: &BTreeMap<String, String>) -> PostReport {
    let is_swept = post.panels.iter().any(|panel| panel.part.is_some());
    // Only of rates a point needs what may be broken in a record, and no post has rates.
    let swept = if is_swept { RunReport::of(records, Detail::Table { wide: false }).ok() } else { None };
    let run = swept.unwrap_or_else(|| RunReport::of_rows(records));
    let today = today(post, records, absent);
    let seen = Evidence { post, run: &run, today: &today };
    PostReport {
        number: post.number.clone(),
        title: post.title.clone(),
        author: post.author.clone(),
        date: post.date.clone(),
        address: post.address.clone(),
        about: about(post, records),
        unit: unit(post.unit, records),
        then: ThenSetup { machine: post.machine.clone(), software: post.software.clone() },
        today: setup(records, &run.standings),
        command: command(post, &today),
        differs: differs(post, records),
        panels: post.panels.iter().map(|panel| panel_report(&seen, panel)).collect(),
        sentences: post.sentences.iter().map(|sentence| judge::judged(&seen, sentence)).collect(),
    }
}

/// How many sentences have each judgement.
pub fn tally(reports: &[PostReport]) -> [(Judgement, usize); 4] {
    let all = || reports.iter().flat_map(|report| &report.sentences);
    Judgement::ALL.map(|judgement| (judgement, all().filter(|one| one.judgement == judgement).count()))
}

/// "25 sentences of 5 posts: 9 still so (2 in part), 2 reversed, 6 cannot be told, 8 cannot be run here."
pub fn headline(reports: &[PostReport]) -> String {
    let all = tally(reports);
    let sentences = reports.iter().flat_map(|report| &report.sentences);
    let in_part = sentences.filter(|one| one.in_part && one.judgement == Judgement::StillSo).count();
    let behind = |judgement: Judgement| match (judgement, in_part) {
        (Judgement::StillSo, 1..) => format!(" ({in_part} in part)"),
        _ => String::new(),
    };
    let each = all.iter().map(|(judgement, count)| format!("{count} {}{}", judgement.in_words(), behind(*judgement)));
    let each: Vec<String> = each.collect();
    let sentences = all.iter().map(|(_, count)| *count as u64).sum();
    let posts = units::counted(reports.len() as u64, "post");
    format!("{} of {posts}: {}.", units::counted(sentences, "sentence"), each.join(", "))
}

/// What runs for each cell: the first candidate that was run. Why none was stands in the records, or in `absent`.
fn today<'a>(
    post: &'a Post,
    records: &[Record],
    absent: &BTreeMap<String, String>,
) -> BTreeMap<&'a str, CellToday<'a>> {
    let of = |cell: &'a PostCell| {
        let run =
            cell.candidates().find(|(target, _)| of_target(records, target).any(|record| not_run(record).is_none()));
        let today = match run {
            Some((target, stand_in)) => CellToday::Run { target, stand_in },
            None => {
                let reasons = cell.candidates().flat_map(|(target, _)| of_target(records, target)).filter_map(not_run);
                match (reasons.min_by_key(|(_, is_absent)| *is_absent), absent.get(&cell.target)) {
                    (Some((why, false)), _) => CellToday::LeftOut(why.to_string()),
                    (Some((why, true)), _) => CellToday::Absent(why.to_string()),
                    (None, why) => CellToday::Absent(why.map_or(NOT_MEASURED, String::as_str).to_string()),
                }
            }
        };
        (cell.id.as_str(), today)
    };
    post.cells().map(|(_, cell)| of(cell)).collect()
}

fn of_target<'a>(records: &'a [Record], target: &str) -> impl Iterator<Item = &'a Record> {
    records.iter().filter(move |record| !record.ahead && record.target.label == target)
}

/// Why a target has no trial, and whether that is because it is not here.
fn not_run(record: &Record) -> Option<(&str, bool)> {
    match &record.outcome {
        Outcome::LeftOut { reason, absent } => Some((reason, *absent)),
        Outcome::Missing { reason, .. } => Some((reason, true)),
        _ => None,
    }
}

/// The first trial: what is left out stands before it.
fn first(records: &[Record]) -> Option<&Record> {
    records.iter().find(|record| not_run(record).is_none())
}

/// The command of a user: with the targets that were run, or with all.
fn command(post: &Post, today: &BTreeMap<&str, CellToday<'_>>) -> String {
    let mut targets: Vec<&str> = Vec::new();
    let run = |cell: &PostCell| match today.get(cell.id.as_str()) {
        // What names itself otherwise cannot be typed.
        Some(CellToday::Run { stand_in: Some(stand_in), .. }) if stand_in.names_itself => Some(cell.target.clone()),
        Some(CellToday::Run { target, .. }) => Some(target.to_string()),
        _ => None,
    };
    let is_any = post.cells().any(|(_, cell)| run(cell).is_some());
    let wanted = post.cells().filter(|(_, cell)| !is_any || run(cell).is_some());
    let named: Vec<String> = wanted.map(|(_, cell)| run(cell).unwrap_or_else(|| cell.target.clone())).collect();
    for target in &named {
        if !targets.contains(&target.as_str()) {
            targets.push(target);
        }
    }
    let (job, options) = post.command.split_at(2.min(post.command.len()));
    let words = job.iter().map(String::as_str).chain(targets).chain(options.iter().map(String::as_str));
    shell::command(words)
}

/// "10,000 profiles, one client; today 250 profiles": figures of two sizes stand in one table.
fn about(post: &Post, records: &[Record]) -> String {
    let Some(size) = first(records).map(|record| today_size(post, record)) else { return post.about.clone() };
    if post.about.contains(&size) { post.about.clone() } else { format!("{}; today {size}", post.about) }
}

/// "250 profiles", "12,000 requests at each point".
fn today_size(post: &Post, record: &Record) -> String {
    let (units, unit) = (units::thousands(record.stream.units), &record.stream.unit);
    let is_swept = post.panels.iter().any(|panel| panel.part.is_some());
    format!("{units} {unit}s{}", if is_swept { " at each point" } else { "" })
}

/// With the size that today's run had.
fn differs(post: &Post, records: &[Record]) -> Vec<String> {
    let size = first(records).map(|record| format!("Today's run had {}.", today_size(post, record)));
    post.differs.iter().cloned().chain(size).collect()
}

/// "FerretDB for Mongo TCP Socket *": what runs in the place of what the post names. `words` are those of the stand-in,
/// "FerretDB in place of MongoDB".
pub fn stood_in(name: &str, words: &str) -> String {
    let program = words.split(" in place of ").next().unwrap_or(words).trim_end_matches(',');
    let program = program.split(" of ").next().unwrap_or(program);
    format!("{program} for {name} *")
}

fn unit(unit: Unit, records: &[Record]) -> String {
    match unit {
        Unit::Seconds => "seconds".to_string(),
        Unit::RequestsPerS => "requests a second".to_string(),
        Unit::UnitsPerS => {
            let name = first(records).map_or("unit", |record| record.stream.unit.as_str());
            format!("{name}s a second")
        }
    }
}

fn setup(records: &[Record], standings: &Standings<'_>) -> Option<TodaySetup> {
    let first = first(records)?;
    let mut versions: Vec<String> = Vec::new();
    for record in records {
        let version = record.store.as_ref().map(|store| format!("{} {}", record.target.store, store.version));
        versions.extend(version.filter(|version| !versions.contains(version)));
    }
    let build = if first.debug_build { ", a debug build" } else { "" };
    Some(TodaySetup {
        kvfair: format!("{}{build}", first.kvfair),
        began: first.run.began.clone(),
        machine: machine(&first.machine),
        headline: words::headline(records, standings),
        versions,
        counts_energy: records.iter().flat_map(|record| &record.phases).any(|phase| phase.machine_joules.is_some()),
    })
}

/// "Intel(R) Xeon(R), 2 processors, 25 GB, Linux 6.1, kvm".
fn machine(machine: &Machine) -> String {
    let processors = units::counted(machine.cpus.into(), "processor");
    let memory = units::bytes(machine.memory_bytes);
    let all = [&machine.cpu, &processors, &memory, &machine.os, &machine.kernel, &machine.virtualisation];
    all.into_iter().map(String::as_str).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ")
}

fn panel_report(seen: &Evidence<'_>, panel: &Panel) -> PanelReport {
    let base = base(seen, panel);
    let rows = panel.cells.iter().map(|cell| cell_report(seen, panel, base, cell)).collect();
    PanelReport { title: panel.title.clone(), base: base.map(|(_, cell)| cell.name.clone()), rows }
}

/// The post's base where it was run or nothing was, else the first cell that was: of all panels, since a panel may have
/// no base of its own.
fn base<'a>(seen: &Evidence<'a>, panel: &Panel) -> Option<(&'a Panel, &'a PostCell)> {
    let is_run = |cell: &PostCell| matches!(seen.today.get(cell.id.as_str()), Some(CellToday::Run { .. }));
    let named = seen.post.cell(&panel.base).filter(|(_, cell)| is_run(cell));
    let is_here = |(of, _): &(&Panel, &PostCell)| of.point() == panel.point();
    let other = || seen.post.cells().filter(is_here).find(|(_, cell)| is_run(cell));
    named.or_else(other).or_else(|| seen.post.cell(&panel.base))
}

fn cell_report(seen: &Evidence<'_>, panel: &Panel, base: Option<(&Panel, &PostCell)>, cell: &PostCell) -> CellReport {
    let nothing = CellReport {
        name: cell.name.clone(),
        is_base: base.is_some_and(|(_, base)| base.id == cell.id),
        target: None,
        stand_in: None,
        then: cell.figure,
        then_ratio: base.and_then(|(_, base)| then_ratio(seen.post.unit, cell, base)),
        today: None,
        today_ratio: None,
        cpu_us_per_op: None,
        joules_per_op: None,
        why: None,
    };
    let (target, stand_in) = match seen.today.get(cell.id.as_str()) {
        Some(CellToday::Run { target, stand_in }) => (*target, *stand_in),
        Some(CellToday::Absent(why) | CellToday::LeftOut(why)) => {
            return CellReport { why: Some(why.clone()), ..nothing };
        }
        None => return nothing,
    };
    let counted = &seen.run.standings.counted;
    let of = |number: &(dyn Fn(&Record) -> Option<f64> + Sync)| {
        median(&measured::by_block(seen.run.records, counted, target, number))
    };
    let today = of(&|record| measured::figure(record, seen.post.unit, panel));
    let row = seen.run.rows.iter().find(|row| row.target == target);
    CellReport {
        target: Some(target.to_string()),
        stand_in: stand_in.map(|stand_in| stand_in.words.clone()),
        today,
        today_ratio: base
            .filter(|(_, base)| base.id != cell.id)
            .and_then(|base| today_ratio(seen, base, panel, target)),
        cpu_us_per_op: of(&|record| measured::cpu_us_per_op(record, panel)),
        joules_per_op: of(&|record| measured::joules_per_op(record, panel)),
        why: today.is_none().then(|| why(row)),
        ..nothing
    }
}

fn why(row: Option<&Row>) -> String {
    let status = row.map(|row| &row.status).filter(|status| !status.has_numbers());
    status.map_or_else(|| "other programs disturbed its trials".to_string(), |status| status.in_words())
}

fn then_ratio(unit: Unit, cell: &PostCell, base: &PostCell) -> Option<f64> {
    let (cell, base) = (cell.figure?, base.figure?);
    Some(if unit == Unit::Seconds { cell / base } else { base / cell })
}

/// In the blocks that both have.
fn today_ratio(seen: &Evidence<'_>, base: (&Panel, &PostCell), panel: &Panel, target: &str) -> Option<Versus> {
    let Some(CellToday::Run { target: base_target, .. }) = seen.today.get(base.1.id.as_str()) else { return None };
    let of = |target: &str, panel: &Panel| {
        let cost = |record: &Record| measured::cost(record, CostKind::Seconds, panel);
        measured::by_block(seen.run.records, &seen.run.standings.counted, target, cost)
    };
    let (one, other) = (of(target, panel), of(base_target, base.0));
    let both = one.iter().filter_map(|(block, cost)| Some((*cost, *other.get(block)?)));
    let (one, other): (Vec<f64>, Vec<f64>) = both.unzip();
    Some(LogRatios::of(&one, &other)?.ratio().into())
}

/// Whether records are those of a post's run, and of which: what was typed begins with the command and the number.
pub fn number_of(records: &[Record]) -> Option<&str> {
    match records.first()?.run.command.as_slice() {
        [name, number, ..] if name == NAME => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit::Exit;
    use crate::render::{OutputForm, printed};

    #[test]
    fn without_records_every_sentence_cannot_be_run_and_the_reasons_are_told() {
        let absent = |post: &Post| -> BTreeMap<String, String> {
            post.cells().map(|(_, cell)| (cell.target.clone(), format!("{} is not installed", cell.target))).collect()
        };
        let posts = posts().expect("they can be read");
        let reports: Vec<PostReport> = posts.iter().map(|post| report(post, &[], &absent(post))).collect();
        let all = || reports.iter().flat_map(|report| &report.sentences);
        assert!(all().count() > 20 && all().all(|one| one.judgement == Judgement::CannotBeRun));
        assert!(all().all(|one| one.why.ends_with("is not installed")), "{:?}", all().next());
        let cells = || reports.iter().flat_map(|report| &report.panels).flat_map(|panel| &panel.rows);
        assert!(cells().all(|cell| cell.today.is_none() && cell.why.is_some()));
        // The post's own ratios need nothing of today.
        assert!(cells().filter(|cell| cell.then.is_some()).all(|cell| cell.then_ratio.is_some()));
        assert!(headline(&reports).ends_with("0 still so, 0 reversed, 0 cannot be told, 25 cannot be run here."));
        let declined = declined().expect("they can be read");
        let shown = text::PostsShown { command: Vec::new(), exit: Exit::Ok, reports, declined };
        let printed = printed(&shown, Exit::Ok, OutputForm::Text, 80).expect("text");
        assert!(printed.contains("Gibbs") && printed.contains("35.7") && !printed.contains("counter"), "{printed}");
    }
}
