//! YCSB's core workloads, as its authors define them:
//! <https://github.com/brianfrankcooper/YCSB/wiki/Core-Workloads>, each with a link below. A record is one value of
//! 1,000 bytes where YCSB has ten fields of 100; keys are in order where YCSB scatters them. It must not know any
//! store.

use std::io::{self, Write};

use super::getset::data;
use super::keyed::KeyedJob;
use super::{EndState, Job, JobKind, Part, Reading, Requests, Writing};
use kvfair_core::load::Keys;
use kvfair_core::trial::{JobSettings, Via};

/// <https://github.com/brianfrankcooper/YCSB/blob/master/workloads/workloada>
pub static A: JobKind = workload(
    "ycsb-a",
    "YCSB's workload A: as many updates as reads",
    mix(50, 50, Keys::YcsbZipfian, Reading::Get, Writing::Set),
    |seed, units, out| data(&A, seed, units, out),
    open,
);

/// <https://github.com/brianfrankcooper/YCSB/blob/master/workloads/workloadb>
pub static B: JobKind = workload(
    "ycsb-b",
    "YCSB's workload B: reads, and 5 updates in 100",
    mix(95, 5, Keys::YcsbZipfian, Reading::Get, Writing::Set),
    |seed, units, out| data(&B, seed, units, out),
    open,
);

/// <https://github.com/brianfrankcooper/YCSB/blob/master/workloads/workloadc>
pub static C: JobKind = workload(
    "ycsb-c",
    "YCSB's workload C: reads only",
    mix(100, 0, Keys::YcsbZipfian, Reading::Get, Writing::Set),
    |seed, units, out| data(&C, seed, units, out),
    open,
);

/// <https://github.com/brianfrankcooper/YCSB/blob/master/workloads/workloadd>
pub static D: JobKind = workload(
    "ycsb-d",
    "YCSB's workload D: reads of the latest records, and 5 inserts in 100",
    mix(95, 5, Keys::Latest, Reading::Get, Writing::Insert),
    |seed, units, out| data(&D, seed, units, out),
    open,
);

/// <https://github.com/brianfrankcooper/YCSB/blob/master/workloads/workloade>
pub static E: JobKind = workload(
    "ycsb-e",
    "YCSB's workload E: scans of 1 to 100 records, and 5 inserts in 100; for stores that keep their keys in order",
    mix(95, 5, Keys::YcsbZipfian, Reading::Scan, Writing::Insert),
    |seed, units, out| data(&E, seed, units, out),
    open,
);

/// <https://github.com/brianfrankcooper/YCSB/blob/master/workloads/workloadf>
pub static F: JobKind = workload(
    "ycsb-f",
    "YCSB's workload F: reads, and as many reads of a record that is then written",
    mix(50, 50, Keys::YcsbZipfian, Reading::Get, Writing::ReadModifyWrite),
    |seed, units, out| data(&F, seed, units, out),
    open,
);

const fn mix(reads: u32, writes: u32, keys: Keys, reading: Reading, writing: Writing) -> Requests {
    Requests {
        clients: "10",
        records: 100_000,
        value_bytes: 1_000,
        reads,
        writes,
        keys,
        reading,
        writing,
        options: &[
            "--records",
            "--values",
            "--compressible",
            "--depth",
            "--keys",
            "--rate",
            "--arrivals",
            "--reconnect",
        ],
    }
}

type Data = fn(u64, u64, &mut dyn Write) -> io::Result<()>;

const fn workload(
    name: &'static str,
    about: &'static str,
    requests: Requests,
    data: Data,
    open: fn(&JobSettings) -> Box<dyn Job>,
) -> JobKind {
    JobKind {
        name,
        about,
        unit: "request",
        scale: "requests",
        default_units: 100_000,
        default_seed: 1,
        recipe: "drawn",
        formats: &[],
        recognise: None,
        expected: "",
        requests: Some(requests),
        ways: &[Via::Portable],
        options: &[],
        asked: super::asked_once,
        end_state: |_| EndState::Versions,
        data,
        open,
    }
}

fn open(settings: &JobSettings) -> Box<dyn Job> {
    Box::new(KeyedJob::new(settings, &[Part::Load, Part::Run]))
}
