//! What a server's memory is said to be, held against what the kernel says of its processes.

use kvfair::harness::watch::{self, Peaks};
use kvfair::model::op::Op;
use kvfair::model::record::Peak;
use kvfair::model::trial::Transport;

use crate::common::needs::{Need, needs};
use crate::common::{self, session};

/// The sums of these lines of all processes' `smaps_rollup`, in bytes.
fn rollup(processes: &[u32], name: &str) -> u64 {
    let one = |pid: &u32| -> u64 {
        let text = std::fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).expect("our own server");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.and_then(|line| line.trim().strip_suffix(" kB")?.parse::<u64>().ok()).expect("kilobytes") << 10
    };
    processes.iter().map(one).sum()
}

/// What was counted of a server that holds some megabytes, and what the kernel says of all its processes together.
struct Counted {
    peak: Peak,
    processes: usize,
    anonymous: u64,
    shmem: u64,
    file: u64,
}

fn counted(store: &str) -> Counted {
    let server = common::start(store, Transport::Unix);
    let opened = server.open();
    let mut session = session(opened.as_ref());
    let value = vec![b'x'; 10_000];
    for number in 0..1_000 {
        let key = format!("key {number}");
        session.ask(&Op::Set { key: key.as_bytes(), value: &value, ttl_s: None }).expect("it is set");
    }
    session.flush().expect("it is written");
    let mut peaks = Peaks::default();
    peaks.count(&[server.id()]);
    let family = watch::family(server.id());
    // While the session's own process lives.
    let of = |name| rollup(&family, name);
    let (anonymous, shmem, file) = (of("Pss_Anon"), of("Pss_Shmem"), of("Pss_File"));
    drop(session);
    Counted { peak: peaks.peak, processes: family.len(), anonymous, shmem, file }
}

/// Within a twentieth and a megabyte: a server does not stand still.
#[track_caller]
fn about(one: u64, other: u64) {
    assert!(one.abs_diff(other) <= other / 20 + (1 << 20), "{one} and {other}");
}

#[test]
fn shared_buffers_are_memory_and_count_once() {
    let seen = counted("postgres");
    assert!(seen.processes > 3, "{}", seen.processes);
    about(seen.peak.anonymous_bytes, seen.anonymous);
    about(seen.peak.shared_bytes, seen.shmem);
    about(seen.peak.file_bytes, seen.file);
    // Ten megabytes went through its shared buffers, which each process maps.
    assert!(seen.peak.shared_bytes > 10 << 20, "{:?}", seen.peak);
}

#[test]
fn a_server_of_one_process_has_memory_of_its_own() {
    for store in ["redis", "memcached"] {
        let seen = counted(store);
        about(seen.peak.anonymous_bytes, seen.anonymous);
        let peak = seen.peak;
        assert!(peak.anonymous_bytes > 10_000_000 && peak.shared_bytes == 0, "{store}: {peak:?}");
    }
}

/// Its cache is in region files that it maps, wherever these lie.
#[test]
fn region_files_are_mapped_files() {
    needs!(Need::server("memcachedb"));
    let seen = counted("memcachedb");
    about(seen.peak.shared_bytes + seen.peak.file_bytes, seen.shmem + seen.file);
    assert!(seen.peak.file_bytes > 10_000_000 && seen.peak.shared_bytes < 1 << 20, "{:?}", seen.peak);
}
