//! A trial is tried again if its agents began too far apart.

use super::{Bench, Interrupted, Live};
use crate::harness::plan::Chosen;
use crate::model::agents::ATTEMPTS_TOGETHER;
use crate::model::record::{Outcome, Record};

impl Bench<'_> {
    /// One trial, whatever becomes of it. `watch` hears how far it is.
    pub fn trial(
        &self,
        chosen: &Chosen,
        block: u32,
        position: u32,
        watch: &mut dyn FnMut(Live),
    ) -> Result<Record, Interrupted> {
        let mut record = self.blank(chosen, block, position);
        if self.plan.is_over() {
            record.outcome = Outcome::left_out("the time of the run was over before its turn");
            return Ok(record);
        }
        loop {
            let before = record.agents_apart_ms.len();
            record = self.tried(chosen, record, watch)?;
            let is_apart = record.agents_apart_ms.len() > before;
            if !is_apart || record.agents_apart_ms.len() == ATTEMPTS_TOGETHER || self.plan.is_over() {
                return Ok(record);
            }
            // Its numbers are not kept: whether a trial counts must not depend on its result.
            let agents_apart_ms = record.agents_apart_ms;
            record = Record { agents_apart_ms, ..self.blank(chosen, block, position) };
        }
    }
}
