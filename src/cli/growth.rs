//! `kvfair growth`: what grows out of proportion, of each store by itself.

use anyhow::{Context, Result, anyhow};
use clap::Parser;

use super::args::{Cli, Command, Growth};
use super::measure::or_lost;
use super::planned::plan_of;
use super::refusals::{self, Intent};
use super::{Exit, Usage, complain, print};
use crate::harness::plan::{self, Plan};
use crate::harness::save::{self, Results};
use crate::harness::scratch;
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::model::record::{Outcome, Record, Verdict as Answers};
use crate::report::growth::{self as report, Grown, GrowthVerdict};
use crate::scheduler::growth as scheduler;

pub fn growth(args: &Growth) -> Result<Exit> {
    let plan = plan(args)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let path = args.output.clone().unwrap_or_else(|| save::default_path(&plan.began, "growth"));
    let mut results = Results::create(&path)?;
    let (mut records, mut failure) = (Vec::new(), None);
    for chosen in &plan.chosen {
        let alone = Plan { chosen: vec![chosen.clone()], ..plan.clone() };
        complain(&format!("kvfair: {}: at most {:.0} s", chosen.target.label, args.budget.as_secs_f64()));
        let mut tell = |record: &Record| {
            records.push(record.clone());
            results.save(record)?;
            results.sync()
        };
        if let Err(error) = scheduler::run(&alone, args.budget, scratch.path(), &interrupt, &mut tell) {
            failure = Some(error);
            break;
        }
    }
    let lost = results.is_there().err().filter(|_| !records.is_empty());
    if records.is_empty() {
        results.discard_if_empty();
    } else if lost.is_none() {
        complain(&format!("results: {}", results.path().display()));
    }
    if interrupt.is_set() {
        complain(&format!("kvfair: {INTERRUPTED}; {} trials were finished", records.len()));
    }
    // Whatever went wrong, what was finished is shown.
    let grown = report::grown(&records);
    if !grown.is_empty() {
        show(args, plan.seeds.order, &grown)?;
    }
    match failure {
        _ if interrupt.is_set() => Ok(Exit::Interrupted),
        Some(error) => or_lost(Err(error), lost),
        None => or_lost(Ok(exit_of(&records, &grown)), lost),
    }
}

/// The plan of `getset` on these targets: the scheduler says what is swept over.
fn plan(args: &Growth) -> Result<Plan> {
    let seed = args.seed.unwrap_or_else(plan::any_seed).to_string();
    let words = ["kvfair", "run", "getset", "--clients", "1", "--blocks", "6", "--seed", &seed, "--"];
    let words = words.into_iter().chain(args.targets.iter().map(String::as_str));
    let run = Cli::try_parse_from(words).map_err(|error| anyhow!(Usage(error.to_string())))?;
    let Some(Command::Run(run)) = run.command else { return Err(anyhow!("`run` is a command")) };
    let plan = plan_of(&run)?;
    refusals::refuse(&plan.chosen, &Intent::Growth)?;
    Ok(plan)
}

fn show(args: &Growth, seed: u64, grown: &[Grown]) -> Result<()> {
    if args.json {
        return print(&format!("{}\n", serde_json::to_string_pretty(grown)?));
    }
    let headline = format!("growth: the CPU of client and server as n grows, seed {seed}");
    print(&format!("{headline}\n{}{}", report::table(grown), report::sentences(grown)))
}

/// What grows out of proportion is a result and no failure.
fn exit_of(records: &[Record], grown: &[Grown]) -> Exit {
    let any = |is: &dyn Fn(&Record) -> bool| records.iter().any(is);
    if any(&|record| matches!(record.verdict, Answers::Wrong { .. })) {
        Exit::WrongAnswers
    } else if any(&|record| matches!(record.outcome, Outcome::Missing { .. })) {
        Exit::Missing
    } else if grown.iter().any(|one| matches!(one.verdict, GrowthVerdict::Untried(_))) {
        Exit::Error
    } else if grown.iter().any(|one| matches!(one.verdict, GrowthVerdict::Unclear(_))) {
        Exit::Inconclusive
    } else {
        Exit::Ok
    }
}
