//! What several sessions of one store owe each other: what one has flushed is seen, and no change is lost.

use std::thread;

use kvfair::model::op::{Op, Reply};
use kvfair::stores::{Adapter, Launch, Store};

use super::{Said, Talk, say, told};

/// What one session has flushed, another one sees, though it has looked before.
pub fn check_other_sees(adapter: &Adapter, store: &dyn Store) -> Result<(), String> {
    let (to_reader, from_writer) = std::sync::mpsc::channel();
    let (to_writer, from_reader) = std::sync::mpsc::channel();
    thread::scope(|scope| {
        let writer = scope.spawn(move || -> Result<(), String> {
            let mut talk = Talk::begin(adapter, store, "two")?;
            let key = talk.key("k");
            for value in [b"1", b"2"] {
                talk.set(&key, value).and_then(|()| talk.flush()).map_err(told)?;
                to_reader.send(()).map_err(|_| "the reader is gone".to_string())?;
                from_reader.recv().map_err(|_| "the reader is gone".to_string())?;
            }
            Ok(())
        });
        let reader = scope.spawn(move || -> Result<(), String> {
            let mut talk = Talk::begin(adapter, store, "two")?;
            let key = talk.key("k");
            for value in [b"1", b"2"] {
                from_writer.recv().map_err(|_| "the writer is gone".to_string())?;
                talk.expect(Op::Get(&key), Reply::Value(value)).map_err(told)?;
                to_writer.send(()).map_err(|_| "the writer is gone".to_string())?;
            }
            Ok(())
        });
        let reader = reader.join().map_err(|_| "the reader panicked".to_string())?;
        reader.and(writer.join().map_err(|_| "the writer panicked".to_string())?)
    })
}

const UNITS: i64 = 20;
const OPS_A_UNIT: i64 = 5;

/// Many threads count on the same keys, a few ops a unit, and nothing is lost.
pub fn check_threads_count(adapter: &Adapter, store: &dyn Store, launch: &Launch) -> Result<(), String> {
    let count = || -> Result<(), String> {
        let mut talk = Talk::begin(adapter, store, "threads")?;
        let (key, other) = (talk.key("n"), talk.key("other"));
        for _ in 0..UNITS {
            for _ in 0..OPS_A_UNIT {
                talk.ask(Op::Increment { key: &key, by: 1 }).map_err(told)?;
                talk.ask(Op::Increment { key: &other, by: -1 }).map_err(told)?;
                talk.ask(Op::Get(b"contract:threads:nobody")).map_err(told)?;
            }
            talk.flush().map_err(told)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..launch.clients).map(|_| scope.spawn(count)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_string())?)
    })?;
    let mut talk = Talk::begin(adapter, store, "threads")?;
    let (key, other) = (talk.key("n"), talk.key("other"));
    let sum = i64::from(launch.clients) * UNITS * OPS_A_UNIT;
    talk.expect(Op::Number(&key), Reply::Number(sum)).map_err(told)?;
    talk.expect(Op::Number(&other), Reply::Number(-sum)).map_err(told)
}

/// Of many threads that change the same value by check-and-set, each wins exactly as often as it was told.
pub fn check_one_cas_wins(adapter: &Adapter, store: &dyn Store, launch: &Launch) -> Result<(), String> {
    let mut talk = Talk::begin(adapter, store, "cas")?;
    let key = talk.key("k");
    talk.set(&key, b"0").and_then(|()| talk.flush()).map_err(told)?;
    if let Err(Said::Unsupported(_)) = talk.ask(Op::GetVersion(&key)) {
        return Ok(());
    }
    drop(talk);
    let change = || -> Result<(), String> {
        let mut talk = Talk::begin(adapter, store, "cas")?;
        let key = talk.key("k");
        let mut won = 0;
        while won < UNITS {
            let (number, version) = match talk.ask(Op::GetVersion(&key)).map_err(told)? {
                Reply::Versioned(value, version) => {
                    let text = String::from_utf8_lossy(value).into_owned();
                    (text.parse::<i64>().map_err(|error| format!("'{text}': {error}"))?, version)
                }
                other => return Err(format!("get-version said {}", say(&other))),
            };
            let value = (number + 1).to_string();
            match talk.ask(Op::Cas { key: &key, version, value: value.as_bytes() }).map_err(told)? {
                Reply::Done => won += 1,
                Reply::Conflict => {}
                other => return Err(format!("check-and-set said {}", say(&other))),
            }
            talk.flush().map_err(told)?;
        }
        Ok(())
    };
    thread::scope(|scope| {
        let threads: Vec<_> = (0..launch.clients).map(|_| scope.spawn(change)).collect();
        threads.into_iter().try_for_each(|thread| thread.join().map_err(|_| "a thread panicked".to_string())?)
    })?;
    let mut talk = Talk::begin(adapter, store, "cas")?;
    let sum = (i64::from(launch.clients) * UNITS).to_string();
    talk.expect(Op::Get(&key), Reply::Value(sum.as_bytes())).map_err(told)
}
