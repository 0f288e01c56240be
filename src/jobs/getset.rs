//! `getset`: sets, then gets, small values on random keys: the sweep over the number of clients. It must not know any
//! store.

use std::io::{self, Write};
use std::sync::Arc;

use super::keyed::Keyed;
use super::keyed::questions::{self, Questions, share};
use super::keyed::values::{Values, version};
use super::{Client, EndState, Job, JobKind, Part, Source};
use crate::words::trial::{JobSettings, Load, Only, Via};

pub static GETSET: JobKind = JobKind {
    name: "getset",
    about: "sets, then gets, small values on random keys, with more and more clients: requests a second, and CPU a request",
    unit: "request",
    scale: "requests",
    default_units: 100_000,
    default_seed: 1,
    recipe: "uniform",
    formats: &[],
    ways: &[Via::Portable],
    end_state: |_| EndState::Versions,
    data,
    open: |settings| Box::new(GetSet { settings: settings.clone(), values: Arc::new(values_of(settings)) }),
};

/// The numbers of clients of the post of 2010.
pub const CLIENTS: &str = "1,5,10..100:10,200,300";
/// Its keys and values.
pub const RECORDS: u64 = 100_000;
pub const VALUE_BYTES: u32 = 32;

struct GetSet {
    settings: JobSettings,
    values: Arc<Values>,
}

/// What a job of this kind is asked; always there, since the command line fills it in.
pub fn load_of(settings: &JobSettings) -> Load {
    settings.load.clone().unwrap_or_default()
}

/// The values of a job, for who asks and for who checks.
pub fn values_of(settings: &JobSettings) -> Values {
    Values::new(settings.seed(), load_of(settings).value_bytes as usize)
}

/// Requests of one part at one number of clients.
pub fn requests(settings: &JobSettings) -> u64 {
    settings.units.unwrap_or(GETSET.default_units)
}

impl Job for GetSet {
    fn parts(&self) -> &'static [Part] {
        match load_of(&self.settings).only {
            None => &[Part::Load, Part::Set, Part::Get],
            Some(Only::Set) => &[Part::Load, Part::Set],
            Some(Only::Get) => &[Part::Load, Part::Get],
        }
    }

    fn client(&self, part: Part, index: u32, of: u32, _: &dyn Source) -> io::Result<Box<dyn Client>> {
        let load = load_of(&self.settings);
        let (questions, left, first, step) = match part {
            Part::Load => (Questions::loading(of, index), share(load.records, index, of), version(0, 0, 0), 0),
            _ => {
                let questions = Questions::new(self.settings.seed(), part, of, index, load.records);
                (questions, share(requests(&self.settings), index, of), version(of, index, 0), 1)
            }
        };
        Ok(Box::new(Keyed::new(questions, left, first, step, self.values.clone())))
    }
}

/// The questions of a single client, a line each, as it asks them with the default settings.
fn data(seed: u64, units: u64, out: &mut dyn Write) -> io::Result<()> {
    questions::write(seed, units, RECORDS, &[Part::Set, Part::Get], out)
}
