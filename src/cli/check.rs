//! `kvfair check`: whether a store, as kvfair speaks to it, is correct.

use anyhow::{Context, Result};

use super::absent::{IfMissing, without_missing};
use super::args::Check;
use super::found::Findings;
use super::refusals::{self, Intent};
use super::{Exit, complain, interrupted, login, target};
use crate::harness::plan::Chosen;
use crate::harness::signals::Interrupt;
use crate::harness::trial::Interrupted;
use crate::harness::{check as checker, scratch};
use crate::model::finding::Found;
use crate::stores::Role;

pub fn check(args: &Check) -> Result<Exit> {
    let chosen = chosen(args)?;
    login::has_passwords(&chosen)?;
    let mut findings = Findings::create(&args.found, "check")?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    for (place, one) in chosen.iter().enumerate() {
        match checker::check(one, &scratch.path().join(place.to_string()), args.accept_unchecked, &interrupt) {
            Ok(checked) => findings.tell(Found::Check(checked))?,
            Err(Interrupted { left_behind }) => {
                left_behind.iter().for_each(|what| complain(&format!("kvfair: {what}")));
                return findings.end(interrupted(&interrupt, &format!("{place} targets were checked")));
            }
        }
    }
    findings.end(Exit::Ok)
}

/// What was named, or every store that is here. What holds nothing cannot be right.
fn chosen(args: &Check) -> Result<Vec<Chosen>> {
    if args.targets.is_empty() {
        let holds = |chosen: &Chosen| !matches!(chosen.adapter.role, Role::Null | Role::Ceiling);
        return Ok(target::all_here().into_iter().filter(holds).collect());
    }
    let chosen = target::parse_all(&args.targets)?;
    refusals::refuse(&chosen, &Intent::Check)?;
    without_missing(chosen, |_| true, IfMissing::of(args.skip_missing))
}
