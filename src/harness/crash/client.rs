//! The clients of a store that is to be killed: a process of their own, which holds the store where that is embedded.
//! What they hear they tell at once, before they ask again.

use std::io;
use std::sync::Mutex;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::harness::child::tell;
use crate::harness::task::{Event, LedgerTask, LedgerWork};
use crate::model::crash::ledger;
use crate::model::op::{Fault, KeyList, Op, Reply};
use crate::stores::{self, Session, Store};

/// Keys that are read back in one question.
const AT_ONCE: usize = 64;
/// And the most bytes of their answer: no value of a ledger has more than 20,000.
pub const ANSWER_BYTES: u64 = AT_ONCE as u64 * 21_000;

/// The whole life of the clients.
pub fn run(task: &LedgerTask) -> io::Result<()> {
    tell(&match carry_out(task) {
        Ok(()) => Event::Done,
        Err(Fault::Unsupported(why)) => Event::Refused(why),
        Err(fault) => Event::Failed(fault.to_string()),
    });
    // The store is closed by now; an audit ends when everything was heard.
    io::stdin().read_line(&mut String::new())?;
    Ok(())
}

fn carry_out(task: &LedgerTask) -> Result<(), Fault> {
    let adapter =
        stores::find(&task.store).ok_or_else(|| Fault::Unsupported(format!("there is no store {}", task.store)))?;
    let store = (adapter.open)(&task.launch)?;
    tell(&Event::Facts(store.facts()?));
    match &task.work {
        LedgerWork::Write { first, at_most } => write(store.as_ref(), first, *at_most),
        LedgerWork::Read { slots } => read(store.as_ref(), slots),
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
            Reply::Done => tell(&Event::Acknowledged { client, sequence, at_s: now_s() }),
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
                tell(&Event::Found { client, slot, found: ledger::found(client, slot, value) });
            }
            Ok(())
        }
        other => Err(Fault::Garbled(format!("a get-many of {} keys was answered by {other:?}", slots.len()))),
    }
}
