//! What is printed of a run's records, and where they come from when it was another day's run.

use std::path::Path;

use anyhow::{Result, anyhow, bail};

use super::args::Look;
use super::sized::SizedShown;
use super::{Exit, complain, grown, levered, target, terminal, versioned};
use crate::harness::load::{self, Parts};
use crate::harness::save;
use crate::jobs;
use crate::model::answers;
use crate::model::record::Record;
use crate::model::trial::{Data, Durability};
use crate::report::columns::{FieldLine, PartStep};
use crate::report::grid::{self, Grid};
use crate::report::limits::LimitsReport;
use crate::report::next::Known;
use crate::report::point::{Point, Statistic};
use crate::report::render::csv::csv;
use crate::report::render::{self, Block, Medium, OutputForm, Shown, Statement};
use crate::report::run_report::{Detail, RunReport};
use crate::report::sizes::{self, SizedReport};
use crate::report::table::{self, Ranks, TableColumns};
use crate::report::to_know::{self, Fact};
use crate::report::trials::{self, Trial};
use crate::report::versions::{self, VersionsShown};
use crate::report::warn::{self, Warning};
use crate::report::{
    ahead, alike, answer, batch, below, claims, columns, costs, exit, first_look, json, next, notes, remarks,
    store_stats, sweep, whole, words,
};
use crate::stats::parallel;
use crate::stores::{self, Adapter};

/// The error of results of which nothing can be shown.
#[derive(Debug)]
pub struct NothingShown(pub String);

impl std::fmt::Display for NothingShown {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NothingShown {}

/// The records of a results file, which are of one run.
pub fn read(path: &Path, parts: Parts) -> Result<Vec<Record>> {
    // Asked before: what ends meanwhile is called unfinished, and nothing unfinished is called whole.
    let is_under_way = save::is_being_written(path);
    let mut records = load::records(path, parts)?;
    records.retain(|record| !record.discarded);
    if records.is_empty() {
        let what = format!("{}: the machine disturbed every trial", path.display());
        return Err(anyhow!(NothingShown(format!("{what}\nhint: run it again when the machine is quiet"))));
    }
    if let Some((place, what)) = alike::mixed(&records) {
        bail!(
            "{}:{}: {what}: these are not shown together with line 1\nhint: show each run's own file; `kvfair compare \
             ONE.jsonl OTHER.jsonl` holds two against each other",
            path.display(),
            place + 1
        );
    }
    records.sort_by_key(|record| record.ahead);
    answers::note(&mut records);
    if is_under_way {
        complain(&format!("kvfair: {}: the run is still in progress: these results are incomplete", path.display()));
        records.iter_mut().for_each(|record| record.is_under_way = true);
    } else if let Some(what) = whole::cut_off(&records) {
        complain(&format!("kvfair: {}: the run was cut off by its time limit or by a signal: {what}", path.display()));
    }
    Ok(records)
}

/// Prints the records of a command that measures jobs, and says how one ends that did no more.
pub fn print_records(records: &[Record], look: &Look) -> Result<Exit> {
    let (text, exit) = shown(records, look)?;
    print_text(&text, look.forms.form())?;
    Ok(exit)
}

/// The text of these records, and how a command ends that did no more.
pub fn shown(records: &[Record], look: &Look) -> Result<(String, Exit)> {
    let form = look.forms.form();
    let text = |shown: &dyn Shown| {
        let exit = shown.exit();
        Ok((render::printed(shown, exit, form, terminal::width())?, exit))
    };
    // All trials, and CSV, are those of the run.
    match versioned::labels(records).filter(|_| form != OutputForm::Csv && !look.all) {
        Some(labels) => {
            let (report, command) = (&versions::report(records, &labels), &records[0].run.command);
            of_a_run(&report.named(records), look, &|run| text(&VersionsShown { run, report, command }))
        }
        None => of_a_run(records, look, &text),
    }
}

/// Writes a report as text, and says how its command ends.
type Write<'a> = dyn Fn(&dyn Shown) -> Result<(String, Exit)> + 'a;

/// Writes the one report that these records have.
fn of_a_run(records: &[Record], look: &Look, write: &Write<'_>) -> Result<(String, Exit)> {
    if levered::is_levers(records) {
        return match look.all || look.wide {
            true => of_a_run(&levered::by_targets(records), look, write),
            false => write(&levered::shown(records)?),
        };
    }
    if grown::is_growth(records) {
        return write(&grown::shown(records, look)?);
    }
    if let Some(report) = LimitsReport::of(records).filter(|_| !look.all && !look.wide) {
        return write(&report);
    }
    let parts = sizes::parts(records);
    if !parts.is_empty() {
        return write(&SizedShown { report: &SizedReport::of(&parts, detail(look))?, look });
    }
    write(&RunShown { report: &report(records, look, detail(look))?, look })
}

/// Prints a report in this form. `exit` is how its command ends.
pub fn print_report(shown: &dyn Shown, exit: Exit, form: OutputForm) -> Result<Exit> {
    print_text(&render::printed(shown, exit, form, terminal::width())?, form)?;
    Ok(exit)
}

/// What people read is in colours where they are wanted.
pub fn print_text(text: &str, form: OutputForm) -> Result<()> {
    if form == OutputForm::Text { terminal::print_table(text) } else { terminal::print(text) }
}

/// The report of a run, with the statistic of `--stat`.
pub fn report<'a>(records: &'a [Record], look: &Look, detail: Detail) -> Result<RunReport<'a>> {
    let mut report = RunReport::of(records, detail)?;
    if look.stat == Statistic::Best {
        report.points.iter_mut().for_each(Point::tell_best);
    }
    Ok(report)
}

