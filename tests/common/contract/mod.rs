//! One contract for every store: what each op promises, asked of a store that a launch opens. Answers `Err` rather than
//! panicking, so that a test can also show that a liar is caught. Every key begins with the name of its check, so that
//! it may be run against a server that holds other things.

mod ops;
mod sharing;

use kvfair::model::op::{Fault, Op, Reply, readable};
use kvfair::stores::{Adapter, Launch, Means, Session, Store};

use ops::CHECKS;
use sharing::{check_one_cas_wins, check_other_sees, check_threads_count};

/// What a store has no means for, as `op: its words`, by check. Everything else was asked and answered as promised.
pub type Unsupported = Vec<String>;

/// Asks everything of the store that `adapter` opens by `launch`. With more than one client, also from several threads.
pub fn contract(adapter: &Adapter, launch: &Launch) -> Result<Unsupported, String> {
    let open = || (adapter.open)(launch).map_err(|fault| format!("{}: open: {fault}", adapter.name));
    let mut unsupported = Vec::new();
    let store = open()?;
    check_facts(adapter, store.as_ref())?;
    for (name, check) in CHECKS {
        let mut talk = Talk::begin(adapter, store.as_ref(), name)?;
        match check(&mut talk).and_then(|()| talk.flush()) {
            Ok(()) => {}
            Err(Said::Unsupported(what)) => unsupported.push(what),
            Err(Said::Wrong(what)) => return Err(format!("{} at {}: {name}: {what}", adapter.name, launch.durability)),
        }
    }
    let wrong = |name: &str, what| format!("{} at {}: {name}: {what}", adapter.name, launch.durability);
    check_means(adapter, launch, &unsupported).map_err(|what| wrong("what it lacks", what))?;
    check_count(adapter, store.as_ref()).map_err(|what| wrong("count", what))?;
    if launch.clients > 1 {
        check_other_sees(adapter, store.as_ref()).map_err(|what| wrong("another session", what))?;
        check_threads_count(adapter, store.as_ref(), launch).map_err(|what| wrong("threads", what))?;
        check_one_cas_wins(adapter, store.as_ref(), launch).map_err(|what| wrong("cas from threads", what))?;
    }
    if (adapter.stays)(launch.durability) {
        let before = fill(adapter, store.as_ref(), launch).map_err(|what| wrong("before closing", what))?;
        drop(store);
        check_reopened(adapter, open()?.as_ref(), before).map_err(|what| wrong("after reopening", what))?;
    }
    Ok(unsupported)
}

/// Why a check ended early.
pub enum Said {
    Unsupported(String),
    Wrong(String),
}

impl From<String> for Said {
    fn from(what: String) -> Said {
        Said::Wrong(what)
    }
}

type Checked = Result<(), Said>;

/// A session and the prefix of its check's keys.
struct Talk<'s> {
    store: &'static str,
    session: Box<dyn Session + 's>,
    prefix: String,
}

