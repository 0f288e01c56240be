//! `fans`: which pages share fans. A store is asked in one of several ways for the same answer. It must not know how a
//! record is written (`merge`), nor how profiles are (`people`).

use std::io;
use std::ops::RangeInclusive;

use super::input::profiles;
use super::merge::{Broken, Pages};
use super::people::{self, Profiles};
use super::{Client, EndState, Heard, Job, JobKind, Part, Source, StreamCounts};
use kvfair_core::fans::Encoding;
use kvfair_core::load::At;
use kvfair_core::op::{Keys, Reply, Wrong, readable};
use kvfair_core::trial::{JobSettings, Split, Via};
use kvfair_draw as draw;

mod ask;
mod batch;
mod cas;
mod native;
mod portable;
mod turn;

pub static FANS: JobKind = JobKind {
    name: "fans",
    about: "for each profile (a user's list of liked pages), reads, changes and writes the record of every page in it; \
            these growing records tell which pages share fans",
    unit: "profile",
    scale: "profiles",
    default_units: 10_000,
    default_seed: people::LIKES10K_SEED,
    recipe: "likes10k",
    formats: profiles::FORMATS,
    recognise: Some(profiles::recognise),
    expected: profiles::EXPECTED,
    requests: None,
    ways: &Via::ALL,
    options: &["--split", "--queries", "--encoding"],
    asked,
    end_state: |via| if via == Via::Native { EndState::Tallies } else { EndState::Values },
    data: people::likes10k,
    open: |settings| Box::new(Fans { settings: settings.clone() }),
};

/// How many clients have a part in a profile is not known from the input, nor how often they get in each other's way.
fn asked(via: Via, counts: &StreamCounts) -> RangeInclusive<u64> {
    let StreamCounts { ops, asking_units, clients } = *counts;
    match via {
        Via::Portable => ops..=ops,
        Via::Batch => 2 * asking_units..=2 * asking_units * clients,
        Via::Native => asking_units..=asking_units * clients,
        Via::Cas if clients == 1 => ops..=ops,
        Via::Cas => ops..=u64::MAX,
    }
}

/// So much of a bad value is shown.
const SHOWN_BYTES_MAX: usize = 200;

struct Fans {
    settings: JobSettings,
}

impl Job for Fans {
    fn parts(&self) -> &'static [Part] {
        if self.settings.fans.queries == 0 { &[Part::Run] } else { &[Part::Run, Part::Ask] }
    }

    fn client(&self, part: Part, index: u32, at: At, source: &dyn Source) -> io::Result<Box<dyn Client>> {
        if part == Part::Ask {
            let form = match (self.settings.via, self.settings.fans.encoding) {
                (Via::Native, _) => ask::Form::Tally,
                (_, encoding) => ask::Form::Record(encoding),
            };
            return Ok(Box::new(ask::Asker::open(source, (index, at.clients), form)?));
        }
        let profiles = Profiles::open(&self.settings, source)?;
        let share = Share { index: u64::from(index), of: u64::from(at.clients), split: self.settings.split, read: 0 };
        let merge = merge_of(self.settings.fans.encoding);
        Ok(match self.settings.via {
            Via::Portable => Box::new(portable::Portable::new(share, profiles, merge)),
            Via::Batch => Box::new(batch::Batch::new(share, profiles, merge)),
            Via::Native => Box::new(native::Native::new(share, profiles)),
            Via::Cas => Box::new(cas::Cas::new(share, profiles, merge)),
        })
    }
}

/// Adds a profile to a record: see [`super::merge::merge`].
type Merge = fn(Option<&[u8]>, usize, &Pages, &mut Vec<u8>) -> Result<u64, Broken>;

fn merge_of(encoding: Encoding) -> Merge {
    match encoding {
        Encoding::Json => super::merge::merge,
        Encoding::Binary => super::packed::merge,
    }
}

/// What of the work is a client's.
struct Share {
    index: u64,
    of: u64,
    split: Split,
    /// Profiles read so far.
    read: u64,
}

impl Share {
    /// The pages of the next profile that are this client's, as indices in their order.
    fn owned(&mut self, names: Keys<'_>, owned: &mut Vec<usize>) {
        owned.clear();
        let turn = self.read % self.of == self.index;
        self.read += 1;
        match self.split {
            Split::Pages => owned.extend((0..names.len()).filter(|page| self.owns(names.get(*page)))),
            Split::Profiles if turn => owned.extend(0..names.len()),
            Split::Profiles => {}
        }
    }

    fn owns(&self, name: &[u8]) -> bool {
        self.of == 1 || draw::hash(name) % self.of == self.index
    }

    /// Whether this is the client who counts profiles without pages.
    fn counts_empty(&self) -> bool {
        self.index == 0
    }
}

fn wrong(page: &[u8], expected: &str, found: String) -> Heard {
    Heard::Wrong(Wrong { key: readable(page, SHOWN_BYTES_MAX), expected: expected.to_string(), found })
}

/// What is wrong with a record, and what stands there.
fn read_fault(record: Option<&[u8]>, broken: &Broken) -> String {
    let around = &record.unwrap_or_default()[broken.at.saturating_sub(SHOWN_BYTES_MAX / 2)..];
    format!("{broken}: {}", readable(around, SHOWN_BYTES_MAX))
}

fn shown(reply: Reply<'_>) -> String {
    match reply {
        Reply::Value(value) | Reply::Versioned(value, _) => readable(value, SHOWN_BYTES_MAX),
        Reply::Done | Reply::Missing | Reply::Conflict | Reply::Number(_) => format!("{reply:?}"),
        _ => "an answer to another kind of question".to_string(),
    }
}
