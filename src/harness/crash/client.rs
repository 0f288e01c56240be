//! The clients of a store that is to be killed: a process of their own, which holds the store where that is embedded.
//! What they hear they tell at once, before they ask again.

use std::collections::BTreeMap;
use std::io;
use std::sync::Mutex;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use crate::harness::child::tell;
use crate::model::crash::ledger::{self, FoundValue};
use crate::model::op::{Fault, KeyList, Op, Reply};
use crate::model::trial::{Configuration, Durability};
use crate::stores::{self, Launch, Login, Place, Session, Store};

/// Keys that are read back in one question.
const AT_ONCE: usize = 64;

/// What the process is handed on its standard input, as one line of JSON.
#[derive(Debug, Serialize, Deserialize)]
pub struct LedgerTask {
    pub store: String,
    pub place: Place,
    pub login: Login,
    pub durability: Durability,
    pub settings: BTreeMap<String, String>,
    pub patience_s: f64,
    pub work: LedgerWork,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerWork {
    /// Each client writes from its number on, at most so often.
    Write { first: Vec<u64>, at_most: Option<u64> },
    /// Reads these keys of each client.
    Read { slots: Vec<Vec<u64>> },
}

/// What the process tells, a line of JSON each.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerEvent {
    Opened {
        version: String,
    },
    /// At that second of the epoch.
    Acknowledged {
        client: u32,
        sequence: u64,
        at_s: f64,
    },
    Found {
        client: u32,
        slot: u64,
        found: FoundValue,
    },
    /// The store's library is not here.
    Missing(String),
    Failed(String),
    Done,
}

/// The hidden command `ledger`.
pub fn run() -> io::Result<()> {
    let mut line = String::new();
    io::stdin().read_line(&mut line)?;
    let order: LedgerTask = serde_json::from_str(&line)?;
    tell(&match carry_out(&order) {
        Ok(()) => LedgerEvent::Done,
        Err(Fault::Unsupported(why)) => LedgerEvent::Missing(why),
        Err(fault) => LedgerEvent::Failed(fault.to_string()),
    });
    // The store is closed by now; an audit ends when everything was heard.
    io::stdin().read_line(&mut line)?;
    Ok(())
}

fn carry_out(order: &LedgerTask) -> Result<(), Fault> {
    let adapter =
        stores::find(&order.store).ok_or_else(|| Fault::Unsupported(format!("there is no store {}", order.store)))?;
    let launch = Launch {
        place: order.place.clone(),
        durability: order.durability,
        configuration: Configuration::Matched,
        settings: order.settings.clone(),
        login: order.login.clone(),
        clients: order.work.clients() as u32,
        data_bytes: None,
        answer_bytes: None,
        patience: Duration::from_secs_f64(order.patience_s),
    };
    let store = (adapter.open)(&launch)?;
    tell(&LedgerEvent::Opened { version: store.facts()?.version });
    match &order.work {
        LedgerWork::Write { first, at_most } => write(store.as_ref(), first, *at_most),
        LedgerWork::Read { slots } => read(store.as_ref(), slots),
    }
}

impl LedgerWork {
    fn clients(&self) -> usize {
        match self {
            LedgerWork::Write { first, .. } => first.len(),
            LedgerWork::Read { .. } => 1,
        }
    }
}

/// Each client on a thread of its own, until there is nobody to write to.
fn write(store: &dyn Store, first: &[u64], at_most: Option<u64>) -> Result<(), Fault> {
    let failed: Mutex<Option<Fault>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for (client, &first) in first.iter().enumerate() {
            let failed = &failed;
            scope.spawn(move || {
                if let Err(fault) = write_from(store, client as u32, first, at_most) {
                    failed.lock().expect("no thread panics with this lock").get_or_insert(fault);
                }
            });
        }
    });
    failed.into_inner().expect("no thread panics with this lock").map_or(Ok(()), Err)
}

fn write_from(store: &dyn Store, client: u32, first: u64, at_most: Option<u64>) -> Result<(), Fault> {
    let mut session = store.session()?;
    let mut value = Vec::new();
    for sequence in (first..).take(at_most.map_or(usize::MAX, |count| count as usize)) {
        ledger::value(client, sequence, &mut value);
        let key = ledger::key(client, ledger::slot(sequence));
        match session.ask(&Op::Set { key: &key, value: &value, ttl_s: None })? {
            Reply::Done => tell(&LedgerEvent::Acknowledged { client, sequence, at_s: now_s() }),
            other => return Err(Fault::Garbled(format!("a set was answered by {other:?}"))),
        }
    }
    Ok(())
}

fn now_s() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |since| since.as_secs_f64())
}

/// The first key of the first client alone, so that the moment of the first answer is seen; then all.
fn read(store: &dyn Store, slots: &[Vec<u64>]) -> Result<(), Fault> {
    let mut session = store.session()?;
    for (client, slots) in slots.iter().enumerate() {
        let (first, rest) = slots.split_at(slots.len().min(1));
        for slots in first.chunks(1).chain(rest.chunks(AT_ONCE)) {
            read_some(session.as_mut(), client as u32, slots)?;
        }
    }
    Ok(())
}

fn read_some(session: &mut dyn Session, client: u32, slots: &[u64]) -> Result<(), Fault> {
    let mut keys = KeyList::default();
    slots.iter().for_each(|&slot| keys.push(&ledger::key(client, slot)));
    match session.ask(&Op::GetMany(keys.lend()))? {
        Reply::Values(values) if values.len() == slots.len() => {
            for (&slot, value) in slots.iter().zip(values.iter()) {
                tell(&LedgerEvent::Found { client, slot, found: ledger::found(client, slot, value) });
            }
            Ok(())
        }
        other => Err(Fault::Garbled(format!("a get-many of {} keys was answered by {other:?}", slots.len()))),
    }
}
