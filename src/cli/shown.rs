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
use crate::report::trials::{self, Trial};
use crate::report::versions::{self, VersionsShown};
use crate::report::{
    ahead, alike, answer, batch, below, claims, columns, costs, exit, json, next, notes, remarks, store_stats, sweep,
    warn, whole, words,
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
        complain(&format!("kvfair: {}: the run is still going on: this is not its end", path.display()));
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

    /// A table of targets; of a sweep one for each part of the job and measure, and what is to be said of them.
    fn tables(&self, medium: Medium) -> Vec<Block> {
        let RunShown { report, look } = self;
        if !report.is_swept {
            let ranks = if medium == Medium::Page { Ranks::InAColumn } else { Ranks::BeforeNames };
            let columns = if look.wide { TableColumns::All } else { TableColumns::Usual };
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
        let warned = || warn::printed(&warn::warnings(report), &look.no_warn, look.wide);
        let (sentence, warned) = parallel::both(is_many, || sentence(report), warned);
        around(report, look, (medium, self.tables(medium)), warned, (answer::answer(report), sentence))
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
    let sentences = [claims::sentence(rows, standings), batch::sentence(rows, standings), of_size(report)];
    sentences.into_iter().filter(|one| !one.is_empty()).collect::<Vec<_>>().join(" ")
}

/// The same one by one, without what the noise forbids.
pub fn sentences(report: &RunReport<'_>) -> Vec<String> {
    if !report.points.is_empty() {
        return sweep::sentences(&report.points);
    }
    let (rows, standings) = (&report.rows, &report.standings);
    let others = [batch::sentence(rows, standings), of_size(report)];
    claims::sentences(rows, standings).into_iter().chain(others.into_iter().filter(|one| !one.is_empty())).collect()
}

/// What the larger trials of a first look tell.
fn of_size(report: &RunReport<'_>) -> String {
    let full = report.ahead.first().and_then(|record| jobs::find(&record.job.name)).map(|kind| kind.default_units);
    full.map_or_else(String::new, |full| ahead::sentence(&report.rows, report.ahead, full, &report.standings.noise))
}

/// A line a trial, however long.
pub fn all(report: &RunReport<'_>, trials: &[Trial]) -> Vec<Block> {
    let table = Grid::of(trials::lines(trials));
    vec![Block::Headline(headline(report)), Block::WideTable(table)]
}

/// What stands above and below the tables of a run: first its answer.
pub fn around(
    report: &RunReport<'_>,
    look: &Look,
    (medium, tables): (Medium, Vec<Block>),
    warned: Vec<String>,
    (answer, sentence): (String, String),
) -> Result<Vec<Block>> {
    let mut blocks = vec![Block::Headline(answer), Block::Paragraph(headline(report))];
    blocks.extend(tables);
    let said = [Block::List(warned), Block::Paragraph(sentence)];
    if medium == Medium::Page {
        blocks.extend(said);
        return Ok(blocks);
    }
    if look.wide {
        blocks.extend(store_stats::blocks(report.records)?);
    }
    blocks.extend(below::below(report, look.wide));
    // Made data and what it gives are the same in every run: digests are for those who compare.
    let is_own = report.records.iter().any(|record| !matches!(record.job.data, Data::Recipe { .. }));
    let is_asked = look.wide || is_own || report.records.iter().any(|record| record.run.answers_only);
    blocks.push(words::answer(report.records, is_asked));
    blocks.push(Block::Remarks(notes::notes(report.records, look.wide)));
    blocks.extend(is_asked.then(|| Block::Paragraph(words::stream(report.records))));
    blocks.extend(said);
    let next = next::next(report, &Known { file: look.file.as_deref(), keeps_crash, has_name });
    blocks.extend(next.map(Statement::block));
    Ok(blocks)
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
