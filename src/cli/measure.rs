//! One run from its plan to its records: size it, run it, save it, and say what happened. Results are printed
//! elsewhere.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};

use super::absent::{IfMissing, without_missing};
use super::args::RunArgs;
use super::contact::contact;
use super::live::{Screen, discarded};
use super::planned::{plan_of, resolve_input};
use super::points::Rates;
use super::{Exit, Usage, agents, complain, foretold, interrupted, load, sized, target, verified};
use crate::harness::dataset::DataSet;
use crate::harness::plan::{Chosen, Plan};
use crate::harness::save::{self, Results};
use crate::harness::signals::Interrupt;
use crate::harness::timing::{End, Timer};
use crate::harness::trial::Bench;
use crate::harness::{gates, network, pin, scratch, visits};
use crate::jobs::lookup::LOOKUP;
use crate::jobs::ngrams::NGRAMS;
use crate::model::answers;
use crate::model::disturbed::Disturbed;
use crate::model::effort::Blocks;
use crate::model::names::file_name;
use crate::model::network::Network;
use crate::model::record::{Outcome, Record};
use crate::model::shell;
use crate::model::trial::{Data, Transport, file_in_words};
use crate::model::units::thousands;
use crate::report::ahead;
use crate::report::cells::Row;
use crate::report::run_report::RunReport;
use crate::report::typed;
use crate::scheduler::closed;
use crate::scheduler::gated::Gates;
use crate::scheduler::pilot::{self, Freedom};
use crate::scheduler::rounds::{self, Ended, RunEnd, Time};

/// What a run needs besides its plan.
struct Errand<'a> {
    plan: Plan,
    time: Option<Budget>,
    size: Sizing,
    /// Rates as hundredths of what the slowest target can do, which is to be seen first.
    shares: Vec<u32>,
    /// Whether the user said which targets: none of those is left out.
    targets_named: bool,
    /// A larger job is tried at the end.
    looks_ahead: bool,
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
    /// A program of the user's, which has the size that it has: what it takes is seen in the first block.
    Own,
}

/// The time that a run has.
#[derive(Clone, Copy, Debug)]
struct Budget {
    /// No block is begun that would outlast it.
    whole: Duration,
    /// But for the least blocks; what is under way then is cut off.
    at_most: Duration,
}

/// What the blocks of a first look leave to the larger job at least.
const AHEAD: Duration = Duration::from_secs(8);

/// An effort's time is about so long.
const ABOUT: f64 = 1.25;

/// What a run left: every record, and how it ended.
pub struct Ran {
    pub records: Vec<Record>,
    pub ended: Result<Exit>,
    /// Why its results file does not hold them: said when all is printed.
    pub lost: Option<anyhow::Error>,
    /// Its results file.
    pub path: PathBuf,
}

/// Everything but the printing of results, which are not lost whatever happens.
pub fn measure(args: &RunArgs) -> Result<Ran> {
    measure_plan(args, plan_of(args)?)
}

/// The same of a plan that was made of these arguments.
pub fn measure_plan(args: &RunArgs, mut plan: Plan) -> Result<Ran> {
    plan.chosen = installed(args, plan.chosen)?;
    // A rate is kept for its time whatever the budget is: then it is blocks that are left out.
    let may_size = plan.job.units.is_none() && args.how.input.is_none() && args.how.load.rate.is_none();
    let time = budget_of(args);
    let size = match time {
        None => Sizing::Kept,
        Some(_) if plan.kind.is_none() => Sizing::Own,
        Some(_) if may_size => Sizing::Fitted,
        Some(_) => Sizing::Foretold,
    };
    let (targets_named, output) = (!args.targets.is_empty() || plan.kind.is_none(), args.how.output.as_deref());
    let shares = match &args.how.load.rate {
        Some(Rates::Shares(shares)) => shares.clone(),
        _ => Vec::new(),
    };
    carry_out(Errand { plan, time, size, shares, targets_named, looks_ahead: false, output })
}

