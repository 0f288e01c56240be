//! What a request of `getset` costs besides the store where the store is in the same process: drawing, checking,
//! counting and timing it.

use std::hint::black_box;
use std::time::Instant;

use kvfair::jobs::getset::GETSET;
use kvfair::jobs::{Ask, Job, Part};
use kvfair::loadgen::{Progress, Work, threads};
use kvfair::model::load::{At, Load};
use kvfair::model::op::{Op, Reply};
use kvfair::model::trial::{Data, JobSettings};
use kvfair::stores::{self, Store};

use super::{Bench, NoSource, Outcome, ROUNDS, best, launch};

/// Of each part.
const REQUESTS: u64 = 3_000_000;
/// Few enough to stay in the processor's cache. Of more, a bare loop asks for the next before the last has come from
/// memory; with a client in between fewer are waited for at once. That is time, but nothing that a client does.
const RECORDS_CACHED: u64 = 1_000;
const OWED_NS: f64 = 80.0;

pub fn measure(_: &Bench) -> Outcome {
    let requests = GETSET.requests.as_ref().expect("a job of requests");
    let [set_ns, get_ns] = besides_ram_ns(RECORDS_CACHED, requests.value_bytes);
    let [far_set_ns, far_get_ns] = besides_ram_ns(requests.records, requests.value_bytes);
    let line = format!(
        "besides ram of {RECORDS_CACHED} records, a set costs {set_ns:.0} ns and a get {get_ns:.0} ns (owed at most \
         {OWED_NS}); beside a bare loop over {} that waits for several at once, {far_set_ns:.0} and {far_get_ns:.0}",
        requests.records
    );
    Outcome { line, holds: set_ns.max(get_ns) <= OWED_NS }
}

/// What a set and a get cost through client, counting and clock, less what the same ones cost the store alone.
fn besides_ram_ns(records: u64, value_bytes: u32) -> [f64; 2] {
    let ram = stores::find("ram").expect("ram is built in");
    let store = (ram.open)(&launch()).expect("ram opens");
    let job = (GETSET.open)(&settings(Load { records, value_bytes, clients: vec![1], ..Load::default() }));
    let at = |asked| At { value_bytes, ..At::closed(1, asked) };
    drive(job.as_ref(), store.as_ref(), Part::Load, at(records));
    [Part::Set, Part::Get].map(|part| {
        let recorded = Recorded::of(job.as_ref(), store.as_ref(), part, at(REQUESTS));
        let (mut whole, mut alone) = (Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            whole.push(drive(job.as_ref(), store.as_ref(), part, at(REQUESTS)));
            alone.push(recorded.replay(store.as_ref()));
        }
        (best(&whole) - best(&alone)) * 1e9 / REQUESTS as f64
    })
}

fn settings(load: Load) -> JobSettings {
    JobSettings {
        name: "getset".into(),
        data: Data::Recipe { name: "drawn".into(), seed: GETSET.default_seed },
        format: String::new(),
        read_as: None,
        units: None,
        skip_bad: 0,
        via: Default::default(),
        split: Default::default(),
        load: Some(load),
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    }
}

/// Seconds that a part took its only client.
fn drive(job: &dyn Job, store: &dyn Store, part: Part, at: At) -> f64 {
    let progress = Progress::new(1);
    let work = Work { store, job, source: &NoSource, part, at, pace: None, limit: None, progress: &progress };
    threads::run(&work, || ()).expect("right answers").took_s
}

/// What a part's client asks, to be asked again without it.
#[derive(Default)]
struct Recorded {
    bytes: Vec<u8>,
    key_bytes: usize,
    value_bytes: usize,
}

impl Recorded {
    fn of(job: &dyn Job, store: &dyn Store, part: Part, at: At) -> Recorded {
        let mut client = job.client(part, 0, at, &NoSource).expect("a client");
        let mut session = store.session().expect("a session");
        let mut recorded = Recorded::default();
        loop {
            let op = match client.ask() {
                Ask::Op(op) => op,
                Ask::Unit => continue,
                _ => return recorded,
            };
            let (key, value) = match op {
                Op::Set { key, value, .. } => (key, value),
                Op::Get(key) => (key, &[][..]),
                _ => unreachable!("sets and gets only"),
            };
            (recorded.key_bytes, recorded.value_bytes) = (key.len(), value.len());
            recorded.bytes.extend_from_slice(key);
            recorded.bytes.extend_from_slice(value);
            let reply = session.ask(&op).expect("ram answers");
            client.hear(&reply);
        }
    }

    /// Seconds that the store takes for all of it. Of what is read a byte is looked at: fetching it is the store's.
    fn replay(&self, store: &dyn Store) -> f64 {
        let mut session = store.session().expect("a session");
        let began = Instant::now();
        for asked in self.bytes.chunks_exact(self.key_bytes + self.value_bytes) {
            let (key, value) = asked.split_at(self.key_bytes);
            let op = if value.is_empty() { Op::Get(key) } else { Op::Set { key, value, ttl_s: None } };
            if let Reply::Value(value) = session.ask(&op).expect("ram answers") {
                black_box(value[0]);
            }
        }
        began.elapsed().as_secs_f64()
    }
}
