//! Stores that were named and are not installed: an error before anything is measured, or left out by `--skip-missing`.

use anyhow::{Result, anyhow};

use super::complain;
use crate::harness::batch::version;
use crate::harness::plan::Chosen;
use crate::harness::serve::{self, PROGRAM};
use crate::stores::{Adapter, Place, batch};

/// The error of a store that is not installed.
#[derive(Debug)]
pub struct Missing(String);

impl std::fmt::Display for Missing {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Missing {}

/// What becomes of a store that is not installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfMissing {
    Refuse,
    /// The same, where `--skip-missing` would leave it out.
    RefuseWithHint,
    Skip,
}

impl IfMissing {
    pub fn of(skip: bool) -> IfMissing {
        if skip { IfMissing::Skip } else { IfMissing::RefuseWithHint }
    }
}

/// The targets whose stores are installed. Nothing is left where all others are baselines: that is an error too.
/// `is_needed` names the targets whose store kvfair itself opens or starts.
pub fn without_missing(
    chosen: Vec<Chosen>,
    is_needed: impl Fn(&Chosen) -> bool,
    then: IfMissing,
) -> Result<Vec<Chosen>> {
    let is_here = |one: &Chosen| !is_needed(one) || why(one).is_none();
    let (here, missing): (Vec<Chosen>, Vec<Chosen>) = chosen.into_iter().partition(is_here);
    let line = |one: &Chosen| Some(format!("{}: {}", one.target.label, why(one)?));
    let lines: Vec<String> = missing.iter().filter_map(line).collect();
    let has_others = here.iter().any(|one| !one.target.baseline);
    if lines.is_empty() {
        return Ok(here);
    }
    if then == IfMissing::Skip && has_others {
        lines.iter().for_each(|line| complain(&format!("kvfair: left out: {line}")));
        return Ok(here);
    }
    let has_hint = then == IfMissing::RefuseWithHint && has_others;
    let hint = if has_hint { "\nhint: --skip-missing runs the other targets" } else { "" };
    Err(anyhow!(Missing(format!("{}{hint}", lines.join("\n")))))
}

/// Why its store cannot be opened or started here, and how to get it; nothing where it can, or runs elsewhere.
fn why(chosen: &Chosen) -> Option<String> {
    let adapter = chosen.adapter;
    let runs_elsewhere = matches!(chosen.place, Some(Place::Tcp { .. } | Place::Unix(_)));
    if adapter.server.is_some() && (runs_elsewhere || chosen.target.settings.contains_key(PROGRAM)) {
        return None;
    }
    Some(format!("{}; get it: {}", missing(adapter)?, adapter.get_it))
}

fn missing(adapter: &Adapter) -> Option<String> {
    match (adapter.server, batch::engine(adapter.name)) {
        (Some(server), _) => serve::program(server).is_none().then(|| serve::not_here(server)),
        (None, Some(engine)) => version(engine).err(),
        (None, None) => (adapter.version)().err(),
    }
}

/// The names of stores that are installed, or of all of them where none is.
pub fn here_first(all: impl Iterator<Item = &'static Adapter>) -> String {
    let all: Vec<&Adapter> = all.collect();
    let here: Vec<&Adapter> = all.iter().copied().filter(|adapter| missing(adapter).is_none()).collect();
    let named = |adapters: &[&Adapter]| adapters.iter().map(|adapter| adapter.name).collect::<Vec<_>>().join(", ");
    if here.is_empty() { format!("{} (none is installed here)", named(&all)) } else { named(&here) }
}