/// The targets whose stores are installed.
pub fn installed(args: &RunArgs, chosen: Vec<Chosen>) -> Result<Vec<Chosen>> {
    // A program opens embedded stores by itself.
    let is_needed = |one: &Chosen| args.own.exec.is_none() || one.adapter.server.is_some();
    without_missing(chosen, is_needed, IfMissing::of(args.how.skip_missing))
}

/// The same for the first look: after its minute, the job some times as large on a few targets.
pub fn measure_and_look_ahead(args: &RunArgs, whole: Duration, at_most: Duration) -> Result<Ran> {
    let (plan, time) = (plan_of(args)?, Some(Budget { whole, at_most }));
    let (size, shares) = (Sizing::Fitted, Vec::new());
    carry_out(Errand { plan, time, size, shares, targets_named: false, looks_ahead: true, output: None })
}

/// A time that was asked for is kept, and an effort's is kept about.
fn budget_of(args: &RunArgs) -> Option<Budget> {
    let effort = args.how.effort.unwrap_or_default().budget().filter(|_| args.how.blocks.is_none());
    let kept = args.how.budget.map(|whole| Budget { whole, at_most: whole });
    let about = || effort.map(|whole| Budget { whole, at_most: whole.mul_f64(ABOUT) });
    kept.or_else(about).filter(|_| !args.how.answers_only)
}

/// The plot of a run: prepare, size, run, print.
fn carry_out(mut errand: Errand<'_>) -> Result<Ran> {
    contact(&errand.plan)?;
    let timer = Timer::start();
    errand.plan.end = errand.time.map(|time| End::within(time.at_most));
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let path =
        errand.output.map_or_else(|| save::default_path(&errand.plan.began, &errand.plan.job.name), Path::to_path_buf);
    let mut results = Results::create(&path)?;
    errand.plan.visits = Some(visits::beside(&path));
    let ran = run_blocks(&mut errand, &timer, scratch.path(), &interrupt, &mut results);
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
    let lost = results.is_there().err().filter(|_| !records.is_empty());
    let ended = finish(&errand, &records, &mut results, ended, &interrupt);
    verified::note(&mut records);
    Ok(Ran { records, ended, lost, path })
}

/// How a command ends whose results file may be lost: a failure is said, and the loss with it.
pub fn or_lost(ended: Result<Exit>, lost: Option<anyhow::Error>) -> Result<Exit> {
    match (ended, lost) {
        (Ok(_), Some(lost)) => Err(lost),
        (Err(error), Some(lost)) => {
            complain(&format!("kvfair: {lost:#}"));
            Err(error)
        }
        (ended, None) => ended,
    }
}

/// Says how to remove what could not be taken back.
pub fn tell_left(results: &Path) {
    // The results are there all the same.
    for visit in visits::left(&visits::beside(results)).unwrap_or_default() {
        let (label, results) = (visit.target.label, shell::shown(&results.display().to_string()));
        // What was given a name is called by it, and reached by its URL.
        let url = if label.contains(':') { shell::shown(&label) } else { "URL".to_string() };
        // Then nobody can be asked there.
        let (pipe, yes) = if visit.job.data.is_stdin() { ("... | ", " --yes") } else { ("", "") };
        complain(&format!(
            "kvfair: {label} may hold keys of this run: `{pipe}kvfair clean {url} --of {results}{yes}` removes them"
        ));
    }
}

/// Repeats of pilots that the machine disturbed take such a part of the time at the most.
const REPEATED: u32 = 10;

/// How the blocks ended, and all records.
type Blocked = (Result<Ended>, Vec<Record>);

