//! `kvfair levers`: what to change at a store, measured: each lever alone and as the last one, and the few that are
//! enough.

use std::time::Duration;

use anyhow::{Context, Result, anyhow};

mod choices;
mod parts;
mod pilots;
mod synthetic;

use self::choices::{Ground, Lever, LeverValue};
use self::parts::LeverSession;
use super::absent::{IfMissing, without_missing};
use super::args::{Levers, Look, RunArgs};
use super::measure::or_lost;
use super::planned::{plan_of, resolve_input};
use super::refusals::{self, Intent};
use super::shown::print_records;
use super::{Exit, Usage, complain, find_job, interrupted, paged, points, verified};
use crate::harness::plan::{Chosen, Plan, Took};
use crate::harness::save::{self, Results};
use crate::harness::scratch;
use crate::harness::signals::Interrupt;
use crate::harness::timing::End;
use crate::model::answers;
use crate::model::effort::{Blocks, Effort};
use crate::model::levers::{LeverPart, LeverRun, RunLever, UntriedLever};
use crate::model::record::Record;
use crate::model::shell::quoted;
use crate::model::trial::{Configuration, Durability};
use crate::report::levers as report;
use crate::scheduler::rounds::{Ended, RunEnd};
use crate::stats::levers::{self as stats, Confirmed, LeverSet};

/// The time that the command has where none is named.
const BUDGET: Duration = Duration::from_secs(900);
const ADVICE_BUDGET: Duration = Duration::from_secs(120);
/// Shares of what is left: of the blocks that measure gains, and of those that confirm a set.
const GAINS: f64 = 0.65;
const CONFIRM: f64 = 0.5;
/// Sets that are tried in fresh blocks, at most.
const ATTEMPTS: u32 = 3;
/// Clients of a job that sweeps over their number unless it is told otherwise.
const CLIENTS: &str = "10";
/// Fresh blocks end once intervals are so narrow, to either side.
const CONFIRM_BLOCKS: Blocks = Blocks { least: 8, most: 20, plus_minus: Some(0.02) };
const DURABILITY_BLOCKS: u32 = 6;

/// What is asked about levers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Question {
    /// Which few are enough.
    Enough,
    /// Which one to try first: each alone.
    Advice,
}

impl Question {
    /// The levers that are measured together, of so many that can be combined.
    fn together(self, all: LeverSet) -> LeverSet {
        if self == Question::Advice { LeverSet::BASE } else { all }
    }
}

/// `kvfair levers`.
pub fn levers(args: Levers) -> Result<Exit> {
    answered(args, Question::Enough)
}

/// `kvfair advise`: the short form.
pub fn advise(args: Levers) -> Result<Exit> {
    answered(args, Question::Advice)
}

fn answered(args: Levers, question: Question) -> Result<Exit> {
    let (names, look) = (args.levers.clone(), args.how.look());
    paged::is_to_be_new(look.forms.html.as_deref())?;
    let run = run_args(args)?;
    let kind = run.job.as_deref().map(find_job).transpose()?;
    let plan = plan_of(&run)?;
    is_one_point(&run, &plan)?;
    refusals::refuse(&plan.chosen, &Intent::Levers)?;
    let is_needed = |one: &Chosen| run.own.exec.is_none() || one.adapter.server.is_some();
    without_missing(plan.chosen.clone(), is_needed, IfMissing::Refuse)?;
    let ground = Ground { args: &run, kind, plan: &plan };
    let (levers, left_out) = choices::asked_for(&ground, choices::of(&ground), &names)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let path = run.how.output.clone().unwrap_or_else(|| save::default_path(&plan.began, "levers"));
    let budget = run.how.budget.unwrap_or(match question {
        Question::Enough => BUDGET,
        Question::Advice => ADVICE_BUDGET,
    });
    let mut session = LeverSession {
        scratch: scratch.path(),
        interrupt: &interrupt,
        results: Results::create(&path)?,
        records: Vec::new(),
        preflight: None,
        budget,
        end: End::within(budget),
    };
    let ended = measured(&mut session, &ground, question, levers, left_out);
    finish(session, ended, &look)
}

/// Those of a run of this target alone: with more blocks and time than a run has.
fn run_args(args: Levers) -> Result<RunArgs> {
    let Levers { job, store, own, mut how, .. } = args;
    let (job, store) = match (&own.exec, store) {
        (None, Some(store)) => (Some(job), store),
        (Some(_), None) => (None, job),
        _ => return Err(anyhow!(Usage("--exec: a program is run on one store\nhint: leave the job out".to_string()))),
    };
    let kind = job.as_deref().map(find_job).transpose()?;
    how.effort = how.effort.or_else(|| how.blocks.is_none().then_some(Effort::Normal));
    if how.via.len() > 1 {
        return Err(anyhow!(Usage("--via: name the base's way; the others are levers".to_string())));
    }
    let requests = kind.and_then(|kind| kind.requests.as_ref());
    if how.clients.is_none() && requests.is_some_and(|requests| requests.clients.contains(',')) {
        how.clients = Some(points::parse(CLIENTS).map_err(|why| anyhow!(why))?);
    }
    Ok(RunArgs { job, targets: vec![store], own, how })
}

