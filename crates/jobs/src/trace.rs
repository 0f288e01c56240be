//! `trace`: asks again what was recorded of somebody's cache, as fast as it is answered. A get that finds nothing is
//! followed by a set of the same key, for every store alike. It must not know any store.

use std::io;
use std::sync::{Arc, OnceLock};

use xxhash_rust::xxh3::xxh3_64;

use super::{Ask, Client, EndState, Heard, InputFault, Job, JobKind, Part, Source};
use kvfair_core::load::At;
use kvfair_core::metrics::Metrics;
use kvfair_core::op::{Op, Reply, Wrong, readable};
use kvfair_core::trial::{JobSettings, Via};

mod fields;
pub mod forms;
mod recognise;
pub mod recorded;
mod times;
pub mod values;

use forms::Operation;
use recorded::{Recorded, RecordedRequest};
use times::{DueTimes, WaitingRequest};
use values::TraceValues;

pub static TRACE: JobKind = JobKind {
    name: "trace",
    about: "replays recorded traffic: gets, sets and deletes of keys and sizes as they were; a get that finds nothing is \
            followed by a set",
    unit: "request",
    scale: "requests",
    default_units: u64::MAX,
    default_seed: 0,
    // Recorded traffic is somebody's; none is made up.
    recipe: "",
    formats: forms::NAMES,
    recognise: Some(recognise::recognise),
    expected: recognise::EXPECTED,
    requests: None,
    ways: &[Via::Portable],
    options: &["--strict"],
    asked: super::asked_once,
    end_state: |_| EndState::Recorded,
    data: |_, _, _| Err(io::Error::other("recorded traffic is not made by a recipe")),
    open: |settings| Box::new(Trace { settings: settings.clone(), values: OnceLock::new() }),
};

/// How many bytes of a key or an answer a message shows.
const SHOWN_BYTES: usize = 60;

/// What names a key in its values, and deals it to a client.
#[inline]
pub fn hash_of(key: &[u8]) -> u64 {
    xxh3_64(key)
}

/// Whether recordings of this form tell no times.
pub fn has_no_times(form: &str) -> bool {
    form == "arc"
}

struct Trace {
    settings: JobSettings,
    /// Made when the first client is: who asks for the parts only need not wait.
    values: OnceLock<Arc<TraceValues>>,
}

impl Job for Trace {
    fn client(&self, _: Part, index: u32, at: At, source: &dyn Source) -> io::Result<Box<dyn Client>> {
        Ok(Box::new(Replaying {
            recorded: Recorded::open(&self.settings, source)?,
            index: u64::from(index),
            of: u64::from(at.clients),
            key: Vec::new(),
            hash: 0,
            version: 0,
            value_bytes: 0,
            ttl_s: 0,
            step: Step::Done,
            value: Vec::new(),
            values: self.values.get_or_init(Arc::default).clone(),
            times: self.settings.replay_percent.map(DueTimes::new),
            fault: None,
            misses: 0,
        }))
    }

    fn fills(&self) -> bool {
        true
    }
}

/// A client that makes the requests of the keys whose hash falls to it, one at a time, so that each key's come in
/// their order.
struct Replaying {
    recorded: Recorded,
    index: u64,
    of: u64,
    /// Of the request under way.
    key: Vec<u8>,
    hash: u64,
    version: u64,
    value_bytes: usize,
    ttl_s: u32,
    step: Step,
    value: Vec<u8>,
    values: Arc<TraceValues>,
    /// Where the times of the recording are kept.
    times: Option<DueTimes>,
    /// What stopped the reading, to be told when the next request is asked for.
    fault: Option<InputFault>,
    misses: u64,
}

/// How far a request is.
#[derive(Clone, Copy, PartialEq)]
enum Step {
    /// To be asked, as it was recorded.
    Ask(Operation),
    /// To be set, since the get of it found nothing.
    Fill,
    /// Asked and not answered.
    Asked(Operation),
    Filling,
    Done,
}

