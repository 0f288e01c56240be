//! Results files over time.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

use super::super::args::History;
use super::super::shown::{print_report, read};
use super::super::{Exit, Usage, complain, paged, typed};
use super::decide;
use crate::harness::load::{OtherMethod, Parts};
use crate::harness::save;
use crate::report::history::{self, HistoryReport, HistoryRun, OtherMethodRun};
use crate::report::page::{self, Mask, RawResults};
use crate::report::render::csv::csv;
use crate::report::render::json;
use crate::report::render::{Block, Medium, Shown};

/// What may be typed beside files. The other options are of runs.
const OWN: [&str; 7] = ["--measure", "--svg", "--html", "--json", "--csv", "--markdown", "--color"];

pub fn over_time(args: &History) -> Result<Exit> {
    refuse_options_of_runs()?;
    let files = match args.what.as_slice() {
        [] => save::newest_first("kvfair history FILES")?,
        named => named.iter().map(PathBuf::from).collect(),
    };
    let Found { runs, passed, mut other_methods } = runs(&files, !args.what.is_empty())?;
    let mut report = history::history(&runs, args.measure, &decide::command);
    other_methods.sort();
    report.other_methods = other_methods;
    let form = args.how.look.forms.form();
    print_report(&OverTime(&report), Exit::Ok, form)?;
    if let Some(file) = &args.svg {
        let svg = page::history_svg(&report).ok_or_else(|| anyhow!("no run has a number that could be drawn"))?;
        save::write_new(&[(file.clone(), svg)])?;
        complain(&format!("chart: {}", file.display()));
    }
    if let Some(file) = &args.how.look.forms.html {
        let raw: Result<Vec<Option<RawResults>>> = runs.iter().map(|run| paged::raw(Path::new(&run.path))).collect();
        let raw: Vec<RawResults> = raw?.into_iter().flatten().collect();
        let records = runs.iter().flat_map(|run| run.records.iter().cloned()).collect::<Vec<_>>();
        let text = page::history_page(&report, &Mask::of(&records), &raw, &passed);
        save::write_new(&[(file.clone(), text)])?;
        complain(&format!("page: {}", file.display()));
    }
    Ok(Exit::Ok)
}

/// Options that say how versions are run would do nothing.
fn refuse_options_of_runs() -> Result<()> {
    let typed = typed();
    let options = typed.iter().skip_while(|word| *word != "history").filter(|word| word.starts_with('-'));
    let name = |word: &String| word.split('=').next().unwrap_or_default().to_string();
    match options.map(name).find(|name| !OWN.contains(&name.as_str())) {
        Some(name) => {
            let what =
                format!("{name} is for versions: results files are only read\nhint: kvfair history JOB VERSIONS...");
            Err(anyhow!(Usage(what)))
        }
        None => Ok(()),
    }
}

/// What files hold.
#[derive(Default)]
struct Found {
    runs: Vec<HistoryRun>,
    /// What was passed over, and why.
    passed: Vec<String>,
    /// Of those the runs that another method made.
    other_methods: Vec<OtherMethodRun>,
}

/// The runs of these files, and what was passed over. A file that cannot be read takes nothing from the others;
/// one that was named and is of another command is passed over like one that was found.
fn runs(files: &[PathBuf], are_named: bool) -> Result<Found> {
    let Found { mut runs, mut passed, mut other_methods } = Found::default();
    for file in files {
        let path = file.display().to_string();
        // The command that decides names the programs, which tables do not need.
        let read = read(file, Parts::All).map_err(|error| {
            let other = error.downcast_ref::<OtherMethod>();
            other_methods.extend(other.map(|other| OtherMethodRun::of(&other.began, &other.job, other.method, &path)));
            format!("{error:#}")
        });
        let read = read.and_then(|records| match history::no_run(&records) {
            Some(why) => Err(format!("{path}: {why}")),
            None => Ok(records),
        });
        match read {
            Ok(mut records) => {
                records.retain(|record| !record.ahead);
                runs.push(HistoryRun { path, records });
            }
            Err(why) => passed.push(why.lines().next().unwrap_or_default().to_string()),
        }
    }
    passed.iter().for_each(|why| complain(&format!("kvfair: skipped {why}")));
    if runs.is_empty() {
        let hint = if are_named { "name results files of `kvfair run`" } else { "`kvfair run fans` makes some" };
        bail!("no results file has a run that can be followed\nhint: {hint}");
    }
    Ok(Found { runs, passed, other_methods })
}

struct OverTime<'a>(&'a HistoryReport);

impl Shown for OverTime<'_> {
    fn exit(&self) -> Exit {
        Exit::Ok
    }

    /// A terminal has the changes first, with the commands that decide.
    fn blocks(&self, medium: Medium) -> Result<Vec<Block>> {
        let OverTime(report) = self;
        if medium != Medium::Page {
            return Ok(history::blocks(report));
        }
        let notes = history::notes(report).iter().map(|note| note.words().to_string()).collect();
        let headline = std::iter::once(Block::Headline(history::heading(report)));
        let tables = history::tables(report).into_iter().map(Block::Table);
        Ok(headline.chain(tables).chain([Block::List(notes)]).collect())
    }

    fn csv(&self) -> Result<String> {
        Ok(csv(history::COLUMNS, &history::dots(self.0), false))
    }

    fn json(&self, exit: Exit) -> Result<String> {
        json::object(&typed(), exit, self.0)
    }
}
