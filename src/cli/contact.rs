//! Stores by URL are contacted before anything is made for a run: a job's data may take minutes.

use anyhow::{Result, bail};

use super::{complain, login};
use crate::harness::contact::{Contact, try_to};
use crate::harness::plan::Plan;
use crate::stores::Role;

/// Says at once of each target by URL that no process is there. The run goes on where another target can be had; a
/// target that only shows how far a sweep could go is none.
pub fn contact(plan: &Plan) -> Result<()> {
    login::has_passwords(&plan.chosen)?;
    if plan.kind.is_none() {
        return Ok(());
    }
    let mut is_any_there = false;
    for chosen in &plan.chosen {
        let label = &chosen.target.label;
        match try_to(chosen, plan.timeout) {
            Contact::Made => is_any_there |= chosen.adapter.role != Role::Ceiling,
            Contact::Slow(patience) => {
                is_any_there = true;
                let within = patience.as_secs_f64();
                complain(&format!("kvfair: {label}: no connection within {within} s; its trial tries again"));
            }
            Contact::Refused(fault) => complain(&format!("kvfair: {label}: {fault}")),
        }
    }
    if !is_any_there {
        bail!("no target can be reached: nothing was run");
    }
    Ok(())
}