/// The detail that these options show.
pub fn detail(look: &Look) -> Detail {
    match look.forms.form() {
        OutputForm::Csv | OutputForm::Json => Detail::All,
        OutputForm::Text | OutputForm::Markdown => Detail::Table { wide: look.wide },
    }
}

/// A run with one size and one round-trip time.
struct RunShown<'a> {
    report: &'a RunReport<'a>,
    look: &'a Look,
}

impl RunShown<'_> {
    fn trials(&self) -> Result<Vec<Trial>> {
        trials::trials(self.report.records, self.report.ahead, self.report.is_swept)
    }

    /// A table of targets, in a first look the best ones; of a sweep one for each part of the job and measure, and what
    /// is to be said of them.
    fn tables(&self, medium: Medium) -> Vec<Block> {
        let RunShown { report, look } = self;
        if !report.is_swept {
            let ranks = if medium == Medium::Page { Ranks::InAColumn } else { Ranks::BeforeNames };
            let columns = if look.wide { TableColumns::All } else { TableColumns::Usual };
            if report.is_first_look() && is_brief(look, medium) {
                let (best, others) = first_look::best_of_each_kind(&report.rows);
                let lines = table::lines(&best, TableColumns::Six, ranks);
                return vec![Block::Table(Grid::of(lines)), Block::Lines(others)];
            }
            let lines = table::lines(&report.rows, columns, ranks);
            return vec![fitted(look.wide, Grid::of(lines))];
        }
        let columns = match medium {
            Medium::Terminal(columns) if !look.wide => columns,
            Medium::Terminal(_) | Medium::Page => usize::MAX,
        };
        let grids = grid::grids(&report.points, look.wide, columns).into_iter();
        let silent = Grid::of(grid::silent(&report.rows));
        let below = [Block::Remarks(remarks::remarks(&report.points)), Block::Table(silent)];
        grids.map(|grid| fitted(look.wide, grid)).chain(below).collect()
    }
}

/// The table, which is made to fit unless it is to be wide.
pub fn fitted(wide: bool, grid: Grid) -> Block {
    if wide { Block::WideTable(grid) } else { Block::Table(grid) }
}

