//! A data directory that a store's own program has prepared is copied for the next server, where it was not synced, and
//! belongs to it alone.

use std::path::{Path, PathBuf};
use std::time::Duration;

use kvfair::harness::serve::{self, Served, Site};
use kvfair::harness::signals::Interrupt;
use kvfair::model::trial::{Durability, Transport};
use kvfair::stores::{self, Launch, Place};

use super::{get, set};
use crate::common;

const LIMIT: Duration = Duration::from_secs(60);

/// A server with a data directory of its own below `root`, and its place.
fn start(store: &str, launch: &Launch, root: &Path, number: u32) -> (Served, Launch, PathBuf) {
    let (data, scratch) = (root.join(format!("{number}/data")), root.join(number.to_string()));
    std::fs::create_dir_all(&data).expect("a data directory");
    let prepared = root.join("prepared");
    let site = Site { data: &data, scratch: &scratch, prepared: Some(&prepared), is_guarded: false };
    let adapter = stores::find(store).expect("a store");
    let served = serve::start(&[], adapter, Transport::Unix, launch, site, LIMIT, &Interrupt::default());
    let served = served.unwrap_or_else(|why| panic!("{store}: {why:?}"));
    let launch = Launch { place: served.place.clone(), ..launch.clone() };
    (served, launch, scratch)
}

#[test]
fn a_data_directory_that_is_not_synced_is_prepared_once_and_copied() {
    for (store, is_copied) in [("postgres", true), ("mariadb", false)] {
        let adapter = stores::find(store).expect("a store");
        let root = tempfile::tempdir().expect("a directory");
        let launch = common::launch_at(Place::Memory, Durability::None);
        let (first, at_first, scratch) = start(store, &launch, root.path(), 1);
        assert!(scratch.join("prepare.log").exists(), "{store} prepares the first itself");
        let opened = (adapter.open)(&at_first).expect("it opens");
        set(common::session(opened.as_ref()).as_mut(), b"k", b"of the first");
        let (second, at_second, scratch) = start(store, &launch, root.path(), 2);
        assert_eq!(!scratch.join("prepare.log").exists(), is_copied, "{store}");
        let other = (adapter.open)(&at_second).expect("it opens");
        let found = get(common::session(other.as_ref()).as_mut(), b"k");
        assert_eq!(found, None, "{store}: nothing of the first server's is in the second's");
        second.stop().expect("it stops");
        first.stop().expect("it stops");
        let power = Launch { durability: Durability::Power, ..launch };
        let (third, _, scratch) = start(store, &power, root.path(), 3);
        assert!(scratch.join("prepare.log").exists(), "{store} at power");
        third.stop().expect("it stops");
    }
}
