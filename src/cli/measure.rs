//! One run from its plan to its records: size it, run it, save it, and say what happened. Results are printed
//! elsewhere.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::args::Run;
use super::live::Screen;
use super::points::Rates;
use super::run::plan_of;
use super::{Exit, Usage, complain, exit_of, interrupted, load, target, verified};
use crate::lab::plan::Plan;
use crate::lab::save::{self, Results};
use crate::lab::signals::Interrupt;
use crate::lab::timing::Timer;
use crate::lab::trial::Bench;
use crate::lab::{gates, scratch, visits};
use crate::report::cells::{self, Row};
use crate::report::standing::standings;
use crate::report::unclear;
use crate::study::gated::Gates;
use crate::study::pilot;
use crate::study::rounds::{self, Ended, Stopped, Time};
use crate::words::answers;
use crate::words::disturbed::Disturbed;
use crate::words::effort::Blocks;
use crate::words::names::file_name;
use crate::words::record::Record;
use crate::words::units::thousands;

/// What a run needs besides its plan.
struct Errand<'a> {
    plan: Plan,
    budget: Option<Duration>,
    size: Sizing,
    /// Rates as hundredths of what the slowest target can do, which is to be seen first.
    shares: Vec<u32>,
    /// Whether the user said which targets: none of those is left out.
    targets_named: bool,
    output: Option<&'a Path>,
}

/// How a job's size goes with the time that a run has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sizing {
    /// As it was asked for, or as it is.
    Kept,
    /// The same, and the time that it will take is said before.
    Foretold,
    /// By a pilot.
    Fitted,
    /// A program of the user's, which has the size that it has: the least blocks are run, however long they take.
    Own,
}

/// What a run left: every record, and how it ended.
pub struct Ran {
    pub records: Vec<Record>,
    pub ended: Result<Exit>,
}

/// Everything but the printing of results, which are not lost whatever happens.
pub fn measure(args: &Run) -> Result<Ran> {
    let plan = plan_of(args)?;
    // A rate is kept for its time whatever the budget is: then it is blocks that are left out.
    let may_size = plan.job.units.is_none() && args.how.input.is_none() && args.how.load.rate.is_none();
    let budget = match args.how.blocks {
        _ if args.how.answers_only => None,
        None => args.how.budget.or(args.how.effort.unwrap_or_default().budget()),
        Some(_) => args.how.budget,
    };
    let size = match (budget, may_size) {
        (None, _) => Sizing::Kept,
        (Some(_), _) if plan.kind.is_none() && args.how.budget.is_none() => Sizing::Own,
        (Some(_), _) if plan.kind.is_none() => Sizing::Kept,
        (Some(_), true) => Sizing::Fitted,
        (Some(_), false) if args.how.budget.is_none() => Sizing::Foretold,
        (Some(_), false) => Sizing::Kept,
    };
    let (targets_named, output) = (!args.targets.is_empty() || plan.kind.is_none(), args.how.output.as_deref());
    let shares = match &args.how.load.rate {
        Some(Rates::Shares(shares)) => shares.clone(),
        _ => Vec::new(),
    };
    carry_out(Errand { plan, budget, size, shares, targets_named, output })
}

/// The plot of a run: prepare, size, run, print.
fn carry_out(mut errand: Errand<'_>) -> Result<Ran> {
    let timer = Timer::start();
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let path =
        errand.output.map_or_else(|| save::default_path(&errand.plan.began, &errand.plan.job.name), Path::to_path_buf);
    let mut results = Results::create(&path)?;
    errand.plan.visits = Some(visits::beside(&path));
    let ran = (|| {
        if let (Sizing::Fitted, Some(budget)) = (errand.size, errand.budget) {
            fit_into(budget, &mut errand, scratch.path(), &interrupt)?;
        }
        if !errand.shares.is_empty() {
            let mut noisy = |record: &Record, what: &Disturbed| {
                complain(&discarded(record, what));
                results.save(record)
            };
            let (shares, scratch) = (&errand.shares, scratch.path());
            let words = pilot::rate_by_share(shares, &mut errand.plan, scratch, &interrupt, &mut noisy)?;
            complain(&format!("kvfair: {words}"));
            let untimely = errand
                .plan
                .job
                .load
                .as_ref()
                .and_then(|load| load::untimely(load, errand.plan.job.units, errand.plan.timeout));
            untimely.map_or(Ok(()), |what| Err(anyhow!(Usage(what))))?;
        }
        let mut bench = Bench::set_up(&errand.plan, scratch.path(), &interrupt)?;
        if errand.plan.blocks.may_claim() {
            let data_bytes = errand.plan.kind.map(|_| bench.data(1).summary.data_bytes);
            bench.preflight = Some(gates::preflight(scratch.path(), data_bytes));
        }
        let units_of_input = bench.data(1).summary.stream.units;
        let units = errand.plan.units_of_a_trial(units_of_input);
        let mut screen = Screen::new(errand.plan.blocks, errand.plan.chosen.len(), units);
        if errand.size == Sizing::Foretold {
            foretell(&errand, units_of_input, scratch.path(), &interrupt)?;
        }
        let least_is_run = matches!(errand.size, Sizing::Foretold | Sizing::Own);
        let time = errand.budget.map(|budget| Time { left: timer.left_of(budget), least_is_run });
        let ended = rounds::run(&bench, time, &mut |event| {
            // First the screen: a record that cannot be saved is shown all the same.
            screen.tell(&event);
            match &event {
                rounds::Event::Finished(record) => results.save(record),
                rounds::Event::Discarded(record, what) => {
                    complain(&discarded(record, what));
                    results.save(record)
                }
                _ => Ok(()),
            }
        });
        // Whatever went wrong, what was finished is shown.
        Ok((ended, screen.end()))
    })();
    tell_left(&path);
    let (ended, mut records) = match ran {
        Ok(ran) => ran,
        Err(_) if interrupt.is_set() => (Ok(Ended::Interrupted(None)), Vec::new()),
        Err(error) => {
            results.discard_if_empty();
            return Err(error);
        }
    };
    answers::note(&mut records);
    let ended = finish(&errand, &records, &mut results, ended, &interrupt);
    verified::note(&mut records);
    Ok(Ran { records, ended })
}

