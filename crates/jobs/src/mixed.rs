//! `mixed`: mostly gets, some sets, of larger values, by a few clients at once. It must not know any store.

use super::getset::data;
use super::keyed::KeyedJob;
use super::keyed::questions::load_of;
use super::{EndState, JobKind, Part, Reading, Requests, Writing};
use kvfair_core::load::Keys;
use kvfair_core::trial::{JobSettings, Via};

pub static MIXED: JobKind = JobKind {
    name: "mixed",
    about: "gets with some sets among them, of values that were loaded before: what a store serves, and its CPU and memory",
    unit: "request",
    scale: "requests",
    default_units: 200_000,
    default_seed: 1,
    recipe: "drawn",
    formats: &[],
    recognise: None,
    expected: "",
    // Records, values and the share of sets of the post of 2009.
    requests: Some(Requests {
        clients: "10",
        records: 10_000,
        value_bytes: 2_048,
        reads: 50,
        writes: 1,
        keys: Keys::Uniform,
        reading: Reading::Get,
        writing: Writing::Set,
        options: &[
            "--records",
            "--values",
            "--compressible",
            "--depth",
            "--keys",
            "--rate",
            "--arrivals",
            "--reconnect",
            "--reads",
            "--writes",
            "--read-only",
        ],
    }),
    ways: &[Via::Portable],
    options: &[],
    asked: super::asked_once,
    end_state: |_| EndState::Versions,
    data: |seed, units, out| data(&MIXED, seed, units, out),
    open: |settings| Box::new(KeyedJob::new(settings, parts(settings))),
};

fn parts(settings: &JobSettings) -> &'static [Part] {
    if load_of(settings).read_only { &[Part::Run] } else { &[Part::Load, Part::Run] }
}