/// Pilots, data, and all blocks.
fn run_blocks(
    errand: &mut Errand<'_>,
    timer: &Timer,
    scratch: &Path,
    interrupt: &Interrupt,
    results: &mut Results,
) -> Result<Blocked> {
    agents::greet(&errand.plan, scratch, interrupt)?;
    resolve_input(&mut errand.plan, scratch, interrupt)?;
    let left = errand.time.map(|time| timer.left_of(time.whole)).unwrap_or_default();
    if errand.size == Sizing::Fitted {
        fit_into(left, errand, scratch, interrupt)?;
    }
    if !errand.shares.is_empty() {
        rate_by_share(errand, scratch, interrupt, results)?;
    }
    let data = data_of(&errand.plan, scratch, interrupt)?;
    let mut sizes: Vec<u64> = data.iter().map(|data| data[0].summary.stream.units).collect();
    sizes.dedup();
    holds_what_is_asked(&errand.plan, &sizes)?;
    if let (Sizing::Foretold, Some(time)) = (errand.size, errand.time) {
        foretell(errand, &sizes, left, (scratch, interrupt), || timer.left_of(time.at_most))?;
    }
    let plan = &errand.plan;
    let mut plans = plan.parts();
    plans.iter_mut().try_for_each(|part| ping(part, scratch))?;
    let with = |(plan, data)| Bench::with(plan, data, scratch, interrupt);
    let mut benches: Vec<Bench<'_>> = plans.iter().zip(data).map(with).collect();
    if plan.blocks.may_claim() {
        let bytes = benches.iter().map(|bench| bench.data(1).summary.data_bytes).max();
        let preflight = gates::preflight(scratch, bytes.filter(|_| plan.kind.is_some()));
        benches.iter_mut().for_each(|bench| bench.preflight = Some(preflight.clone()));
    }
    let largest = plan.units_of_a_trial(sizes.iter().copied().max().unwrap_or(1));
    let trials = plans.iter().map(|part| part.chosen.len()).sum();
    let mut screen = Screen::new(plan.blocks, trials, largest, plan.end);
    for (chosen, outcome) in &plan.left_out {
        let record = benches[0].left_out(chosen, outcome.clone());
        screen.note(&record);
        results.save(&record)?;
    }
    let ahead = if errand.looks_ahead { AHEAD } else { Duration::ZERO };
    let time = errand.time.map(|time| Time {
        left: timer.left_of(time.whole),
        at_most: timer.left_of(time.at_most).saturating_sub(ahead),
    });
    let mut ended = rounds::run(&benches, time, &mut |event| {
        // First the screen: a record that cannot be saved is shown all the same.
        screen.tell(&event);
        if let (Sizing::Own, Some(time), rounds::RunEvent::Block(0)) = (errand.size, errand.time, &event) {
            foretold::of_programs(plan, screen.records(), timer.left_of(time.at_most));
        }
        keep(&event, results)
    });
    // Whatever went wrong, what was finished is shown.
    let mut records = screen.end();
    if errand.looks_ahead && matches!(ended, Ok(Ended::Stopped(_))) {
        let looked = look_ahead(plan, &mut records, scratch, interrupt, results);
        ended = looked.and(ended);
    }
    Ok((ended, records))
}

/// The data of each part of a run: one for all, but where they differ in size.
pub fn data_of(plan: &Plan, scratch: &Path, interrupt: &Interrupt) -> Result<Vec<Rc<[DataSet]>>> {
    let parts = plan.parts();
    if plan.sizes.is_empty() && plan.orders.is_empty() {
        let data = Bench::data_of(&parts[0], scratch, interrupt)?;
        return Ok(vec![data; parts.len()]);
    }
    parts.iter().map(|part| Bench::data_of(part, scratch, interrupt)).collect()
}

/// Finds out what a ping shows of the plan's network, and says it where that is not what was asked for.
pub fn ping(plan: &mut Plan, scratch: &Path) -> Result<()> {
    let Some(Network { rtt_us, .. }) = plan.network else { return Ok(()) };
    let network = network::ping(rtt_us, &pin::clients(&plan.pinned), scratch)?;
    if !network.is_kept() {
        complain(&format!("kvfair: {}", network.off()));
    }
    plan.network = Some(network);
    Ok(())
}

/// Saves what happened.
pub fn keep(event: &rounds::RunEvent<'_>, results: &mut Results) -> Result<()> {
    match event {
        rounds::RunEvent::Finished(record) | rounds::RunEvent::Discarded(record, _) => results.save(record),
        rounds::RunEvent::Block(_) => results.sync(),
        rounds::RunEvent::Live { .. } => Ok(()),
    }
}

