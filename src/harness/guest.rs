//! A server that is not ours loses nothing, by eviction either: before the first write its memory must hold what we
//! write, and while we write its evictions are watched. It knows no store by name.

use std::net::{IpAddr, ToSocketAddrs, UdpSocket};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::machine;
use super::oracle::Summary;
use super::plan::{Chosen, Plan};
use crate::jobs::LOAD_BYTES;
use crate::model::op::Fault;
use crate::model::room::Headroom;
use crate::model::trial::{JobSettings, Via};
use crate::model::units::thousands;
use crate::stores::room::{Limit, ServerMemory, Weight};
use crate::stores::{Adapter, Launch, Place, Store, password};

/// How often a server is asked for its evictions: one short question a second is nothing beside a job's.
const EVERY: Duration = Duration::from_secs(1);
/// How long a phase may wait for the answer at its boundary.
const AT_BOUNDARY: Duration = Duration::from_secs(1);
/// How long a server may be silent to who watches it.
const PATIENCE: Duration = Duration::from_secs(5);

/// What is to be known of a server before anything is written to it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct MemoryQuery {
    /// What will be written; nothing where only the user's program knows.
    pub weight: Option<Weight>,
    /// What it used before the first trial of this run.
    pub first_used_bytes: Option<u64>,
    /// `--accept-unchecked`
    pub accepts_unchecked: bool,
}

impl MemoryQuery {
    /// What a trial will write.
    pub fn of(plan: &Plan, chosen: &Chosen, job: &JobSettings, summary: &Summary) -> MemoryQuery {
        let weight = plan.kind.map(|_| {
            let mut weight = summary.weight.clone();
            if chosen.via == Via::Native {
                weight.add(0, summary.fields);
            }
            let largest = weight.entries().map(|(bytes, _)| bytes).max().unwrap_or(0);
            // A job without requests of its own asks for one thing at a time.
            let load = job.load.as_ref();
            let batch = load.and_then(|load| load.batches.iter().max().copied()).unwrap_or(1);
            let depth = load.map_or(1, |load| load.depth);
            weight.connect(
                u64::from(plan.clients_of(chosen)),
                largest.saturating_mul(u64::from(depth) * u64::from(batch)),
            );
            weight.connect(1, u64::from(LOAD_BYTES));
            weight
        });
        MemoryQuery { weight, first_used_bytes: chosen.first_used.get(), accepts_unchecked: plan.accepts_unchecked }
    }

    /// Whether there is room for it, and what was seen; nothing of a store that never wants for memory.
    pub fn of_room(&self, store: &dyn Store, name: &str, place: &Place) -> Result<Option<Headroom>, Fault> {
        let Some(room) = store.room()? else { return Ok(None) };
        let need = self.weight.as_ref().map(|weight| store.needs(weight));
        self.judge(room, need, name, place).map(Some)
    }

    /// The same of what the probes of a check write.
    pub fn of_check(&self, store: &dyn Store, name: &str, place: &Place) -> Result<Option<Headroom>, Fault> {
        let Some(room) = store.room()? else { return Ok(None) };
        let need = Some(room.check_bytes);
        self.judge(room, need, name, place).map(Some)
    }

    fn judge(&self, room: ServerMemory, need: Option<u64>, name: &str, place: &Place) -> Result<Headroom, Fault> {
        let host = if is_here(place) { machine::free_memory_bytes() } else { None };
        let used = match (room.stays_taken, self.first_used_bytes) {
            // It is empty now: what it has taken since, it took for our own trials.
            (true, Some(first)) => room.used_bytes.map(|used| used.min(first)),
            _ => room.used_bytes,
        };
        let (limit, free) = match &room.limit {
            Limit::Bytes(limit) => {
                let own = used.map(|used| limit.saturating_sub(used));
                (Some(*limit), own.map(|own| host.map_or(own, |host| own.min(host))))
            }
            Limit::Host => (Some(0), host),
            Limit::Unknown(_) => (None, None),
        };
        let ServerMemory { used_bytes, policy, records, evicted, .. } = room.clone();
        let seen =
            Headroom { limit_bytes: limit, used_bytes, policy, records, evicted, free_bytes: free, need_bytes: need };
        let Some(need) = need else { return Ok(seen) };
        match free {
            Some(free) if free < need => Err(Fault::Unsupported(too_small(&seen, free, need, &room, name, place))),
            Some(_) => Ok(seen),
            None if room.limit == Limit::Host || self.accepts_unchecked => Ok(seen),
            None => Err(Fault::Unsupported(unknown(&room, need, place))),
        }
    }
}

