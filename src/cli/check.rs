//! `kvfair check`: whether a store, as kvfair speaks to it, is correct.

use anyhow::{Context, Result};

use super::absent::{IfMissing, without_missing};
use super::args::Check;
use super::refusals::{self, Intent};
use super::{Exit, complain, interrupted, login, print, target};
use crate::harness::plan::Chosen;
use crate::harness::signals::Interrupt;
use crate::harness::trial::Interrupted;
use crate::harness::{check as checker, scratch};
use crate::model::check::{Checked, Reached};
use crate::report;
use crate::report::exit::worst;
use crate::stores::Role;

pub fn check(args: &Check) -> Result<Exit> {
    let chosen = chosen(args)?;
    login::has_passwords(&chosen)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let mut ended = Exit::Ok;
    for (place, one) in chosen.iter().enumerate() {
        match checker::check(one, &scratch.path().join(place.to_string()), args.accept_unchecked, &interrupt) {
            Ok(checked) => {
                print(&report::check::lines(&checked))?;
                ended = worst([ended, exit_of(&checked)]);
            }
            Err(Interrupted { left_behind }) => {
                left_behind.iter().for_each(|what| complain(&format!("kvfair: {what}")));
                return Ok(interrupted(&interrupt, &format!("{place} targets were checked")));
            }
        }
    }
    Ok(ended)
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

fn exit_of(checked: &Checked) -> Exit {
    match checked.reached {
        _ if !checked.wrong.is_empty() => Exit::WrongAnswers,
        Reached::Missing { .. } => Exit::Missing,
        Reached::Failed { .. } => Exit::Error,
        Reached::Probed => Exit::Ok,
    }
}
