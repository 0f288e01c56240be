//! Whether somebody is there at a store that is not ours, before anything is made for it.

use std::io;
use std::time::Duration;

use super::plan::Chosen;
use crate::model::op::Fault;
use crate::stores::blocking::contact;
use crate::stores::{Adapter, Place};

/// How long a connection may take. Whoever takes longer is tried again in its trial, with all the time of one.
const PATIENCE: Duration = Duration::from_secs(1);

/// What came of it.
#[derive(Debug)]
pub enum Contact {
    Made,
    /// Nobody answered within the time, as where a queue is full.
    Slow(Duration),
    Refused(Fault),
}

/// Makes a connection to a server that kvfair did not start and closes it again. What is not reached by one is not
/// tried.
pub fn try_to(chosen: &Chosen, patience: Duration) -> Contact {
    let Some(place) = &chosen.place else { return Contact::Made };
    connect(chosen.adapter, place, patience.min(PATIENCE))
}

fn connect(adapter: &Adapter, place: &Place, patience: Duration) -> Contact {
    match place {
        Place::Memory | Place::Path(_) => return Contact::Made,
        // Of a directory with sockets in it the store's own library knows which one.
        Place::Unix(path) if path.is_dir() => return Contact::Made,
        Place::Tcp { .. } | Place::Unix(_) => {}
    }
    match contact(adapter.name, place, patience) {
        Ok(()) => Contact::Made,
        Err(Fault::Lost(error)) if error.kind() == io::ErrorKind::TimedOut => Contact::Slow(patience),
        Err(fault) => Contact::Refused(fault),
    }
}
