//! Results files over time.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow, bail};

use super::super::args::{History, Look};
use super::super::shown::read;
use super::super::{Exit, Usage, complain, paged, print, typed};
use super::decide;
use crate::harness::load::{OtherMethod, Parts};
use crate::harness::save;
use crate::report::history::{self, HistoryReport, HistoryRun, OtherMethodRun};
use crate::report::page::{self, Mask, RawResults};
use crate::report::{export, json};

/// What may be typed beside files. The other options are of runs.
const OWN: [&str; 6] = ["--measure", "--svg", "--html", "--json", "--markdown", "--color"];

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
    print(&told(&report, &args.how.look)?)?;
    if let Some(file) = &args.svg {
        let svg = page::history_svg(&report).ok_or_else(|| anyhow!("no run has a number that could be drawn"))?;
        save::write_new(&[(file.clone(), svg)])?;
        complain(&format!("chart: {}", file.display()));
    }
    if let Some(file) = &args.how.look.html {
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
    passed.iter().for_each(|why| complain(&format!("kvfair: passed over {why}")));
    if runs.is_empty() {
        let hint = if are_named { "name results files of `kvfair run`" } else { "`kvfair run fans` makes some" };
        bail!("no results file has a run that can be followed\nhint: {hint}");
    }
    Ok(Found { runs, passed, other_methods })
}

fn told(report: &HistoryReport, look: &Look) -> Result<String> {
    Ok(match look {
        Look { json: true, .. } => json::object(&typed(), Exit::Ok, report)?,
        Look { markdown: true, .. } => {
            let grids = history::tables(report).into_iter();
            let tables =
                grids.map(|grid| format!("{}\n\n{}", export::escaped(&grid.title), export::markdown(&grid.lines)));
            let notes: Vec<String> = history::notes(report).iter().map(|note| note.words().to_string()).collect();
            let parts: Vec<String> = tables.chain([export::listed(&notes)]).collect();
            export::page(&history::heading(report), &parts)
        }
        _ => history::text(report),
    })
}