impl Shown for RunShown<'_> {
    fn exit(&self) -> Exit {
        exit::of(self.report)
    }

    fn blocks(&self, medium: Medium) -> Result<Vec<Block>> {
        let RunShown { report, look } = self;
        if look.all {
            return Ok(all(report, &self.trials()?));
        }
        let is_many = costs::is_many(report.records);
        let is_brief = is_brief(look, medium);
        let said = || if is_brief { facts(report) } else { vec![Fact::new(CLAIMS, sentence(report))] };
        let (said, warnings) = parallel::both(is_many, said, || warn::warnings(report));
        let told = Around { answer: answer::answer(report), warnings, said };
        around(report, look, medium, self.tables(medium), told)
    }

    fn csv(&self) -> Result<String> {
        let RunShown { report, look } = self;
        Ok(match look.all {
            true => csv(trials::TRIALS, &self.trials()?, look.wide),
            false => csv(columns::ROWS, &lines(report), look.wide),
        })
    }

    fn json(&self, exit: Exit) -> Result<String> {
        let RunShown { report, look } = self;
        let document = json::ReportJson {
            exit,
            claims: json::claims(report, PartStep::default()),
            warnings: warn::heard(&warn::warnings(report), &look.no_warn),
            sentence: sentence(report),
        };
        match look.all {
            true => json::document(report, &document, json::JsonRows::Trials(&self.trials()?)),
            false => json::document(report, &document, json::JsonRows::Rows(&lines(report))),
        }
    }
}

fn lines(report: &RunReport<'_>) -> Vec<FieldLine> {
    match report.is_swept {
        true => columns::swept_lines(&report.points, &report.rows),
        false => columns::lines(&report.rows, &report.standings),
    }
}