/// Levers are compared at one number of clients, one size of values and one size of the job.
fn is_one_point(run: &RunArgs, plan: &Plan) -> Result<()> {
    let points = plan.points(&plan.job, 1).len();
    if points > 1 || plan.sizes.len() > 1 || plan.is_paced() {
        let (what, hint) =
            ("levers are compared at one point, as fast as it goes", "name one number in place of a list");
        let store = quoted(&run.targets[0]);
        return Err(anyhow!(Usage(format!("{what}\nhint: {hint}: kvfair levers {} {store}", run.job()))));
    }
    Ok(())
}

/// Everything that is measured.
fn measured(
    session: &mut LeverSession<'_>,
    ground: &Ground<'_>,
    question: Question,
    levers: Vec<Lever>,
    mut left_out: Vec<UntriedLever>,
) -> Result<Ended> {
    let mut plan = Plan { end: Some(session.end), ..ground.plan.clone() };
    resolve_input(&mut plan, session.scratch, session.interrupt)?;
    let (levers, tried) = pilots::best_values(session, ground, &plan, levers, &mut left_out)?;
    let together = |all| question.together(all);
    if levers.is_empty() {
        let told = |lever: &UntriedLever| format!("{}: {}", lever.name, lever.reason);
        let why = left_out.iter().map(told).collect::<Vec<_>>().join("\n");
        return Err(anyhow!("{}: no lever can be tried\n{why}", ground.base().target.label));
    }
    let levers = pilots::that_fit(session, ground, (levers, &tried), together, &mut left_out)?;
    let (all, reasons) = match question {
        Question::Enough => ground.all(&levers),
        Question::Advice => (LeverSet::BASE, vec![Some(ALONE.to_string()); levers.len()]),
    };
    let levels = if question == Question::Enough { levels_of(ground) } else { Vec::new() };
    let run = LeverRun { base: ground.base().target.label.clone(), levers: told(&levers, reasons), left_out, levels };
    tell_plan(&run, all);
    let mut plan = of_gains(ground, plan, &levers, all, &run);
    let time = session.end.left().mul_f64(GAINS);
    pilots::size(session, ground, &mut plan, time)?;
    let ended = session.blocks(std::slice::from_ref(&plan), session.end.left().mul_f64(GAINS))?;
    if matches!(ended, Ended::Interrupted(_)) || question == Question::Advice {
        return Ok(ended);
    }
    let ended = confirmed(session, ground, &plan, &levers, all)?;
    if matches!(ended, Some(Ended::Interrupted(_))) {
        return Ok(ended.expect("it is there"));
    }
    let ended = synthetic::synthetic(session, ground, &plan, (&levers, all))?;
    if matches!(ended, Ended::Interrupted(_)) {
        return Ok(ended);
    }
    durability(session, ground, &plan)
}

/// Why no lever of an advice is measured with the others.
const ALONE: &str = "advise measures each lever alone";

/// As records tell of them.
fn told(levers: &[Lever], reasons: Vec<Option<String>>) -> Vec<RunLever> {
    let one = |(lever, not_in_all): (&Lever, Option<String>)| {
        let LeverValue { words, pays, .. } = &lever.values[0];
        RunLever {
            name: lever.name.clone(),
            change: words.clone(),
            pays: pays.to_string(),
            tried: lever.tried.clone(),
            not_in_all,
        }
    };
    levers.iter().zip(reasons).map(one).collect()
}

fn tell_plan(run: &LeverRun, all: LeverSet) {
    let words: Vec<&str> = run.levers.iter().map(|lever| lever.change.as_str()).collect();
    let targets = stats::sets(run.levers.len(), all).len();
    complain(&format!("kvfair: levers of {}: {}; {targets} targets a block", run.base, words.join(", ")));
    for lever in &run.left_out {
        complain(&format!("kvfair: left out: {}: {}", lever.name, lever.reason));
    }
}

/// Base, each lever alone, all, and all but each one, those that can be combined.
fn of_gains(ground: &Ground<'_>, plan: Plan, levers: &[Lever], all: LeverSet, run: &LeverRun) -> Plan {
    let sets = stats::sets(levers.len(), all).into_iter();
    let chosen = sets.map(|set| labelled(ground, levers, set, all)).filter(|chosen| ground.refusal(chosen).is_none());
    let blocks = match ground.args.how.blocks {
        Some(blocks) => Blocks::exactly(blocks),
        None => {
            let needed = stats::needed_blocks(levers.len(), all);
            ground.args.how.effort.unwrap_or_default().blocks(needed as u32)
        }
    };
    Plan { chosen: chosen.collect(), blocks, levers: Some((run.clone(), LeverPart::Gains)), ..plan }
}

fn labelled(ground: &Ground<'_>, levers: &[Lever], set: LeverSet, all: LeverSet) -> Chosen {
    let mut chosen = ground.with(levers, set);
    chosen.target.label = choices::label(&ground.base().target.label, levers, set, all);
    chosen
}

