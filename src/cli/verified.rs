//! The verified durability levels of this machine, as they bear on what is shown.

use super::complain;
use crate::harness::crash::verdicts;
use crate::harness::{machine, preload, scratch};
use crate::model::crash::Tried;
use crate::model::op::readable;
use crate::model::record::Record;
use crate::model::trial::Durability;
use crate::report::verified;
use crate::stores::Adapter;

/// All that was tried on this machine; what is wrong with the file is said.
pub fn read() -> Vec<Tried> {
    let (all, bad) = verdicts::read(&verdicts::path());
    bad.iter().for_each(|what| complain(what));
    if !bad.is_empty() {
        complain(
            "hint: `kvfair crash STORE` tries it again, `kvfair crash --forget STORE` removes a store's lines; remove \
             other lines with an editor",
        );
    }
    all
}

/// Notes it in records that are to be shown.
pub fn note(records: &mut [Record]) {
    verified::note(records, &read());
}

/// "tested 20261122T0200: 20 kills, ...": of a store as it is started here by itself. Nothing where no durability level was tried.
pub fn of(tried: &[Tried], adapter: &Adapter, version: &str, level: Durability) -> String {
    let filesystem = machine::filesystem(&scratch::parent());
    let preloaded = preload::libraries();
    let is_it = |tried: &&Tried| {
        tried.store == adapter.name
            && tried.version == version
            && tried.level == level
            && tried.settings.is_empty()
            && tried.preloaded == preloaded
            && Some(&tried.ground.filesystem) == filesystem.as_ref()
    };
    let Some(tried) = tried.iter().rfind(is_it) else { return "claimed".to_string() };
    let when = readable(tried.tried.as_bytes(), 16);
    verified::dated(tried, &when)
}
