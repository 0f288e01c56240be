//! What the embedded stores say of themselves: their own counters grow as they are asked, and asking changes nothing.

use std::path::Path;
use std::time::{Duration, Instant};

use kvfair::model::op::{Op, Reply};
use kvfair::model::trial::{Configuration, Durability};
use kvfair::stores::Store;
use kvfair::stores::store_stats::StoreStats;

use crate::common::embedded::{Shape, launch, shapes};

const SETS: u32 = 20;

/// A counter of each store, from which durability level on it tells, and how much it grows at least by so many sets;
/// stores that count nothing have none.
const GROW: &[(&str, &str, Durability, f64)] = &[
    ("lmdb", "me_last_txnid", Durability::Crash, SETS as f64),
    ("sqlite", "SQLITE_DBSTATUS_CACHE_WRITE", Durability::Power, SETS as f64),
    ("fjall", "write_buffer_size", Durability::None, SETS as f64),
    ("berkeleydb", "st_scount", Durability::Power, SETS as f64),
    ("berkeleydb", "st_wcount", Durability::Crash, SETS as f64),
    ("berkeleydb?env=yes", "st_record", Durability::None, SETS as f64),
    ("berkeleydb?type=btree", "st_cache_hit", Durability::None, SETS as f64),
    ("leveldb", "leveldb.approximate-memory-usage", Durability::None, SETS as f64),
    ("rocksdb", "Cumulative WAL syncs", Durability::Power, SETS as f64),
    ("rocksdb", "Cumulative writes keys", Durability::None, SETS as f64),
    ("tokyocabinet", "rnum", Durability::None, SETS as f64),
    ("tokyocabinet?type=tree", "rnum", Durability::None, SETS as f64),
    ("kyotocabinet", "count", Durability::None, SETS as f64),
    ("tkrzw", "num_records", Durability::None, SETS as f64),
];

fn set(store: &dyn Store, keys: std::ops::Range<u32>, value: &[u8]) {
    let mut session = store.session().expect("a session");
    for key in keys {
        let key = key.to_be_bytes();
        assert_eq!(session.ask(&Op::Set { key: &key, value, ttl_s: None }).expect("an answer"), Reply::Done);
    }
    session.flush().expect("a flush");
}

fn grown(before: &StoreStats, after: &StoreStats, name: &str) -> f64 {
    after.get(name).expect("a counter of that name") - before.get(name).unwrap_or(0.0)
}

fn grows_as_it_says(shape: &Shape, level: Durability) {
    let place = tempfile::tempdir().expect("a directory");
    let store = (shape.adapter.open)(&shape.launch(place.path(), level, 2)).expect("it opens");
    let before = store.stats().expect("counters");
    set(store.as_ref(), 0..SETS, &[7; 3000]);
    let after = store.stats().expect("counters");
    let known: Vec<_> = GROW.iter().filter(|(name, ..)| *name == shape.name()).collect();
    for (name, counter, _, least) in known.iter().filter(|(_, _, from, _)| level >= *from) {
        let grown = grown(&before, &after, counter);
        assert!(grown >= *least, "{name} at {level}: {counter} grew by {grown}, not by {least}");
    }
    assert_eq!(after == StoreStats::default(), known.is_empty(), "{} has counters: {after:?}", shape.name());
    let again = store.stats().expect("counters");
    let changed: Vec<_> = after.until(&again).into_iter().filter(|(_, [one, other])| one != other).collect();
    // Two pragmas read the first page.
    let only_ours = |name: &str| name == "SQLITE_DBSTATUS_CACHE_HIT";
    assert!(changed.iter().all(|(name, _)| only_ours(name)), "{}: asking changed {changed:?}", shape.name());
}

#[test]
fn their_own_counters_grow_as_they_are_asked() {
    for shape in shapes() {
        for level in Durability::ALL.into_iter().filter(|level| (shape.adapter.keeps)(*level).is_ok()) {
            grows_as_it_says(&shape, level);
        }
    }
}

/// A commit that syncs nothing must not be told as one that does.
#[test]
fn who_syncs_nothing_says_so() {
    for (name, setting, counter) in
        [("rocksdb", None, "Cumulative WAL syncs"), ("berkeleydb", Some(("env", "yes")), "st_scount")]
    {
        let place = tempfile::tempdir().expect("a directory");
        let mut launch = launch(place.path(), Durability::None, 1);
        launch.settings.extend(setting.map(|(name, value): (&str, &str)| (name.to_string(), value.to_string())));
        let store = (kvfair::stores::find(name).expect("it is built in").open)(&launch).expect("it opens");
        let before = store.stats().expect("counters");
        set(store.as_ref(), 0..SETS, &[7; 300]);
        assert_eq!(grown(&before, &store.stats().expect("counters"), counter), 0.0, "{name}");
    }
}

/// Its counters are read at places of a structure that were written down by hand.
#[test]
fn a_small_cache_is_told_by_what_it_drops() {
    let place = tempfile::tempdir().expect("a directory");
    let mut launch = launch(place.path(), Durability::None, 1);
    launch.settings.insert("cache".to_string(), "64KB".to_string());
    let store = (kvfair::stores::find("berkeleydb").expect("it is built in").open)(&launch).expect("it opens");
    set(store.as_ref(), 0..1000, &[7; 1000]);
    set(store.as_ref(), 0..1000, &[8; 1000]);
    let said = store.stats().expect("counters");
    let number = |name: &str| said.get(name).expect("a counter of that name");
    assert!(number("st_rw_evict") > 100.0, "{said:?}");
    assert!(number("st_page_out") >= number("st_rw_evict"), "{said:?}");
    assert!(number("st_cache_miss") >= number("st_page_in"), "{said:?}");
    assert!(number("st_page_in") > 100.0 && number("st_page_create") > 10.0, "{said:?}");
}

/// What is printed about levels appears with the first one.
#[test]
fn merges_are_told_by_their_level() {
    for (name, end) in [("leveldb", " Write(MB)"), ("rocksdb", "Sum Comp(cnt)")] {
        let place = tempfile::tempdir().expect("a directory");
        let mut launch = launch(place.path(), Durability::None, 1);
        if name == "leveldb" {
            // Its own buffer holds 4 MB.
            launch.configuration = Configuration::Shipped;
        }
        let store = (kvfair::stores::find(name).expect("it is built in").open)(&launch).expect("it opens");
        // More than a buffer of 64 MiB, which is written out beside the writers.
        (0..30).for_each(|round| set(store.as_ref(), round * 10..round * 10 + 10, &vec![round as u8; 300_000]));
        let began = Instant::now();
        while merged(store.as_ref(), end) == 0.0 {
            assert!(began.elapsed() < Duration::from_secs(30), "{name}: {:?}", store.stats());
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

fn merged(store: &dyn Store, end: &str) -> f64 {
    let said = store.stats().expect("counters").until(&StoreStats::default());
    said.iter().filter(|(name, _)| name.ends_with(end)).map(|(_, [now, _])| now).sum()
}

#[test]
fn controls_count_nothing() {
    for name in ["null", "ram"] {
        let adapter = kvfair::stores::find(name).expect("it is built in");
        let store = (adapter.open)(&launch(Path::new("/nowhere"), Durability::None, 1)).expect("it opens");
        assert_eq!(store.stats().expect("counters"), StoreStats::default(), "{name}");
    }
}
