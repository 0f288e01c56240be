//! `kvfair clean`: takes out of a store that is not ours what a killed run left there.

use std::io::{self, IsTerminal};
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::args::Clean;
use super::{Exit, Usage, complain, print, target, terminal};
use crate::harness::clean::{self, KeysFound};
use crate::harness::load::{self, Parts};
use crate::harness::plan::Chosen;
use crate::harness::scratch;
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::harness::visits::{self, Visit};
use crate::model::units;

pub fn clean(args: &Clean) -> Result<Exit> {
    let chosen = target::parse(&args.url).map_err(|error| anyhow!(Usage(format!("{error:#}"))))?;
    if chosen.place.is_none() {
        let what = format!("{} is not named by URL\nhint: name the URL of the run", chosen.target.label);
        return Err(anyhow!(Usage(what)));
    }
    let visits = visits_of(&chosen, &args.of)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    match cleaned(args, &chosen, &visits, scratch.path(), &interrupt) {
        Err(error) if interrupt.is_set() => {
            complain(&format!("kvfair: {INTERRUPTED}: {error:#}"));
            Ok(Exit::Interrupted)
        }
        ended => ended,
    }
}

fn cleaned(args: &Clean, chosen: &Chosen, visits: &[Visit], scratch: &Path, interrupt: &Interrupt) -> Result<Exit> {
    let label = &chosen.target.label;
    let found = clean::find(chosen, visits, scratch, interrupt)?;
    print(&format!("{label}: {}\n", in_words(&found)))?;
    if found.ours() > 0 {
        may_delete(args, label, found.ours())?;
        let deleted = clean::delete(chosen, visits, &found, interrupt)?;
        let changed = match deleted.changed {
            0 => String::new(),
            changed => format!("; {} changed meanwhile and stay", units::counted(changed, "key")),
        };
        let left =
            deleted.left.map_or_else(String::new, |left| format!("; it holds {} now", units::counted(left, "record")));
        print(&format!("{label}: {} deleted{changed}{left}\n", units::counted(deleted.deleted, "key")))?;
    }
    visits::strike_out(&visits::beside(&args.of), visits)?;
    Ok(Exit::Ok)
}

/// What trials of that run may have written into this store: what was not struck out, and what records tell.
fn visits_of(chosen: &Chosen, results: &Path) -> Result<Vec<Visit>> {
    let left = visits::left(&visits::beside(results))?;
    let recorded = match load::records(results, Parts::Tables) {
        Ok(records) => records.iter().filter_map(Visit::of_record).collect(),
        // A run that was killed in its first trial has no record yet.
        Err(_) if !left.is_empty() => Vec::new(),
        Err(error) => return Err(error),
    };
    let mut here: Vec<Visit> = Vec::new();
    let mut elsewhere: Vec<String> = Vec::new();
    for visit in left.into_iter().chain(recorded) {
        // What is written down and what is recorded differ in the place alone.
        let is_same = |other: &Visit| {
            Visit { place: None, database: None, ..other.clone() }
                == Visit { place: None, database: None, ..visit.clone() }
        };
        if !is_of(&visit, chosen) {
            elsewhere.push(visit.target.label);
        } else if !here.iter().any(is_same) {
            here.push(visit);
        }
    }
    if !here.is_empty() {
        return Ok(here);
    }
    elsewhere.sort();
    elsewhere.dedup();
    let wrote = match elsewhere.as_slice() {
        [] => "its run wrote to no store by URL".to_string(),
        labels => format!("its run wrote to {}", labels.join(" ")),
    };
    Err(anyhow!("{}: nothing of it was run on {}\nhint: {wrote}", results.display(), chosen.target.label))
}

/// Whether a visit was paid to this store: by its place, or where that is not known by its name.
fn is_of(visit: &Visit, chosen: &Chosen) -> bool {
    let same_place = visit.place.is_some() && visit.place == chosen.place && visit.database == chosen.login.database;
    visit.target.store == chosen.target.store && (same_place || visit.target.label == chosen.target.label)
}

/// Deletion is asked for, on the terminal or by `--yes`.
fn may_delete(args: &Clean, label: &str, count: u64) -> Result<()> {
    if args.yes {
        return Ok(());
    }
    if !io::stdin().is_terminal() {
        let what =
            "nothing is deleted without being asked, and there is no terminal to ask on\nhint: --yes deletes them";
        return Err(anyhow!(Usage(what.to_string())));
    }
    match terminal::ask(&format!("delete {} from {label}? [y/N] ", units::counted(count, "key")))?.trim() {
        "y" | "Y" | "yes" => Ok(()),
        _ => Err(anyhow!("nothing was deleted")),
    }
}

fn in_words(found: &KeysFound) -> String {
    let ours = match found.ours() {
        0 => "no key holds what this run may have written".to_string(),
        1 => "1 key holds what this run may have written".to_string(),
        count => format!("{} hold what this run may have written", units::counted(count, "key")),
    };
    match found.others() {
        0 => ours,
        1 => format!("{ours}; 1 key of its names holds something else and stays"),
        count => format!("{ours}; {} of its names hold something else and stay", units::counted(count, "key")),
    }
}