/// Says how to remove what could not be taken back.
pub fn tell_left(results: &Path) {
    // The results are there all the same.
    for visit in visits::left(&visits::beside(results)).unwrap_or_default() {
        let (label, results) = (visit.target.label, results.display());
        // What was given a name is called by it, and reached by its URL.
        let url = if label.contains(':') { &label } else { "URL" };
        complain(&format!(
            "kvfair: {label} may hold keys of this run: `kvfair clean {url} --of {results}` removes them"
        ));
    }
}

/// Repeats of pilots that the machine disturbed take such a part of the time at the most.
const REPEATED: u32 = 10;

/// "redis: discarded: other programs used 94 % of the CPU".
fn discarded(record: &Record, what: &Disturbed) -> String {
    format!("{}: discarded: {what}", record.target.label)
}

/// Sizes the job by pilots, and says so: they take a part of the time.
fn fit_into(budget: Duration, errand: &mut Errand<'_>, scratch: &Path, interrupt: &Interrupt) -> Result<()> {
    let unit = errand.plan.kind.map_or("unit", |kind| kind.unit);
    let mut tell = |units| complain(&format!("kvfair: a pilot of {} {unit}s on each target", thousands(units)));
    let mut gates = Gates::new(budget / REPEATED);
    let (plan, all_stay) = (&mut errand.plan, errand.targets_named);
    let slow = pilot::fit_into(budget, plan, !all_stay, scratch, interrupt, (&mut gates, &mut tell))?.join(" ");
    if let Some(what) = &gates.disturbed {
        complain(&format!("kvfair: the pilots were disturbed ({what}): the job may be smaller than the time allows"));
    }
    if !slow.is_empty() {
        let job = &errand.plan.job.name;
        complain(&format!("kvfair: too slow for a short look: {slow}; by name: kvfair run {job} {slow}"));
    }
    Ok(())
}

fn finish(
    errand: &Errand<'_>,
    records: &[Record],
    results: &mut Results,
    ended: Result<Ended>,
    interrupt: &Interrupt,
) -> Result<Exit> {
    if records.is_empty() {
        results.discard_if_empty();
    } else {
        complain(&format!("results: {}", results.path().display()));
    }
    let standings = standings(records);
    let rows = cells::rows(records, &standings);
    kept(errand, &rows);
    match ended? {
        Ended::Interrupted(left_behind) => {
            left_behind.iter().for_each(|what| complain(&format!("kvfair: {what}")));
            return Ok(interrupted(interrupt, &format!("{} trials were finished", records.len())));
        }
        Ended::Stopped(stopped) => complain(&in_words(stopped, errand.plan.blocks)),
    }
    Ok(match exit_of(records, &rows) {
        // All went well, but what was asked for cannot be said here.
        Exit::Ok if standings.refused.is_some() || unclear::is_any(records, &standings.counted) => Exit::Inconclusive,
        exit => exit,
    })
}

/// What a size that was asked for will take: said before, so that it can be thought better of.
fn foretell(errand: &Errand<'_>, units: u64, scratch: &Path, interrupt: &Interrupt) -> Result<()> {
    let plan = &errand.plan;
    let mut gates = Gates::new(errand.budget.unwrap_or_default() / REPEATED);
    let takes_s = pilot::foresee(plan, units, scratch, interrupt, &mut gates)?.as_secs_f64();
    let takes = if takes_s < 90.0 { format!("{takes_s:.0} s") } else { format!("{:.0} minutes", takes_s / 60.0) };
    let noisy = gates.disturbed.map_or_else(String::new, |what| format!("; the pilot was disturbed: {what}"));
    complain(&format!("kvfair: about {takes} for {} blocks and one that is not counted{noisy}", plan.blocks.least));
    Ok(())
}

/// Why a run stopped.
fn in_words(stopped: Stopped, blocks: Blocks) -> String {
    match stopped {
        Stopped::AllBlocks => "stopped: all blocks were run".to_string(),
        Stopped::Narrow(widest) => format!("stopped: intervals are within {:.1} % to either side", widest * 100.0),
        Stopped::Alone => "stopped: the least blocks were run, and there is nothing to compare with".to_string(),
        Stopped::Budget => "stopped: no further block fitted into the time".to_string(),
        Stopped::Noise => format!("stopped: {} blocks were discarded as noisy", blocks.most),
    }
}

/// The commands that query what `--keep` left behind.
fn kept(errand: &Errand<'_>, rows: &[Row]) {
    let Some(keep) = &errand.plan.keep else { return };
    for row in rows.iter().filter(|row| row.trials > 0 && !row.control) {
        let Some(chosen) = errand.plan.chosen.iter().find(|chosen| chosen.target.label == row.target) else { continue };
        let place = keep.join(file_name(&row.target));
        let name = target::managed_name(chosen.adapter, chosen.target.transport);
        let query = if errand.plan.job.name == "fans" {
            format!("kvfair query {name}:{} 'Michael Jackson'", place.display())
        } else {
            place.display().to_string()
        };
        complain(&format!("kept: {query}"));
    }
}
