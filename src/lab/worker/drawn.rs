//! Keys of a store that is not ours, drawn to be read, for a trial that writes nothing.

use std::collections::BTreeMap;

use super::{Early, Told, Trial};
use crate::jobs::JobKind;
use crate::jobs::keyed::existing::Existing;
use crate::lab::child::tell;
use crate::stores::Store;
use crate::words::load::Load;
use crate::words::record::KEYS_DRAWN;

/// The job on the keys that the store holds; none where the trial brings keys of its own.
pub fn job(trial: &Trial, kind: &JobKind, store: &dyn Store) -> Result<Option<Existing>, Early> {
    let Some(Load { records, read_only: true, .. }) = trial.job.load else { return Ok(None) };
    let keys = store.existing(records as usize).map_err(|fault| super::reach(&trial.place, &fault))?;
    let refused = |what: String| Err(Early::Refused(what));
    let Some(keys) = keys else {
        return refused(format!("{} cannot list its keys, so --read-only has none to read", trial.store));
    };
    let count = keys.lend().len();
    if count == 0 {
        return refused(format!("{} holds no keys of strings, so --read-only has none to read", trial.place));
    }
    tell(&Told::Counters(BTreeMap::from([(KEYS_DRAWN.to_string(), count as u64)])));
    let parts = (kind.open)(&trial.job).parts();
    Ok(Some(Existing::new(&trial.job, parts, keys)))
}