impl Client for Replaying {
    fn ask(&mut self) -> Ask<'_> {
        if self.step == Step::Done {
            let turned = if self.times.is_some() { self.turn_in_time() } else { self.turn() };
            match turned {
                Ok(true) => {}
                Ok(false) => return Ask::End,
                Err(fault) => return Ask::Fail(fault),
            }
        }
        let (step, operation) = match self.step {
            Step::Ask(operation) => (Step::Asked(operation), operation),
            Step::Fill => (Step::Filling, Operation::Set),
            Step::Asked(_) | Step::Filling | Step::Done => return Ask::Wait,
        };
        self.step = step;
        if matches!(operation, Operation::Set | Operation::Add) {
            self.values.write(self.hash, self.version, self.value_bytes, &mut self.value);
        }
        let (key, value) = (self.key.as_slice(), self.value.as_slice());
        Ask::Op(match operation {
            Operation::Get => Op::Get(key),
            Operation::Set => Op::Set { key, value, ttl_s: (self.ttl_s > 0).then_some(self.ttl_s) },
            Operation::Add => Op::SetIfAbsent { key, value },
            Operation::Delete => Op::Delete(key),
        })
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        let step = std::mem::replace(&mut self.step, Step::Done);
        match (step, *reply) {
            (Step::Asked(Operation::Get), Reply::Missing) => {
                self.misses += 1;
                self.step = Step::Fill;
                return Heard::More;
            }
            (Step::Asked(Operation::Get), Reply::Value(value)) if self.values.belongs(self.hash, value) => {}
            (Step::Asked(Operation::Set) | Step::Filling, Reply::Done) => {}
            (Step::Asked(Operation::Add), Reply::Done | Reply::Conflict) => {}
            (Step::Asked(Operation::Delete), Reply::Done | Reply::Missing) => {}
            (step, reply) => return self.wrong(step, reply),
        }
        Heard::Unit { counted: 1 }
    }

    fn due_ns(&mut self) -> Option<u64> {
        if let Err(fault) = self.gather() {
            self.fault = Some(fault);
        }
        Some(self.times.as_ref()?.next()?.due_ns)
    }

    /// Every client reads the whole input, so that one of them tells of its bad rows for all.
    fn skipped(&self) -> u64 {
        if self.index == 0 { self.recorded.skipped() } else { 0 }
    }

    fn counted(&self) -> Metrics {
        Metrics { misses: self.misses, ..Metrics::default() }
    }
}

