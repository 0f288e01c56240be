//! `sessions`: values as of web sessions. It must not know any store.

use super::getset::data;
use super::keyed::KeyedJob;
use super::{EndState, JobKind, Part, Reading, Requests, Writing, asked_once};
use kvfair_core::load::Keys;
use kvfair_core::trial::Via;

pub static SESSIONS: JobKind = JobKind {
    name: "sessions",
    about: "9 gets to 1 set of 512 bytes",
    unit: "request",
    scale: "requests",
    default_units: 100_000,
    default_seed: 1,
    recipe: "drawn",
    formats: &[],
    recognise: None,
    expected: "",
    requests: Some(Requests {
        clients: "10",
        records: 100_000,
        value_bytes: 512,
        reads: 9,
        writes: 1,
        keys: Keys::Uniform,
        reading: Reading::Get,
        writing: Writing::Set,
        options: &["--records", "--values", "--keys"],
    }),
    ways: &[Via::Portable],
    options: &[],
    asked: asked_once,
    end_state: |_| EndState::Versions,
    data: |seed, units, out| data(&SESSIONS, seed, units, out),
    open: |settings| Box::new(KeyedJob::new(settings, &[Part::Load, Part::Run])),
};