pub fn sentence(report: &RunReport<'_>) -> String {
    let (rows, standings) = (&report.rows, &report.standings);
    if !report.points.is_empty() {
        return claims::doubted(standings, sweep::sentences(&report.points).join(" "));
    }
    let sentences = [claims::sentence(rows, standings)].into_iter().chain(others(report));
    sentences.filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The same one by one, without what the noise forbids.
pub fn sentences(report: &RunReport<'_>) -> Vec<String> {
    if !report.points.is_empty() {
        return sweep::sentences(&report.points);
    }
    claims::sentences(&report.rows, &report.standings).into_iter().chain(others(report)).collect()
}

/// What is said of batch engines, and of the larger trials of a first look.
fn others(report: &RunReport<'_>) -> Vec<String> {
    let of_batch = batch::sentence(&report.rows, &report.standings);
    [of_batch].into_iter().filter(|one| !one.is_empty()).chain(of_size(report)).collect()
}

/// What a terminal shows of it: what the answer and the table do not tell already.
fn facts(report: &RunReport<'_>) -> Vec<Fact> {
    let claimed = match report.points.is_empty() {
        true => to_know::claimed_beside_time(&report.rows, &report.standings),
        false => sweep::sentences(&report.points),
    };
    let of_batch = batch::sentence(&report.rows, &report.standings);
    let of_size = of_size(report).into_iter().map(|sentence| Fact::new("size", sentence));
    let claimed = claimed.into_iter().map(|sentence| Fact::new(CLAIMS, sentence));
    of_size.chain(claimed).chain([Fact::new("batch engines", of_batch)]).collect()
}

/// What sentences about differences are called where they are not shown.
pub const CLAIMS: &str = "claims";

/// What the larger trials of a first look tell.
fn of_size(report: &RunReport<'_>) -> Vec<String> {
    let full = report.ahead.first().and_then(|record| jobs::find(&record.job.name)).map(|kind| kind.default_units);
    let noise = &report.standings.noise;
    full.map_or_else(Vec::new, |full| ahead::sentences(&report.rows, report.ahead, full, noise))
}

/// Whether a reader of a terminal is shown the answer, the table, what to know in three lines, and the next command.
pub fn is_brief(look: &Look, medium: Medium) -> bool {
    medium != Medium::Page && !look.wide
}

/// A line a trial, however long.
pub fn all(report: &RunReport<'_>, trials: &[Trial]) -> Vec<Block> {
    let table = Grid::of(trials::lines(trials));
    vec![Block::Headline(headline(report)), Block::WideTable(table)]
}

/// What stands around the tables of a run.
pub struct Around {
    pub answer: String,
    pub warnings: Vec<Warning>,
    pub said: Vec<Fact>,
}

/// The tables of a run and what stands above and below them: first its answer.
pub fn around(
    report: &RunReport<'_>,
    look: &Look,
    medium: Medium,
    tables: Vec<Block>,
    told: Around,
) -> Result<Vec<Block>> {
    let told = Around { warnings: warn::heard(&told.warnings, &look.no_warn), ..told };
    if is_brief(look, medium) {
        return Ok(in_brief(report, look, tables, told));
    }
    let mut blocks = vec![Block::Headline(told.answer), Block::Paragraph(headline(report))];
    blocks.extend(tables);
    let sentence = told.said.into_iter().map(Fact::text).collect::<Vec<_>>().join(" ");
    let said = [Block::List(warn::printed(&told.warnings)), Block::Paragraph(sentence)];
    if medium == Medium::Page {
        blocks.extend(said);
        return Ok(blocks);
    }
    blocks.extend(store_stats::blocks(report.records)?);
    blocks.extend(below::below(report));
    blocks.push(words::answer(report.records, true));
    blocks.push(Block::Remarks(notes::notes(report.records, true)));
    blocks.push(Block::Paragraph(words::stream(report.records)));
    blocks.extend(said);
    blocks.extend(next_command(report, look));
    Ok(blocks)
}

/// The same for a terminal: below the tables at most three lines of what to know, and the next command.
fn in_brief(report: &RunReport<'_>, look: &Look, tables: Vec<Block>, told: Around) -> Vec<Block> {
    let records = report.records;
    let headline = words::headline_in_brief(records, &report.standings);
    let mut blocks = vec![Block::Headline(told.answer), Block::Paragraph(headline)];
    blocks.extend(tables);
    blocks.extend(below::tables(report));
    // Made data and what it gives are the same in every run: digests are for those who compare.
    let is_own = records.iter().any(|record| !matches!(record.job.data, Data::Recipe { .. }));
    let answers = match is_own || records.iter().any(|record| record.run.answers_only) {
        true => {
            blocks.extend([words::answer(records, true), Block::Paragraph(words::stream(records))]);
            String::new()
        }
        false => words::answers_in_brief(records),
    };
    let first = std::iter::once(Fact::new("answers", answers)).chain(notes::in_vain(records));
    blocks.push(to_know::block(first.collect(), &told.warnings, told.said));
    blocks.extend(next_command(report, look));
    blocks
}

/// What to type next; of a first look the commands for what it has not measured.
fn next_command(report: &RunReport<'_>, look: &Look) -> Option<Block> {
    if let Some(commands) = Some(report).filter(|report| report.is_first_look()).and_then(first_look) {
        return Some(Block::Aside(commands));
    }
    let next = next::next(report, &Known { file: look.file.as_deref(), keeps_crash, has_name })?;
    Some(match next {
        Statement::Sentence(words) => Block::Paragraph(format!("next: {words}")),
        Statement::Command(_) => next.block(),
    })
}

fn first_look(report: &RunReport<'_>) -> Option<String> {
    first_look::next(report, keeps_crash)
}

/// Whether a store of that name keeps the durability level. One that is not known here is another kvfair's: it is not
/// forbidden.
pub fn keeps_crash(store: &str) -> bool {
    stores::find(store).is_none_or(|adapter| (adapter.keeps)(Durability::Crash).is_ok())
}

/// Whether users can type a store's name: a server may have told another one.
pub fn has_name(store: &str) -> bool {
    stores::find(store).is_some()
}

pub fn headline(report: &RunReport<'_>) -> String {
    words::headline(report.records, &report.standings)
}

/// Says in one line which stores are not here, on a terminal.
pub fn tell_absent() {
    let can_be_here = |adapter: &&&Adapter| adapter.role.is_offered() && !adapter.is_only_by_url();
    let absent = stores::ALL.iter().filter(can_be_here).filter(|adapter| !target::is_here(adapter));
    let absent: Vec<&str> = absent.map(|adapter| adapter.name).collect();
    if !absent.is_empty() && terminal::is_watched() {
        complain(&format!("not here: {} (`kvfair stores` says how to get them)", absent.join(", ")));
    }
}