/// A file that holds less than was asked for would be measured under a size that it does not have.
fn holds_what_is_asked(plan: &Plan, sizes: &[u64]) -> Result<()> {
    let (Data::File { path }, Some(kind)) = (&plan.job.data, plan.kind) else { return Ok(()) };
    let asked = plan.parts().into_iter().filter_map(|plan| plan.job.units);
    let Some((asked, held)) = asked.zip(sizes).find(|(asked, held)| *asked > **held) else { return Ok(()) };
    let (path, unit, scale) = (file_in_words(path), kind.unit, kind.scale);
    let (asked, held) = (thousands(asked), thousands(*held));
    let what = format!("--{scale}: {path} holds {held} {unit}s, and {asked} are asked for");
    Err(anyhow!(Usage(format!("{what}\nhint: leave --{scale} out to measure all of it"))))
}

/// Says how long the least blocks take at these sizes, by pilots for which so much time is left; `at_most` is what the
/// blocks then have.
fn foretell(
    errand: &mut Errand<'_>,
    sizes: &[u64],
    left: Duration,
    (scratch, interrupt): (&Path, &Interrupt),
    at_most: impl Fn() -> Duration,
) -> Result<()> {
    let mut gates = Gates::new(left / REPEATED);
    let foreseen = pilot::foresee(&errand.plan, sizes, left, (scratch, interrupt), &mut gates)?;
    tell_disturbed(&gates);
    foretold::foretell(&mut errand.plan, &foreseen, (at_most(), Duration::ZERO), true);
    Ok(())
}

/// Rates as parts of what the slowest target can do, which a pilot shows.
fn rate_by_share(errand: &mut Errand<'_>, scratch: &Path, interrupt: &Interrupt, results: &mut Results) -> Result<()> {
    let mut noisy = |record: &Record, what: &Disturbed| {
        complain(&discarded(record, what));
        results.save(record)
    };
    let words = closed::rate_by_share(&errand.shares, &mut errand.plan, scratch, interrupt, &mut noisy)?;
    complain(&format!("kvfair: {words}"));
    let Plan { job, timeout, .. } = &errand.plan;
    let untimely = job.load.as_ref().and_then(|load| load::untimely(load, job.units, *timeout));
    untimely.map_or(Ok(()), |what| Err(anyhow!(Usage(what))))
}

fn tell_disturbed(gates: &Gates) {
    if let Some(what) = &gates.disturbed {
        complain(&format!("kvfair: the pilots were disturbed ({what}): their forecast is less certain"));
    }
}

/// The job some times as large, on the fastest embedded and the two fastest served targets.
fn look_ahead(
    plan: &Plan,
    records: &mut Vec<Record>,
    scratch: &Path,
    interrupt: &Interrupt,
    results: &mut Results,
) -> Result<()> {
    let rows = RunReport::of_rows(records).rows;
    let numbered: Vec<&Row> = rows.iter().filter(|row| !row.baseline && row.numbers.is_some()).collect();
    let of = |is_served: bool, count: usize| {
        let is = move |row: &&&Row| (row.transport != Transport::InProcess) == is_served;
        numbered.iter().filter(is).take(count).map(|row| row.target.clone()).collect::<Vec<_>>()
    };
    let labels = [of(false, 1), of(true, 2)].concat();
    for record in pilot::ahead(plan, &labels, scratch, interrupt)? {
        let saved = results.save(&record);
        records.push(record);
        saved?;
    }
    results.sync()
}

/// Sizes the job by pilots, and says so: they take a part of the time.
fn fit_into(left: Duration, errand: &mut Errand<'_>, scratch: &Path, interrupt: &Interrupt) -> Result<()> {
    let unit = errand.plan.kind.map_or("unit", |kind| kind.unit);
    let timer = Timer::start();
    let mut tell = |units| complain(&format!("kvfair: a pilot of {} {unit}s on each target", thousands(units)));
    let mut gates = Gates::new(left / REPEATED);
    let asked = errand.plan.blocks.least;
    let plan = &mut errand.plan;
    let freedom = Freedom { only_quick: !errand.targets_named, fewer_blocks: !errand.looks_ahead, most: None };
    let foreseen = pilot::fit_into(left, plan, freedom, scratch, interrupt, (&mut gates, &mut tell))?;
    tell_disturbed(&gates);
    if errand.looks_ahead {
        // Nothing was asked for that could be left out.
        return Ok(());
    }
    let at_most = errand.time.map_or(left, |time| time.at_most);
    foretold::tell_fewer_blocks(&errand.plan, asked);
    foretold::foretell(&mut errand.plan, &foreseen, (timer.left_of(at_most), Duration::ZERO), false);
    Ok(())
}