fn too_small(seen: &Headroom, free: u64, need: u64, room: &ServerMemory, name: &str, place: &Place) -> String {
    let at_limit = match &room.policy {
        None if room.evicts => "may drop records, since its eviction policy is unknown",
        _ if room.evicts => "drops records",
        _ => "refuses its owner's writes",
    };
    format!(
        "{place} has {} bytes of memory left ({}), and this may take {}: at its limit it {at_limit}; raise the limit, \
         write less, or name `{name}`, a server of our own",
        thousands(free),
        seen.in_words(),
        thousands(need)
    )
}

fn unknown(room: &ServerMemory, need: u64, place: &Place) -> String {
    let why = match &room.limit {
        Limit::Unknown(why) if password::is_wanted(why) => return format!("{place} wants a password: {why}"),
        Limit::Unknown(why) => why.as_str(),
        _ => "it does not tell what it uses",
    };
    format!(
        "{place} does not tell how much memory it has left, and this may take {} bytes: let it answer INFO, or go on \
         at its owner's risk with --accept-unchecked ({why})",
        thousands(need)
    )
}

/// Whether a server is on this host: by a Unix socket, the loopback or one of the host's own addresses.
pub fn is_here(place: &Place) -> bool {
    match place {
        Place::Memory | Place::Path(_) | Place::Unix(_) => true,
        Place::Tcp { host, port } => {
            let addresses = (host.as_str(), *port).to_socket_addrs().into_iter().flatten();
            let mut all = addresses.map(|address| address.ip()).peekable();
            all.peek().is_some() && all.all(is_own)
        }
    }
}

/// Only an address of its own can a host bind to.
fn is_own(address: IpAddr) -> bool {
    address.is_loopback() || UdpSocket::bind((address, 0)).is_ok()
}

/// Asks a server for its evictions over a connection of its own, from a thread of its own, until it is dropped.
pub struct EvictionWatch {
    ask: Sender<Sender<()>>,
    seen: Receiver<u64>,
    label: String,
}

impl EvictionWatch {
    /// Of a server that had dropped `before` records when nothing was written yet.
    pub fn begin(adapter: &'static Adapter, launch: &Launch, label: &str, before: u64) -> EvictionWatch {
        let launch = Launch { clients: 1, patience: PATIENCE, ..launch.clone() };
        let ((ask, asked), (tell, seen)) = (mpsc::channel(), mpsc::channel());
        std::thread::spawn(move || watch(adapter, &launch, before, &asked, &tell));
        EvictionWatch { ask, seen, label: label.to_string() }
    }

    /// What was seen so far: the words with which a run stops.
    pub fn look(&self) -> Option<String> {
        let count = self.seen.try_iter().max()?;
        Some(format!(
            "{} dropped {} records to make room while kvfair wrote to it: it has no result",
            self.label,
            thousands(count)
        ))
    }

    /// The same after the server was asked once more.
    pub fn look_now(&self) -> Option<String> {
        let (done, is_done) = mpsc::channel();
        // A watch that has ended has told all that it knows.
        if self.ask.send(done).is_ok() {
            let _ = is_done.recv_timeout(AT_BOUNDARY);
        }
        self.look()
    }
}