impl Replaying {
    /// Goes on to this client's next request; false when there is none.
    fn turn(&mut self) -> Result<bool, InputFault> {
        while self.step == Step::Done {
            let (of, index) = (self.of, self.index);
            let (key, hash, step) = (&mut self.key, &mut self.hash, &mut self.step);
            let (version, value_bytes, ttl_s) = (&mut self.version, &mut self.value_bytes, &mut self.ttl_s);
            let read = self.recorded.read(|request: RecordedRequest<'_>| {
                request.key.write(key);
                *hash = hash_of(key);
                if of > 1 && *hash % of != index {
                    return;
                }
                (*version, *value_bytes, *ttl_s) = (request.number, request.value_bytes as usize, request.ttl_s);
                *step = Step::Ask(request.operation);
            })?;
            if !read {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Goes on to the request that is due next; false when there is none.
    fn turn_in_time(&mut self) -> Result<bool, InputFault> {
        if let Some(fault) = self.fault.take() {
            return Err(fault);
        }
        self.gather()?;
        let Some(held) = self.times.as_mut().and_then(DueTimes::take) else { return Ok(false) };
        (self.key, self.hash, self.version) = (held.key, held.hash, held.number);
        (self.value_bytes, self.ttl_s) = (held.value_bytes as usize, held.ttl_s);
        self.step = Step::Ask(held.operation);
        Ok(true)
    }

    /// Reads on until a request of this client's is known with its moment, or none is left.
    fn gather(&mut self) -> Result<(), InputFault> {
        let Replaying { times: Some(times), recorded, key, of, index, .. } = self else { return Ok(()) };
        while times.next().is_none() {
            let read = recorded.read(|request: RecordedRequest<'_>| {
                let second_s = times.pass(request.time_s);
                request.key.write(key);
                let hash = hash_of(key);
                if *of > 1 && hash % *of != *index {
                    return;
                }
                let RecordedRequest { number, value_bytes, ttl_s, operation, .. } = request;
                let key = key.clone();
                times.hold(second_s, WaitingRequest { due_ns: 0, number, key, hash, value_bytes, ttl_s, operation });
            })?;
            if !read {
                times.end_second();
                return Ok(());
            }
        }
        Ok(())
    }

    #[cold]
    fn wrong(&self, step: Step, reply: Reply<'_>) -> Heard {
        let expected = match step {
            Step::Asked(Operation::Get) => "a whole value that was set under this key, or none",
            Step::Asked(Operation::Set) | Step::Filling => "that it was set",
            Step::Asked(Operation::Add) => "that it was set, or is there already",
            Step::Asked(Operation::Delete) => "that it was deleted, or is not there",
            Step::Ask(_) | Step::Fill | Step::Done => "no answer, for nothing was asked",
        };
        let found = match reply {
            Reply::Value(value) => format!("{} bytes: {}", value.len(), readable(value, SHOWN_BYTES)),
            other => format!("{other:?}").chars().take(SHOWN_BYTES).collect(),
        };
        Heard::Wrong(Wrong { key: readable(&self.key, SHOWN_BYTES), expected: expected.to_string(), found })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Text;
    use kvfair_core::trial::Data;

    fn client(text: &'static str, index: u32, of: u32) -> Box<dyn Client> {
        let settings = JobSettings {
            name: "trace".to_string(),
            data: Data::File { path: "text".into() },
            format: "twitter".to_string(),
            read_as: None,
            units: None,
            skip_bad: 0,
            via: Via::Portable,
            split: Default::default(),
            load: None,
            replay_percent: None,
            ngrams: Default::default(),
            lookup: Default::default(),
            fans: Default::default(),
        };
        (TRACE.open)(&settings).client(Part::Run, index, At::closed(of, 0), &Text(text.to_string())).unwrap()
    }

    #[test]
    fn a_get_that_finds_nothing_is_followed_by_a_set_and_is_one_unit() {
        let mut client = client("1,key,3,20,1,get,0\n2,key,3,9,1,set,60\n", 0, 1);
        assert!(matches!(client.ask(), Ask::Op(Op::Get(b"key"))));
        assert!(matches!(client.ask(), Ask::Wait), "what follows depends on the answer");
        assert_eq!(client.hear(&Reply::Missing), Heard::More);
        assert!(matches!(client.ask(), Ask::Op(Op::Set { key: b"key", value, ttl_s: None }) if value.len() == 20));
        assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 1 });
        assert!(matches!(client.ask(), Ask::Op(Op::Set { key: b"key", value, ttl_s: Some(60) }) if value.len() == 9));
        assert_eq!(client.hear(&Reply::Done), Heard::Unit { counted: 1 });
        assert!(matches!(client.ask(), Ask::End));
        assert_eq!(client.counted().misses, 1);
    }

    #[test]
    fn a_value_of_another_key_is_wrong() {
        let mut value = Vec::new();
        for (key, good) in [(&b"key"[..], true), (b"kez", false)] {
            let mut client = client("1,key,3,20,1,get,0\n", 0, 1);
            client.ask();
            TraceValues::default().write(hash_of(key), 7, 40, &mut value);
            assert_eq!(client.hear(&Reply::Value(&value)) == Heard::Unit { counted: 1 }, good);
        }
    }

    #[test]
    fn clients_share_the_keys_between_them() {
        const ROWS: &str = "1,a,1,2,1,get,0\n1,b,1,2,1,delete,0\n1,c,1,2,1,add,5\n1,a,1,2,1,get,0\n1,d,1,2,1,incr,0\n";
        let mut asked = Vec::new();
        for index in 0..3 {
            let mut client = client(ROWS, index, 3);
            while let Ask::Op(op) = client.ask() {
                assert_eq!(hash_of(op.key()) % 3, u64::from(index));
                asked.push(op.key().to_vec());
                let reply = if matches!(op, Op::SetIfAbsent { .. }) { Reply::Conflict } else { Reply::Missing };
                if client.hear(&reply) == Heard::More {
                    client.ask();
                    client.hear(&Reply::Done);
                }
            }
        }
        asked.sort();
        assert_eq!(asked, [b"a", b"a", b"b", b"c"]);
    }
}
