//! `kvfair crash`: which claims of durability hold here.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::absent::{IfMissing, without_missing};
use super::args::{Crash, OutageArgs};
use super::found::Findings;
use super::refusals::{self, Intent};
use super::{Exit, Usage, complain, planned, print, target, terminal};
use crate::harness::crash::outage::{self, OutageOrder};
use crate::harness::crash::{CrashBench, Untried, ground, verdicts};
use crate::harness::plan::{self, Chosen};
use crate::harness::scratch;
use crate::harness::signals::Interrupt;
use crate::model::crash::{CrashTry, TESTED_LEAST, Tried};
use crate::model::finding::Found;
use crate::model::op::readable;
use crate::model::trial::Durability;
use crate::report::verified;

/// The hidden command `outage`.
pub fn outage(args: OutageArgs) -> Result<Exit> {
    let order = OutageOrder { data: args.data, report: args.report, owner: args.owner };
    match args.of {
        Some(main) => outage::trace(&order, main)?,
        None => return Err(outage::become_traced(&order, &args.program).into()),
    }
    Ok(Exit::Ok)
}

/// Durability levels that promise anything.
const LEVELS: [Durability; 2] = [Durability::Crash, Durability::Power];

pub fn crash(args: &Crash) -> Result<Exit> {
    if let Some(store) = &args.forget {
        return forget(store);
    }
    let kills = args.kills.unwrap_or(TESTED_LEAST as u32);
    let claims = claims(args)?;
    let mut findings = Findings::create(&args.found, "crash")?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let ground = ground::look(scratch.path())?;
    let seed = args.seed.unwrap_or_else(plan::any_seed);
    let (began, scratch_path) = (plan::utc_now(), scratch.path());
    let bench = CrashBench { scratch: scratch_path, kills, seed, ground, began, interrupt: &interrupt };
    let (mut are_kept, mut tries) = (true, 0);
    for Claim { chosen, level, unclaimed } in claims {
        let target = chosen.target.label.clone();
        let mut tell = |what: &str, done: u32| {
            if terminal::is_watched() || done == kills {
                complain(&format!("{target}, {level}: {what} {done} of {kills}"));
            }
        };
        let tried = match unclaimed {
            Some(why) => Err(Untried::Failed(why)),
            None => bench.try_one(&chosen, level, &mut tell),
        };
        match &tried {
            Ok(tried) => are_kept &= keep(&target, tried),
            Err(Untried::Interrupted) => {
                complain(&format!("interrupted; {tries} claims were tried"));
                return findings.end(Exit::Interrupted);
            }
            Err(Untried::Full(_)) => complain(&full_disk(scratch_path)),
            Err(_) => {}
        }
        let (tried, untried) = match tried {
            Ok(tried) => (Some(tried), None),
            Err(untried) => (None, Some(untried.into())),
        };
        let ground = bench.ground.clone();
        findings.save(Found::Crash(Box::new(CrashTry { kills, seed, ground, target, level, tried, untried })));
        tries += 1;
    }
    findings.end(if are_kept { Exit::Ok } else { Exit::Error })
}

/// Whether it could be kept, or a verdict that stands is. What was seen is shown either way.
fn keep(label: &str, tried: &Tried) -> bool {
    match verdicts::keep(&verdicts::path(), tried) {
        Ok(None) => true,
        Ok(Some(stands)) => {
            complain(&stood(label, &stands));
            true
        }
        Err(error) => {
            complain(&format!("kvfair: {label}: {error:#}"));
            false
        }
    }
}

/// `--forget`.
fn forget(store: &str) -> Result<Exit> {
    let path = verdicts::path();
    let gone = verdicts::forget(&path, store)?;
    if gone.is_empty() {
        let all: BTreeSet<String> =
            verdicts::read(&path).0.into_iter().map(|tried| readable(tried.store.as_bytes(), 40)).collect();
        let all = if all.is_empty() { "none".to_string() } else { all.into_iter().collect::<Vec<_>>().join(", ") };
        let store = readable(store.as_bytes(), 40);
        return Err(anyhow!(Usage(format!(
            "nothing is kept of '{store}' in {}\nhint: stores of which something is kept: {all}",
            path.display()
        ))));
    }
    for tried in gone {
        print(&match tried {
            Ok(tried) => {
                let (version, when) = (readable(tried.version.as_bytes(), 40), readable(tried.tried.as_bytes(), 16));
                format!("forgotten: {store} {version}, {}, tried {when}\n", verified::verdict(&tried))
            }
            Err(why) => format!("forgotten: {store}, {why}\n"),
        })?;
    }
    Ok(Exit::Ok)
}

pub fn full_disk(scratch: &Path) -> String {
    let directory = scratch.parent().unwrap_or(scratch).display();
    format!("hint: make room on the disk of {directory}, or set TMPDIR to a directory on another one")
}

/// What is said where more luck does not take a verdict back.
fn stood(label: &str, stands: &Tried) -> String {
    let (words, when) = (verified::verdict(stands), readable(stands.tried.as_bytes(), 16));
    format!(
        "{label}: the loss of {when} still counts after a try without losses, so \"{words}\" stands\nhint: `kvfair crash \
         --forget {}` removes it",
        stands.store
    )
}

/// A target at a durability level that it is to be tried at.
struct Claim {
    chosen: Chosen,
    level: Durability,
    /// Why it is not tried: it claims no such durability level.
    unclaimed: Option<String>,
}

/// Every target at every durability level that it claims and that was asked for. A target that was named and claims
/// none of them is a row that says so, beside others that are tried.
fn claims(args: &Crash) -> Result<Vec<Claim>> {
    let usage = |what: String| anyhow!(Usage(what));
    if args.durability == Some(Durability::None) {
        return Err(usage(
            "durability none promises nothing that a kill could break\nhint: crash or power".to_string(),
        ));
    }
    let asked: Vec<Durability> = args.durability.map_or(LEVELS.to_vec(), |level| vec![level]);
    let mut claims = Vec::new();
    for chosen in chosen(args)? {
        let kept: Vec<_> = asked.iter().filter(|level| (chosen.adapter.keeps)(**level).is_ok()).copied().collect();
        if kept.is_empty() && !args.targets.is_empty() {
            let (level, why) = (asked[0], (chosen.adapter.keeps)(asked[0]).err().unwrap_or_default());
            let unclaimed = Some(format!("{} claims no durability {level}: {why}", chosen.target.label));
            claims.push(Claim { chosen, level, unclaimed });
            continue;
        }
        claims.extend(kept.into_iter().map(|level| Claim { chosen: chosen.clone(), level, unclaimed: None }));
    }
    if !claims.is_empty() && claims.iter().all(|claim| claim.unclaimed.is_some()) {
        let all: Vec<String> = claims.into_iter().filter_map(|claim| claim.unclaimed).collect();
        return Err(usage(all.join("\n")));
    }
    Ok(claims)
}

fn chosen(args: &Crash) -> Result<Vec<Chosen>> {
    if args.targets.is_empty() {
        // How a store is reached changes nothing of what it keeps.
        let mut all = target::all_here();
        all.dedup_by_key(|chosen| chosen.adapter.name);
        return Ok(all);
    }
    let chosen: Result<Vec<Chosen>> = args.targets.iter().map(|text| target::parse(text)).collect();
    let chosen = chosen.map_err(|error| anyhow!(Usage(format!("{error:#}"))))?;
    refusals::refuse(&chosen, &Intent::Crash)?;
    planned::names_differ(&chosen)?;
    without_missing(chosen, |_| true, IfMissing::of(args.skip_missing))
}
