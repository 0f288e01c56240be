//! Clients that read keys which are there already, whatever they hold: nothing is loaded, written or checked.

use std::io;
use std::sync::{Arc, OnceLock};

use super::SHOWN_BYTES;
use super::questions::{Asked, Questions, load_of};
use crate::{Ask, Client, Heard, Job, Part, Source};
use kvfair_core::load::{At, Load};
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{KeyList, Op, Reply, Wrong, readable};
use kvfair_core::trial::JobSettings;

/// A job that asks for keys of a store as its settings say; a key's number is its place in the list.
pub struct Existing {
    settings: JobSettings,
    parts: &'static [Part],
    keys: Arc<KeyList>,
    asked: OnceLock<Asked>,
}

impl Existing {
    /// The parts of a job on these keys, of which there is one at least.
    pub fn new(settings: &JobSettings, parts: &'static [Part], keys: KeyList) -> Existing {
        let load = Load { records: keys.lend().len() as u64, ..load_of(settings) };
        let settings = JobSettings { load: Some(load), ..settings.clone() };
        Existing { settings, parts, keys: Arc::new(keys), asked: OnceLock::new() }
    }
}

impl Job for Existing {
    fn parts(&self) -> &'static [Part] {
        self.parts
    }

    /// What has expired since it was drawn, or was deleted by its owner, is not there.
    fn may_miss(&self) -> bool {
        true
    }

    fn client(&self, part: Part, index: u32, at: At, _: &dyn Source) -> io::Result<Box<dyn Client>> {
        let asked = self.asked.get_or_init(|| Asked::of(&self.settings));
        let left = if at.rate.is_some() { at.requests } else { asked.share(part, at, index) };
        let (questions, keys) = (asked.questions(part, at, index), self.keys.clone());
        Ok(Box::new(Reading { questions, left, heard: 0, keys, misses: 0 }))
    }
}

struct Reading {
    questions: Questions,
    left: u64,
    heard: u64,
    keys: Arc<KeyList>,
    misses: u64,
}

impl Client for Reading {
    fn ask(&mut self) -> Ask<'_> {
        if self.left == 0 {
            return Ask::End;
        }
        self.left -= 1;
        let record = self.questions.draw().record as usize;
        Ask::Op(Op::Get(self.keys.lend().get(record)))
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        let number = self.heard;
        self.heard += 1;
        match *reply {
            Reply::Value(_) => {}
            Reply::Missing => self.misses += 1,
            reply => {
                let mut answered = self.questions.clone();
                answered.pass_to(number);
                let key = self.keys.lend().get(answered.draw().record as usize);
                return Heard::Wrong(Wrong {
                    key: readable(key, SHOWN_BYTES),
                    expected: "a value, or none".to_string(),
                    found: format!("{reply:?}").chars().take(SHOWN_BYTES).collect(),
                });
            }
        }
        Heard::Unit { counted: 1 }
    }

    fn again(&mut self) -> bool {
        self.left += self.questions.count() - self.heard;
        self.questions.pass_to(self.heard);
        true
    }

    fn stop(&mut self) {
        self.left = 0;
    }

    fn drawn(&self) -> Option<u64> {
        Some(self.questions.count())
    }

    fn counted(&self) -> Metrics {
        Metrics { misses: self.misses, ..Metrics::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;
    use kvfair_core::trial::Data;

    #[test]
    fn only_the_keys_that_were_drawn_are_asked_for_and_one_that_is_gone_is_a_miss() {
        let settings = JobSettings {
            name: "mixed".to_string(),
            data: Data::Recipe { name: String::new(), seed: 1 },
            format: String::new(),
            read_as: None,
            units: None,
            skip_bad: 0,
            via: Default::default(),
            split: Default::default(),
            load: Some(Load { records: 9, reads: 1, writes: 0, read_only: true, ..Load::default() }),
            replay_percent: None,
            ngrams: Default::default(),
            lookup: Default::default(),
            fans: Default::default(),
        };
        let keys: KeyList = [&b"a"[..], b"b b", b"\xff"].into_iter().collect();
        let job = Existing::new(&settings, &[Part::Run], keys);
        let mut client = job.client(Part::Run, 0, At::closed(1, 300), &Text(String::new())).unwrap();
        let mut seen = std::collections::BTreeSet::new();
        for count in 0..300 {
            let Ask::Op(Op::Get(key)) = client.ask() else { panic!("a get") };
            seen.insert(key.to_vec());
            let reply = if count % 3 == 0 { Reply::Missing } else { Reply::Value(b"anything") };
            assert_eq!(client.hear(&reply), Heard::Unit { counted: 1 });
        }
        assert!(matches!(client.ask(), Ask::End));
        assert_eq!((seen.len(), client.counted().misses), (3, 100));
    }
}
