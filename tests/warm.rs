//! Driving many connections allocates nothing a request: counted by this test binary's own allocator, of all threads,
//! against a real server.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use kvfair::jobs::Part;
use kvfair::jobs::getset::GETSET;
use kvfair::loadgen::sockets::{self, Conduct, Threads};
use kvfair::loadgen::{Progress, Work};
use kvfair::model::load::{At, Load};
use kvfair::model::trial::{Data, JobSettings, Transport};

use crate::common::nothing::Nothing;

struct Counting;

static ALLOCATED: AtomicU64 = AtomicU64::new(0);

// An allocator cannot be written without `unsafe`; this one only counts, and hands on.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATED.fetch_add(1, Ordering::Relaxed);
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Allocations of one part with so many requests, so many of a client at once, or so many keys a question.
fn allocations(store: &dyn kvfair::stores::Store, part: Part, requests: u64, (depth, batch): (u32, u32)) -> u64 {
    let settings = JobSettings {
        name: GETSET.name.to_string(),
        data: Data::Recipe { name: GETSET.recipe.to_string(), seed: 1 },
        format: String::new(),
        read_as: None,
        units: Some(requests),
        skip_bad: 0,
        via: Default::default(),
        split: Default::default(),
        load: Some(Load { records: 1000, value_bytes: 32, depth, batches: vec![batch], ..Load::default() }),
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    };
    let (job, progress, at) =
        ((GETSET.open)(&settings), Progress::new(20), At { value_bytes: 32, batch, ..At::closed(20, requests) });
    let work =
        Work { store, job: job.as_ref(), source: &Nothing, part, at, pace: None, limit: None, progress: &progress };
    let conduct = Conduct { depth, patience: Duration::from_secs(10), reopens: true, threads: Threads::Half };
    let before = ALLOCATED.load(Ordering::Relaxed);
    let seen = sockets::run(&work, conduct, || {}).expect("a right server");
    assert_eq!((seen.metrics.units, seen.metrics.misses), (if part == Part::Load { 1000 } else { requests }, 0));
    ALLOCATED.load(Ordering::Relaxed) - before
}

/// Alone: another test's allocations would be counted too.
#[test]
fn a_request_allocates_nothing_once_all_is_warm() {
    let _alone = crate::common::load::alone();
    for name in ["redis", "memcached"] {
        let server = crate::common::start(name, Transport::Unix);
        let store = server.open();
        for together in [(1, 1), (16, 1), (1, 10)] {
            allocations(store.as_ref(), Part::Load, 0, together);
            for part in [Part::Set, Part::Get] {
                let (few, many) = (
                    allocations(store.as_ref(), part, 5_000, together),
                    allocations(store.as_ref(), part, 25_000, together),
                );
                // A buffer may still grow now and then: 20,000 requests more must not show.
                assert!(many < few + 200, "{name} {part:?} {together:?}: {few}, then {many} allocations");
            }
        }
    }
}