fn finish(
    errand: &Errand<'_>,
    all: &[Record],
    results: &mut Results,
    ended: Result<Ended>,
    interrupt: &Interrupt,
) -> Result<Exit> {
    let (records, _) = ahead::split(all);
    if records.is_empty() {
        results.discard_if_empty();
    } else if results.is_there().is_ok() {
        complain(&format!("results: {}", results.path().display()));
    }
    // Also what was finished of a block that was cut off.
    let synced = results.sync();
    kept(errand, records);
    let ended = ended?;
    synced?;
    match ended {
        Ended::Interrupted(left_behind) => {
            left_behind.iter().for_each(|what| complain(&format!("kvfair: {what}")));
            return Ok(interrupted(interrupt, &format!("{} trials were finished", records.len())));
        }
        Ended::Stopped(stopped) => complain(&in_words(stopped, errand.plan.blocks, is_left_out(records))),
    }
    Ok(sized::exit(all))
}

/// Whether some target was not run.
fn is_left_out(records: &[Record]) -> bool {
    records.iter().any(|record| matches!(record.outcome, Outcome::LeftOut { .. }))
}

/// Why a run stopped, in which some targets may have been left out.
fn in_words(stopped: RunEnd, blocks: Blocks, is_left_out: bool) -> String {
    match stopped {
        RunEnd::AllBlocks if is_left_out => "stopped: all blocks were run, of the targets that ran".to_string(),
        RunEnd::AllBlocks => "stopped: all blocks were run".to_string(),
        RunEnd::NoTargets => "stopped: no target is left that finishes its trials".to_string(),
        RunEnd::Narrow(widest) => format!("stopped: intervals are within {:.1} % to either side", widest * 100.0),
        RunEnd::Alone => "stopped: the least blocks were run, and there is nothing to compare with".to_string(),
        RunEnd::Budget => "stopped: no further block fitted into the time".to_string(),
        // More were disturbed than not: all are used.
        RunEnd::Noise => format!("stopped: the machine disturbed {} blocks, so all blocks count", blocks.most),
    }
}

/// What was typed of a job's data and how they are kept.
const DATA_OPTIONS: [&str; 9] =
    ["--input", "-i", "--format", "--messages", "--skip-bad", "--order", "--unit", "--durability", "--config"];

/// The job that reads what was kept: with the options that say which data it is.
fn same_data(command: &[String], target: &str) -> Vec<String> {
    let mut again = typed::words(&["run", LOOKUP.name, target]);
    for option in DATA_OPTIONS {
        if let Some(value) = typed::value(command, option) {
            again.extend(typed::words(&[option, value]));
        }
    }
    again
}

/// The commands that query what `--keep` left behind.
fn kept(errand: &Errand<'_>, records: &[Record]) {
    let Some(keep) = &errand.plan.keep else { return };
    for row in sized::rows(records).iter().filter(|row| row.trials > 0 && !row.baseline) {
        let Some(chosen) = errand.plan.chosen.iter().find(|chosen| chosen.target.label == row.target) else { continue };
        let place = keep.join(file_name(&row.target));
        let name = target::managed_name(chosen.adapter, chosen.target.transport);
        let store = format!("{name}:{}", place.display());
        let shown = shell::shown(&store);
        let query = if errand.plan.job.name == "fans" {
            let page = if matches!(errand.plan.job.data, Data::File { .. }) { "PAGE" } else { "'Michael Jackson'" };
            format!("kvfair query {shown} {page}")
        } else if errand.plan.job.name == LOOKUP.name {
            shell::command(same_data(&errand.plan.command, &store))
        } else if errand.plan.job.name == NGRAMS.name {
            format!("kvfair lookup {shown} WORD")
        } else {
            place.display().to_string()
        };
        complain(&format!("kept: {query}"));
    }
}
