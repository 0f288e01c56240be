//! `kvfair crash`: which claims of durability hold here.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use super::absent::{IfMissing, without_missing};
use super::args::{Crash, OutageArgs};
use super::refusals::{self, Intent};
use super::{Exit, Usage, complain, planned, print, target, terminal, typed};
use crate::harness::crash::outage::{self, OutageOrder};
use crate::harness::crash::{CrashBench, Untried, ground, verdicts};
use crate::harness::plan::{self, Chosen};
use crate::harness::scratch;
use crate::harness::signals::Interrupt;
use crate::model::crash::{ClaimStanding, TESTED_LEAST, Tried};
use crate::model::op::readable;
use crate::model::trial::Durability;
use crate::report::crash::{self as report, CrashRow};
use crate::report::exit::worst;
use crate::report::{json, verified};

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
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let ground = ground::look(scratch.path())?;
    let seed = args.seed.unwrap_or_else(plan::any_seed);
    let began = plan::utc_now();
    let headline = report::headline(kills, seed, &ground);
    if args.json {
        complain(&headline)
    } else {
        print(&format!("{headline}\n"))?
    }
    let bench = CrashBench { scratch: scratch.path(), kills, seed, ground, began, interrupt: &interrupt };
    let (mut rows, mut ended) = (Vec::new(), Exit::Ok);
    for Claim { chosen, level, unclaimed } in claims {
        let label = chosen.target.label.clone();
        if let Some(why) = unclaimed {
            ended = worst([ended, Exit::Error]);
            rows.push(CrashRow { label, level, tried: Err(why) });
            continue;
        }
        let tried = bench.try_one(&chosen, level, &mut |what, done| {
            if terminal::is_watched() || done == kills {
                complain(&format!("{label}, {level}: {done} of {kills} {what}"));
            }
        });
        let exit = match &tried {
            Ok(tried) => {
                let kept = keep(&label, tried);
                if kept { exit_of(tried) } else { worst([exit_of(tried), Exit::Error]) }
            }
            Err(Untried::Interrupted) => {
                complain(&format!("interrupted; {} claims were tried", rows.len()));
                ended = Exit::Interrupted;
                break;
            }
            Err(Untried::Missing { .. }) => Exit::Missing,
            Err(Untried::Full(_)) => {
                complain(&full_disk(scratch.path()));
                Exit::Error
            }
            Err(Untried::Failed(_)) => Exit::Error,
        };
        ended = worst([ended, exit]);
        rows.push(CrashRow { label, level, tried: tried.map_err(|untried| untried.to_string()) });
    }
    show(args.json, &rows, &bench, ended)?;
    Ok(ended)
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
        "{label}: what was lost {when} is not undone by a try with more luck, so \"{words}\" stands\nhint: `kvfair crash \
         --forget {}` removes it",
        stands.store
    )
}

fn show(is_json: bool, rows: &[CrashRow], bench: &CrashBench<'_>, ended: Exit) -> Result<()> {
    if is_json {
        let told: Vec<_> = rows.iter().map(Shown::new).collect();
        return print(&json::object(&typed(), ended, json::JsonTable { rows: told })?);
    }
    if rows.is_empty() { Ok(()) } else { print(&report::shown(rows, &bench.ground)) }
}

/// One claim, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    target: &'a str,
    level: Durability,
    /// "crash (claimed power)".
    keeps: Option<String>,
    /// Why it was not tried.
    reason: Option<&'a str>,
    tried: Option<&'a Tried>,
}

impl<'a> Shown<'a> {
    fn new(row: &'a CrashRow) -> Shown<'a> {
        let tried = row.tried.as_ref().ok();
        let reason = row.tried.as_ref().err().map(String::as_str);
        let keeps = tried.map(verified::verdict);
        Shown { target: &row.label, level: row.level, keeps, reason, tried }
    }
}

fn exit_of(tried: &Tried) -> Exit {
    match tried.standing() {
        ClaimStanding::Holds(_) => Exit::Ok,
        ClaimStanding::Demoted(_) => Exit::WrongAnswers,
        ClaimStanding::Unknown(_) => Exit::Inconclusive,
    }
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