/// Ends when its `EvictionWatch` is dropped, or when the server cannot be asked: the trial hears of that too.
fn watch(adapter: &Adapter, launch: &Launch, mut before: u64, asked: &Receiver<Sender<()>>, tell: &Sender<u64>) {
    let Ok(store) = (adapter.open)(launch) else { return };
    let Ok(Some(mut ask)) = store.watch() else { return };
    loop {
        let waits = match asked.recv_timeout(EVERY) {
            Ok(waits) => Some(waits),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => return,
        };
        let Ok(Some(now)) = ask() else { return };
        if now > before && tell.send(now - before).is_err() {
            return;
        }
        // Its owner may set its counters back.
        before = before.min(now);
        drop(waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABYTES: u64 = 1 << 50;

    fn room(limit: Limit, used_bytes: Option<u64>) -> ServerMemory {
        ServerMemory {
            limit,
            used_bytes,
            policy: Some("allkeys-lru".to_string()),
            evicts: true,
            records: Some(5_001),
            evicted: Some(0),
            stays_taken: false,
            check_bytes: 0,
        }
    }

    fn elsewhere() -> Place {
        // RFC 5737: an address of documentation.
        Place::Tcp { host: "192.0.2.1".to_string(), port: 6379 }
    }

    fn judged(asked: &MemoryQuery, room: ServerMemory, need: u64, place: &Place) -> Result<Option<u64>, String> {
        let seen = asked.judge(room, Some(need), "redis", place);
        seen.map(|seen| seen.free_bytes).map_err(|fault| fault.to_string())
    }

    #[test]
    fn what_does_not_fit_is_refused_with_both_numbers() {
        let judged = |need| judged(&MemoryQuery::default(), room(Limit::Bytes(3_000), Some(1_000)), need, &elsewhere());
        assert_eq!(judged(2_000), Ok(Some(2_000)));
        let words = judged(2_001).unwrap_err();
        for part in ["2,000 bytes", "2,001", "5,001 records", "allkeys-lru", "drops records", "name `redis`"] {
            assert!(words.contains(part), "no {part} in {words}");
        }
        let untold = ServerMemory { policy: None, ..room(Limit::Bytes(3_000), Some(1_000)) };
        let words = self::judged(&MemoryQuery::default(), untold, 2_001, &elsewhere()).unwrap_err();
        assert!(words.contains("it may drop records, since its eviction policy is unknown"), "{words}");
        let full = ServerMemory { evicts: false, ..room(Limit::Bytes(3_000), Some(9_000)) };
        let words = self::judged(&MemoryQuery::default(), full, 1, &elsewhere()).unwrap_err();
        assert!(words.contains("0 bytes") && words.contains("refuses its owner's writes"), "{words}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn without_a_limit_it_is_that_of_the_host() {
        let asked = MemoryQuery::default();
        let here = Place::Tcp { host: "localhost".to_string(), port: 1 };
        assert!(judged(&asked, room(Limit::Host, None), 1, &here).unwrap().is_some());
        assert!(judged(&asked, room(Limit::Host, None), GIGABYTES, &here).is_err());
        assert!(judged(&asked, room(Limit::Bytes(2 * GIGABYTES), Some(0)), GIGABYTES, &here).is_err());
        // On another host it is not known, and the run goes on.
        assert_eq!(judged(&asked, room(Limit::Host, None), GIGABYTES, &elsewhere()), Ok(None));
    }

    #[test]
    fn what_is_not_told_is_refused_unless_that_is_accepted() {
        let denied = || room(Limit::Unknown("INFO: NOPERM".to_string()), None);
        let words = judged(&MemoryQuery::default(), denied(), 7, &elsewhere()).unwrap_err();
        assert!(words.contains("NOPERM") && words.contains("--accept-unchecked"), "{words}");
        assert!(judged(&MemoryQuery::default(), room(Limit::Bytes(9), None), 7, &elsewhere()).is_err());
        let accepts = MemoryQuery { accepts_unchecked: true, ..MemoryQuery::default() };
        assert_eq!(judged(&accepts, denied(), 7, &elsewhere()), Ok(None));
        // What is known to be too small stays so.
        assert!(judged(&accepts, room(Limit::Bytes(9), Some(3)), 7, &elsewhere()).is_err());
    }

    #[test]
    fn what_our_own_trials_took_is_there_for_the_next() {
        let pages = ServerMemory { stays_taken: true, ..room(Limit::Bytes(64), Some(50)) };
        let asked = MemoryQuery { first_used_bytes: Some(2), ..MemoryQuery::default() };
        assert_eq!(judged(&asked, pages.clone(), 60, &elsewhere()), Ok(Some(62)));
        assert!(judged(&MemoryQuery::default(), pages.clone(), 60, &elsewhere()).is_err());
        let given_back = ServerMemory { stays_taken: false, ..pages };
        assert!(judged(&asked, given_back, 60, &elsewhere()).is_err(), "what was taken since is its owner's");
    }
}
