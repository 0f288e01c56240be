//! The verified classes of this machine, as they bear on what is shown.

use super::complain;
use crate::lab::crash::kept;
use crate::lab::{machine, scratch};
use crate::report::verified;
use crate::stores::Adapter;
use crate::words::crash::{Standing, Tried};
use crate::words::op::readable;
use crate::words::record::Record;
use crate::words::trial::Durability;

/// All that was tried on this machine; what is wrong with the file is said.
pub fn read() -> Vec<Tried> {
    let (all, bad) = kept::read(&kept::path());
    bad.iter().for_each(|what| complain(what));
    if !bad.is_empty() {
        complain("hint: `kvfair crash STORE` tries it again, `kvfair crash --forget STORE` removes the line");
    }
    all
}

/// Notes it in records that are to be shown.
pub fn note(records: &mut [Record]) {
    verified::note(records, &read());
}

/// "tested 20261122T020000Z": of a store as it is started here by itself. Nothing where no class was tried.
pub fn of(tried: &[Tried], adapter: &Adapter, version: &str, class: Durability) -> String {
    let filesystem = machine::filesystem(&scratch::parent());
    let is_it = |tried: &&Tried| {
        tried.store == adapter.name
            && tried.version == version
            && tried.class == class
            && tried.settings.is_empty()
            && Some(&tried.ground.filesystem) == filesystem.as_ref()
    };
    let Some(tried) = tried.iter().rfind(is_it) else { return "claimed".to_string() };
    let when = readable(tried.tried.as_bytes(), 16);
    match tried.standing() {
        Standing::Holds if class == Durability::Crash => format!("tested {when}"),
        Standing::Holds if tried.outages.are_survived() => format!("tested by emulation {when}"),
        Standing::Holds => format!("syncs counted {when}"),
        Standing::Demoted(less) => format!("claimed, but keeps only {less}: tested {when}"),
        Standing::Unknown(_) => "claimed".to_string(),
    }
}
