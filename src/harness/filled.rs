//! A store that one child fills and another one reads: the steps of such a trial, and how the store becomes cold in
//! between.

use std::path::Path;

use super::page_cache::drop_pages;
use super::plan::Chosen;
use super::replicas::Servers;
use super::task::TrialStep;
use super::trial::Bench;
use crate::jobs::lookup::LOOKUP;
use crate::model::record::{Outcome, Record};
use crate::stores::{Launch, Role};

impl Bench<'_> {
    /// What the children of a trial do, one after another. What is only in a process's memory has one child.
    pub(super) fn steps(&self, chosen: &Chosen) -> &'static [TrialStep] {
        let is_filled = self.plan.kind.is_some_and(|kind| kind.name == LOOKUP.name);
        let is_ours = matches!(chosen.adapter.role, Role::Store | Role::ReadOnly) && chosen.place.is_none();
        match (is_filled && is_ours, &chosen.kept) {
            (false, _) => &[TrialStep::Whole],
            (true, None) => &[TrialStep::Fill, TrialStep::Read],
            (true, Some(_)) => &[TrialStep::Read],
        }
    }

    /// Restarts the server, and has the kernel drop the store's files. What is gone with its server stays as it is, and
    /// the record says so, as it says what the kernel kept.
    pub(super) fn make_cold(
        &self,
        chosen: &Chosen,
        launch: &Launch,
        served: &mut Option<Servers>,
        (data, directory): (&Path, &Path),
        record: &mut Record,
    ) -> Result<(), Outcome> {
        if !(chosen.adapter.stays)(self.plan.durability) {
            record.is_warm = true;
            return Ok(());
        }
        let server = served.take();
        let is_served = server.is_some();
        server.map_or(Ok(()), Servers::stop).map_err(|reason| Outcome::Failed { reason })?;
        let stayed = drop_pages(data).map_err(|what| Outcome::Refused { reason: format!("--cold: {what}") })?;
        record.still_cached_share = stayed;
        if is_served {
            *served = Some(self.serve(chosen, launch, data, directory)?);
        }
        Ok(())
    }
}