impl<'s> Talk<'s> {
    fn begin(adapter: &Adapter, store: &'s dyn Store, check: &str) -> Result<Talk<'s>, String> {
        let session = store.session().map_err(|fault| format!("{}: session: {fault}", adapter.name))?;
        Ok(Talk { store: adapter.name, session, prefix: format!("contract:{check}:").replace(' ', "-") })
    }

    fn key(&self, name: impl AsRef<[u8]>) -> Vec<u8> {
        [self.prefix.as_bytes(), name.as_ref()].concat()
    }

    /// The store's answer; a fault must name the store and, where it is unsupported, the op.
    fn ask(&mut self, op: Op<'_>) -> Result<Reply<'_>, Said> {
        let (name, store) = (op.name(), self.store);
        self.session.ask(&op).map_err(|fault| match fault {
            Fault::Unsupported(words) if words.contains(store) && words.contains(name) => {
                Said::Unsupported(format!("{name}: {words}"))
            }
            Fault::Unsupported(words) => Said::Wrong(format!("{name}: 'unsupported' without store and op: {words}")),
            fault => Said::Wrong(format!("{name}: {fault}")),
        })
    }

    fn expect(&mut self, op: Op<'_>, expected: Reply<'_>) -> Checked {
        let found = self.ask(op)?;
        if found == expected {
            return Ok(());
        }
        Err(Said::Wrong(format!(
            "{} of '{}' said {}, not {}",
            op.name(),
            readable(op.key(), 60),
            say(&found),
            say(&expected)
        )))
    }

    fn set(&mut self, key: &[u8], value: &[u8]) -> Checked {
        self.expect(Op::Set { key, value, ttl_s: None }, Reply::Done)
    }

    fn flush(&mut self) -> Checked {
        self.session.flush().map_err(|fault| Said::Wrong(format!("flush: {fault}")))
    }
}

fn say(reply: &Reply<'_>) -> String {
    readable(format!("{reply:?}").as_bytes(), 200)
}

fn check_facts(adapter: &Adapter, store: &dyn Store) -> Result<(), String> {
    let facts = store.facts().map_err(|fault| format!("{}: facts: {fault}", adapter.name))?;
    let version = facts.version.chars().next().is_some_and(|first| first.is_ascii_digit());
    if !version || facts.client_library.is_empty() || facts.increment.is_empty() || facts.settings.is_empty() {
        return Err(format!("{}: facts are not whole: {facts:?}", adapter.name));
    }
    if adapter.server.is_none() && (adapter.version)() != Ok(facts.version.clone()) {
        return Err(format!("{}: the adapter and its facts name two versions: {facts:?}", adapter.name));
    }
    Ok(())
}

/// What an adapter says that it lacks, by the first op that asks for it, is what it cannot be asked.
fn check_means(adapter: &Adapter, launch: &Launch, unsupported: &Unsupported) -> Result<(), String> {
    for (means, op) in [(Means::Scan, "scan"), (Means::Versions, "get-version"), (Means::Tally, "read-tally")] {
        let said = (adapter.lacks)(&launch.settings).contains(&means);
        let found = unsupported.iter().any(|what| what.split(':').next() == Some(op));
        if said != found {
            return Err(format!("{op}: the adapter says that it lacks it: {said}, and it does: {found}"));
        }
    }
    Ok(())
}

/// Where a store counts its records, new keys count once and nothing else does.
fn check_count(adapter: &Adapter, store: &dyn Store) -> Result<(), String> {
    let count = || store.count().map_err(|fault| fault.to_string());
    let before = count()?;
    let mut talk = Talk::begin(adapter, store, "count")?;
    let mut keys: Vec<_> = (0..10).map(|index: u32| talk.key(index.to_string())).collect();
    keys.extend(keys.clone());
    keys.iter().try_for_each(|key| talk.set(key, b"v")).and_then(|()| talk.flush()).map_err(told)?;
    drop(talk);
    let after = count()?;
    if before.map(|before| before + 10) == after {
        return Ok(());
    }
    Err(format!("ten new keys took it from {before:?} to {after:?}"))
}

/// Bytes without a pattern that a store could pack away, the same every time.
fn noise(length: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 56) as u8
    };
    (0..length).map(next).collect()
}

/// In one sentence, for checks that need no unsupported answer.
fn told(said: Said) -> String {
    match said {
        Said::Unsupported(what) | Said::Wrong(what) => what,
    }
}

/// Records that closing must keep, and how many there are.
fn fill(adapter: &Adapter, store: &dyn Store, launch: &Launch) -> Result<Option<u64>, String> {
    let mut talk = Talk::begin(adapter, store, "stays")?;
    for index in 0..100u64 {
        let key = talk.key(index.to_string());
        talk.set(&key, &noise(100 + index as usize, index)).map_err(told)?;
    }
    let counter = talk.key("n");
    talk.ask(Op::Increment { key: &counter, by: 77 }).map_err(told)?;
    talk.flush().map_err(told)?;
    drop(talk);
    store.final_flush().map_err(|fault| format!("final flush at {}: {fault}", launch.durability))?;
    store.count().map_err(|fault| format!("count: {fault}"))
}

fn check_reopened(adapter: &Adapter, store: &dyn Store, before: Option<u64>) -> Result<(), String> {
    let after = store.count().map_err(|fault| format!("count: {fault}"))?;
    if after != before {
        return Err(format!("it holds {after:?} records, not {before:?}"));
    }
    let mut talk = Talk::begin(adapter, store, "stays")?;
    for index in 0..100u64 {
        let key = talk.key(index.to_string());
        let value = noise(100 + index as usize, index);
        talk.expect(Op::Get(&key), Reply::Value(&value)).map_err(told)?;
    }
    let counter = talk.key("n");
    talk.expect(Op::Number(&counter), Reply::Number(77)).map_err(told)
}
