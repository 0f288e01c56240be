//! `getset`: sets, then gets, small values on random keys: the sweep over the number of clients. It must not know any
//! store.

use std::io::{self, Write};

use super::keyed::KeyedJob;
use super::keyed::questions::{Asked, load_of};
use super::{EndState, JobKind, Part, Reading, Requests, Writing};
use kvfair_core::load::{Keys, Load, Only};
use kvfair_core::trial::{Data, JobSettings, Via};

pub static GETSET: JobKind = JobKind {
    name: "getset",
    about: "sets, then gets, small values on random keys, with more and more clients: requests per second, and CPU per \
            request",
    unit: "request",
    scale: "requests",
    default_units: 100_000,
    default_seed: 1,
    recipe: "drawn",
    formats: &[],
    recognise: None,
    expected: "",
    // The numbers of clients of the post of 2010, its keys and values.
    requests: Some(Requests {
        clients: "1,5,10..100:10,200,300",
        records: 100_000,
        value_bytes: 32,
        reads: 0,
        writes: 0,
        keys: Keys::Uniform,
        reading: Reading::Get,
        writing: Writing::Set,
        options: &[
            "--records",
            "--values",
            "--compressible",
            "--batch",
            "--depth",
            "--keys",
            "--rate",
            "--arrivals",
            "--reconnect",
            "--only",
            "--read-only",
        ],
    }),
    ways: &[Via::Portable],
    options: &[],
    asked: super::asked_once,
    end_state: |_| EndState::Versions,
    data: |seed, units, out| data(&GETSET, seed, units, out),
    open: |settings| Box::new(KeyedJob::new(settings, parts(&load_of(settings)))),
};

fn parts(load: &Load) -> &'static [Part] {
    match load.only {
        _ if load.read_only => &[Part::Get],
        None => &[Part::Load, Part::Set, Part::Get],
        Some(Only::Set) => &[Part::Load, Part::Set],
        Some(Only::Get) => &[Part::Load, Part::Get],
    }
}

/// The questions of a single client, a line each, as it asks them with a job's default settings.
pub(super) fn data(kind: &JobKind, seed: u64, units: u64, out: &mut dyn Write) -> io::Result<()> {
    let load = kind.requests.as_ref().map(|requests| Load {
        records: requests.records,
        reads: requests.reads,
        writes: requests.writes,
        keys: requests.keys,
        value_bytes: requests.value_bytes,
        depth: 1,
        ..Load::default()
    });
    let settings = JobSettings {
        name: kind.name.to_string(),
        data: Data::Recipe { name: kind.recipe.to_string(), seed },
        format: String::new(),
        read_as: None,
        units: Some(units),
        skip_bad: 0,
        via: Via::default(),
        split: Default::default(),
        load,
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    };
    let parts = (kind.open)(&settings).parts();
    Asked::of(&settings).write(units, parts, out)
}
