//! How fast targets are in a closed loop, where each client asks as soon as it is answered: rates are parts of that.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};

use super::gated::{GatedTrial, Gates, Tell, Unclear};
use super::size::rounded;
use crate::harness::plan::Plan;
use crate::harness::signals::Interrupt;
use crate::harness::trial::Bench;
use crate::model::effort::Blocks;
use crate::model::part::Part;
use crate::model::record::{Outcome, Phase, Record};

/// Sets the plan's rates to these hundredths of what its slowest target can do: the lesser of its parts, all clients
/// asking as soon as they are answered, in one trial each. Says what that was.
///
/// Targets that do not finish it have no part in it: their rows will say why. Where the machine disturbed one each
/// time, that is an [`Unclear`].
pub fn rate_by_share(
    shares: &[u32],
    plan: &mut Plan,
    scratch: &Path,
    interrupt: &Interrupt,
    tell: Tell<'_>,
) -> Result<String> {
    let (mut once, clients) = (plan.clone(), plan.clients);
    once.blocks = Blocks::exactly(1);
    once.seeds.data.clear();
    let trials = trials(&once, scratch, interrupt, tell)?;
    if let Some((record, what)) = trials.iter().find_map(|tried| Some((&tried.record, tried.disturbed.as_ref()?))) {
        return Err(Unclear { target: record.target.label.clone(), what: what.clone() }.into());
    }
    let rates = trials.iter().filter_map(|tried| Some((&tried.record.target.label, at_most(&tried.record)?)));
    let slowest = rates.min_by(|one, other| one.1.total_cmp(&other.1));
    let (target, most) = slowest.ok_or_else(|| anyhow!("no target finished the trial that tells how fast it is"))?;
    let load = plan.job.load.as_mut().ok_or_else(|| anyhow!("the job {} has no rates", plan.job.name))?;
    load.rates = shares.iter().map(|&share| rounded(most * f64::from(share) / 100.0)).collect();
    load.rates.dedup();
    let rates: Vec<String> = load.rates.iter().map(|rate| format!("{rate}/s")).collect();
    let clients = if clients == 1 { "1 client".to_string() } else { format!("{clients} clients") };
    Ok(format!("the slowest, {target}, does {}/s with {clients}: {}", rounded(most), rates.join(", ")))
}

/// A trial of each target that is no baseline, all clients asking as soon as they are answered; and what disturbed it
/// each time that it was run.
pub fn trials(plan: &Plan, scratch: &Path, interrupt: &Interrupt, tell: Tell<'_>) -> Result<Vec<GatedTrial>> {
    let bench = Bench::set_up(plan, scratch, interrupt)?;
    let (mut found, mut gates) = (Vec::new(), Gates::new(Duration::MAX));
    for (position, place) in (1..).zip(plan.order(1, plan.chosen.len())) {
        let chosen = &plan.chosen[place];
        if !chosen.target.baseline {
            found.push(gates.trial(&bench, chosen, (1, position), None, tell)?);
        }
    }
    Ok(found)
}

/// Requests a second of a trial's slower part; none where it did not finish or was wrong.
pub fn at_most(record: &Record) -> Option<f64> {
    if record.outcome != Outcome::Finished || !record.is_right() {
        return None;
    }
    let parts = record.phases.iter().filter(|phase| !matches!(phase.part, Part::Load | Part::FinalFlush));
    parts.map(Phase::units_per_s).min_by(f64::total_cmp)
}
