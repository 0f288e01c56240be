//! What a server that is not ours must fulfil before a trial writes its first key to it, and what a store holds that
//! another process has filled.

use super::{Early, Event, TrialStep, TrialTask, reach, tell};
use crate::stores::Store;

/// We overwrite keys and delete them afterwards: never in a store that holds somebody's data. Where a store cannot say
/// how much it holds, its owner may accept that nobody knows, and every key that a job would write is asked for first.
pub fn must_be_empty(
    store: &dyn Store,
    trial: &TrialTask,
    holds_none_of_ours: impl FnOnce() -> Result<(), Early>,
) -> Result<(), Early> {
    let place = &trial.launch.place;
    let count = store.count().map_err(|fault| reach(place, &fault))?;
    match count {
        Some(0) => Ok(()),
        None if trial.room.accepts_unchecked => holds_none_of_ours(),
        Some(count) => Err(Early::Refused(format!(
            "{place} holds {count} record{} not ours: name an empty database (for Redis redis://host/9, whose server \
             bears the load too), or --read-only for gets of what is there; what a killed run has left `kvfair clean` \
             removes",
            if count == 1 { " that is" } else { "s that are" }
        ))),
        None => Err(Early::Refused(format!(
            "{place} cannot say whether it is empty: with --accept-unchecked a job asks for every key that it would \
             write, and writes if it finds none"
        ))),
    }
}

/// Why lookups in a store that another process has filled were wrong, where it holds nothing. It is asked afterwards:
/// counting reads all of some stores, which would no longer be cold.
pub fn or_empty(early: Early, store: &dyn Store, trial: &TrialTask) -> Early {
    let is_asked = trial.step == TrialStep::Read && matches!(early, Early::Wrong(_));
    if !is_asked || !matches!(store.count(), Ok(Some(0))) {
        return early;
    }
    let (place, name, store) = (&trial.launch.place, &trial.job.name, &trial.store);
    Early::Refused(format!(
        "{place} is empty, so that there is nothing to look up: `kvfair run {name} {store} --keep DIR` fills one"
    ))
}

/// What does not fit would drive its owner's records out.
pub fn must_have_room(store: &dyn Store, trial: &TrialTask) -> Result<(), Early> {
    let place = &trial.launch.place;
    let room = trial.room.of_room(store, &trial.store, place).map_err(|fault| reach(place, &fault))?;
    room.into_iter().for_each(|room| tell(&Event::Room(room)));
    Ok(())
}