/// The smallest set in fresh blocks, with base and all; with one lever more where it falls short.
fn confirmed(
    session: &mut LeverSession<'_>,
    ground: &Ground<'_>,
    plan: &Plan,
    levers: &[Lever],
    all: LeverSet,
) -> Result<Option<Ended>> {
    let Some(seen) = report::seen(&session.records) else { return Ok(None) };
    let mut set = stats::first_set(all, &seen.gains);
    for attempt in 1..=ATTEMPTS {
        // Where no time is left for the first set, its blocks say so.
        if set == LeverSet::BASE || set == all || (attempt > 1 && plan.is_over()) {
            break;
        }
        let chosen = [LeverSet::BASE, all, set].map(|set| labelled(ground, levers, set, all)).to_vec();
        let blocks = ground.args.how.blocks.map_or(CONFIRM_BLOCKS, Blocks::exactly);
        let run = plan.levers.as_ref().map(|(run, _)| (run.clone(), LeverPart::Confirm { attempt }));
        // No block warms up, so that the A/A controls are chosen by what each took before.
        let piloted = took(&session.records);
        let fresh = Plan { chosen, blocks, levers: run, warm: true, left_out: Vec::new(), piloted, ..plan.clone() };
        complain(&format!("kvfair: fresh blocks: {}", fresh.chosen[2].target.label));
        let ended = session.blocks(&[fresh], session.end.left().mul_f64(CONFIRM))?;
        if matches!(ended, Ended::Interrupted(_)) {
            return Ok(Some(ended));
        }
        let found = report::attempts(&session.records).pop().and_then(|attempt| attempt.confirmation);
        match found.map(|confirmation| confirmation.found) {
            Some(Confirmed::Short) => set = stats::next_set(set, all, &seen.gains).unwrap_or(all),
            _ => break,
        }
    }
    Ok(None)
}

/// What the first trial of each target took that finished, by label.
fn took(records: &[Record]) -> Vec<(String, Took)> {
    let of = |record: &Record| {
        let took = Took { job_s: record.took_s()?, all_s: record.noise.seen_s };
        Some((record.target.label.clone(), took))
    };
    records.iter().filter_map(of).collect()
}

/// The durability levels that are compared, two at least: those that the store keeps.
fn levels_of(ground: &Ground<'_>) -> Vec<Durability> {
    let keeps = |level: &Durability| (ground.base().adapter.keeps)(*level).is_ok();
    let levels: Vec<Durability> = Durability::ALL.into_iter().filter(keeps).collect();
    let are_compared = ground.plan.configuration != Configuration::Shipped && levels.len() > 1;
    if are_compared { levels } else { Vec::new() }
}

/// The base at each durability level, in blocks of their own. Levels for which no time is left say so.
fn durability(session: &mut LeverSession<'_>, ground: &Ground<'_>, plan: &Plan) -> Result<Ended> {
    let levels = levels_of(ground);
    let Some(safest) = levels.last() else { return Ok(Ended::Stopped(RunEnd::AllBlocks)) };
    let blocks = Blocks::exactly(ground.args.how.blocks.unwrap_or(DURABILITY_BLOCKS).min(DURABILITY_BLOCKS));
    let run = plan.levers.as_ref().map(|(run, _)| (run.clone(), LeverPart::Durability));
    let base = Plan {
        chosen: vec![ground.base().clone()],
        blocks,
        levers: run,
        left_out: Vec::new(),
        warm: true,
        ..plan.clone()
    };
    // What fits the level that keeps most fits all.
    let mut safest = Plan { durability: *safest, ..base.clone() };
    if !plan.is_over() {
        let time = session.end.left() / (levels.len() as u32 * 2);
        pilots::size_at_most(session, &mut safest, time, plan.job.units)?;
    }
    let of =
        |&durability: &Durability| Plan { durability, job: safest.job.clone(), blocks: safest.blocks, ..base.clone() };
    let plans: Vec<Plan> = levels.iter().map(of).collect();
    complain(match plan.is_over() {
        false => "kvfair: the durability levels, apart",
        true => "kvfair: no time is left for the durability levels: give a longer --budget",
    });
    session.blocks(&plans, session.end.left())
}

/// What was finished is shown, whatever went wrong.
fn finish(session: LeverSession<'_>, ended: Result<Ended>, look: &Look) -> Result<Exit> {
    let LeverSession { mut results, mut records, interrupt, .. } = session;
    let lost = results.is_there().err().filter(|_| !records.is_empty());
    if records.is_empty() {
        results.discard_if_empty();
    } else if lost.is_none() {
        complain(&format!("results: {}", results.path().display()));
    }
    let synced = results.sync();
    answers::note(&mut records);
    verified::note(&mut records);
    let mut exit = Exit::Ok;
    let mut paged = Ok(());
    if !records.is_empty() {
        exit = print_records(&records, look)?;
        paged = paged::write(&records, look, lost.is_none().then(|| results.path()));
    }
    if interrupt.is_set() {
        paged?;
        return Ok(interrupted(interrupt, &format!("{} trials were finished", records.len())));
    }
    or_lost(ended.and_then(|_| synced.map(|()| exit)), lost.or(paged.err()))
}
