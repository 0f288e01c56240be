//! What a job of requests may have written: under each record's key the value that was loaded, or one that a client's
//! question at a point sets. A value tells its point, its client and its question, and that question is drawn once
//! more: it must set this record. Of values shorter than 16 bytes, which cannot tell, all are drawn beforehand.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::Looker;
use crate::jobs::keyed::keytext::KeyText;
use crate::jobs::keyed::questions::{Asked, Questions, points_of};
use crate::jobs::keyed::values::{CLIENTS_MAX, HEAD_BYTES, SEQUENCE_MAX, Values, version, version_in};
use crate::jobs::keyed::{doings, turns, values_of};
use crate::jobs::{Part, Writing, find};
use crate::model::load::{At, Load};
use crate::model::trial::JobSettings;

pub fn look_through(settings: &JobSettings, looker: &mut Looker<'_, '_>) -> Result<(), String> {
    let written = Written::of(settings);
    let mut key = KeyText::default();
    let inserted = written.inserts.keys().copied();
    for record in (0..written.asked.load.records).chain(inserted) {
        looker.look(key.of(record), |held| written.may_be(record, held))?;
    }
    Ok(())
}

struct Written {
    asked: Asked,
    points: Vec<At>,
    /// The part that writes, other than the loading.
    part: Option<Part>,
    /// All values of each size that is written.
    sizes: Vec<(u32, Values)>,
    /// Records that clients insert, with their versions.
    inserts: HashMap<u64, u64>,
    inserting: bool,
    /// Digests of record and value, of values that are too short for a version.
    short: HashSet<u64>,
    /// Of each client at each point, as they were drawn from last.
    questions: RefCell<HashMap<(u32, u32), Questions>>,
}

impl Written {
    fn of(settings: &JobSettings) -> Written {
        let (asked, points) = (Asked::of(settings), points_of(settings));
        let parts = find(&settings.name).map_or(&[][..], |job| (job.open)(settings).parts());
        let part = parts.iter().copied().find(|part| matches!(part, Part::Set | Part::Run));
        let mut sizes: Vec<u32> = points.iter().map(|at| at.value_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        let sizes = sizes.into_iter().map(|size| (size, values_of(settings, size))).collect();
        let inserting = doings(settings).1 == Writing::Insert;
        let mut written = Written {
            asked,
            points,
            part,
            sizes,
            inserting,
            inserts: HashMap::new(),
            short: HashSet::new(),
            questions: RefCell::default(),
        };
        if inserting {
            written.inserts = written.inserts_of(settings);
        }
        written.short = written.short();
        written
    }

    /// Questions that a client asks at most at a point: at a rate the client that is free asks the next one.
    fn most(&self, part: Part, at: At, index: u32) -> u64 {
        if at.rate.is_some() { at.requests } else { self.asked.share(part, at, index) }
    }

    /// Such a job has one point, so that no record is inserted twice.
    fn inserts_of(&self, settings: &JobSettings) -> HashMap<u64, u64> {
        let (Some(at), Some(part)) = (self.points.first(), self.part) else { return HashMap::new() };
        let (reading, writing) = doings(settings);
        let Load { keys, records, .. } = self.asked.load;
        let mut inserts = HashMap::new();
        for index in 0..at.clients {
            let own = turns::ClientRole { reading, writing, keys, records, of: at.clients, index };
            let mut questions = self.asked.questions(part, *at, index);
            let sets = (0..self.most(part, *at, index)).filter(|_| questions.draw().set);
            inserts.extend((0..).zip(sets).map(|(nth, number)| (own.inserted(nth), version(at.number, index, number))));
        }
        inserts
    }

    /// All that is set and too short for a version.
    fn short(&self) -> HashSet<u64> {
        let mut short = HashSet::new();
        for (size, values) in self.sizes.iter().filter(|(_, values)| values.shortest() < HEAD_BYTES) {
            let mut take = |record: u64, version: u64| {
                let bytes = values.bytes(record);
                if bytes < HEAD_BYTES {
                    short.insert(xxh3_64_with_seed(&values.head(record, version)[..bytes], record));
                }
            };
            (0..self.asked.load.records).for_each(|record| take(record, version(0, 0, 0)));
            self.inserts.iter().for_each(|(record, version)| take(*record, *version));
            let Some(part) = self.part.filter(|_| !self.inserting) else { continue };
            for at in self.points.iter().filter(|at| at.value_bytes == *size) {
                for index in 0..at.clients {
                    let mut questions = self.asked.questions(part, *at, index);
                    for number in 0..self.most(part, *at, index) {
                        let question = questions.draw();
                        if question.set {
                            take(question.record, version(at.number, index, number));
                        }
                    }
                }
            }
        }
        short
    }

    fn may_be(&self, record: u64, held: &[u8]) -> bool {
        self.sizes.iter().any(|(size, values)| match version_in(held) {
            Some(version) => values.is(record, version, held) && self.is_set(record, version, *size),
            None => values.bytes(record) == held.len() && self.short.contains(&xxh3_64_with_seed(held, record)),
        })
    }

    /// Whether a record is given this version with a value of that size.
    fn is_set(&self, record: u64, of: u64, size: u32) -> bool {
        if of == version(0, 0, 0) {
            return record < self.asked.load.records;
        }
        if self.inserting {
            return self.inserts.get(&record) == Some(&of);
        }
        let (number, index) = ((of >> 48) as u32, (of / SEQUENCE_MAX) as u32 % CLIENTS_MAX);
        let at = self.points.iter().find(|at| at.number == number && at.value_bytes == size && index < at.clients);
        let (Some(at), Some(part)) = (at, self.part) else { return false };
        if of % SEQUENCE_MAX >= self.most(part, *at, index) {
            return false;
        }
        let mut all = self.questions.borrow_mut();
        let questions = all.entry((number, index)).or_insert_with(|| self.asked.questions(part, *at, index));
        questions.pass_to(of % SEQUENCE_MAX);
        let question = questions.draw();
        question.set && question.record == record
    }
}
