//! What a server that is not ours must fulfil before a trial writes its first key to it.

use super::{Early, Told, Trial, reach, tell};
use crate::stores::{Place, Store};

/// We overwrite keys and delete them afterwards: never in a store that holds somebody's data.
pub fn must_be_empty(store: &dyn Store, place: &Place) -> Result<(), Early> {
    let count = store.count().map_err(|fault| Early::Failed(fault.to_string()))?;
    match count {
        Some(0) => Ok(()),
        Some(count) => Err(Early::Refused(format!(
            "{place} holds {count} records that are not ours: name an empty database (for Redis redis://host/9); \
             what a killed run has left `kvfair clean` removes"
        ))),
        None => Err(Early::Refused(format!("{place} cannot say whether it is empty"))),
    }
}

/// What does not fit would drive its owner's records out.
pub fn must_have_room(store: &dyn Store, trial: &Trial) -> Result<(), Early> {
    let room = trial.room.of_room(store, &trial.store, &trial.place).map_err(|fault| reach(&trial.place, &fault))?;
    room.into_iter().for_each(|room| tell(&Told::Room(room)));
    Ok(())
}
