//! Keys that go from one server of a store to another one while clients use them: nothing is lost, and nothing is done
//! twice. Only where kvfair has started the servers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use super::super::talk::{ProbeSession, Probed, Stop, failed, wrong};
use super::{CLIENTS, Probe};
use crate::model::op::{Fault, KeyList, Op, Reply, ValueList};
use crate::model::units;

pub const MOVED: Probe =
    Probe { name: "keys that move between servers while clients use them", keys: "moved", ask: moved };

/// The part in braces decides the server of a key: all of these keys move together.
const TOGETHER: &str = "{moved}";
/// The number of moves, a moment apart. Of three servers each has the keys twice.
const MOVES: u32 = 6;
const APART: Duration = Duration::from_millis(50);
/// Values that are there before, so that a move takes several steps.
const VALUES: usize = 500;
/// The number of values of a get-many.
const AT_ONCE: usize = 5;

/// The keys of the probe.
struct Keys {
    /// No client writes them.
    values: Vec<Vec<u8>>,
    /// All clients add to it.
    sum: Vec<u8>,
    /// A counter and a value of each client.
    own: Vec<[Vec<u8>; 2]>,
}

fn moved(talk: &mut ProbeSession<'_>) -> Probed {
    let keys = prepared(talk)?;
    let (ground, is_over, keys) = (talk.ground, &AtomicBool::new(false), &keys);
    let (moves, ended): (_, Vec<Result<i64, Stop>>) = thread::scope(|scope| {
        let client = |number: usize| {
            move || {
                let begun = ProbeSession::begin(ground, "moved");
                let rounds = begun.and_then(|mut talk| use_while(&mut talk, keys, number, is_over));
                // A client that has failed ends the moving too.
                is_over.fetch_or(rounds.is_err(), Ordering::Relaxed);
                rounds
            }
        };
        let clients: Vec<_> = (0..CLIENTS as usize).map(|number| scope.spawn(client(number))).collect();
        let moves = move_on(|| ground.store.relocate(&keys.sum), is_over);
        is_over.store(true, Ordering::Relaxed);
        (moves, clients.into_iter().map(|client| client.join().expect("a panic aborts")).collect())
    });
    let rounds: Vec<i64> = ended.into_iter().collect::<Result<_, Stop>>()?;
    let (moved, all) = (moves?, rounds.iter().sum());
    if moved == 0 {
        return Err(wrong("moves of keys".to_string(), "no key was moved".to_string()));
    }
    talk.expect(Op::Number(&keys.sum), Reply::Number(all))?;
    for (number, ([count, own], rounds)) in keys.own.iter().zip(rounds).enumerate() {
        talk.expect(Op::Number(count), Reply::Number(rounds))?;
        talk.holds(own, own_value(number, rounds).as_bytes())?;
    }
    for (number, key) in keys.values.iter().enumerate() {
        talk.holds(key, &value(number))?;
    }
    let limit = format!(
        "{} keys moved between servers in {MOVES} moves, while {CLIENTS} clients used them {} times, the most that was \
         tried",
        units::thousands(moved),
        units::thousands(all as u64)
    );
    ground.learned().limits.push(limit);
    Ok(())
}

/// What a client has set in a round.
fn own_value(number: usize, round: i64) -> String {
    format!("{number} in round {round}")
}

fn value(number: usize) -> Vec<u8> {
    format!("value {number} ").repeat(1 + number % 50).into_bytes()
}

fn prepared(talk: &mut ProbeSession<'_>) -> Result<Keys, Stop> {
    let mut keys = Keys { values: Vec::new(), sum: talk.key(format!("{TOGETHER}:sum"))?, own: Vec::new() };
    for number in 0..VALUES {
        keys.values.push(talk.key(format!("{TOGETHER}:value-{number}"))?);
        talk.given(&keys.values[number], &value(number))?;
    }
    for number in 0..CLIENTS {
        keys.own.push([talk.key(format!("{TOGETHER}:count-{number}"))?, talk.key(format!("{TOGETHER}:own-{number}"))?]);
    }
    Ok(keys)
}

/// Moves the keys again and again, unless a client has failed. Returns the number of keys that were moved.
fn move_on(mut relocate: impl FnMut() -> Option<Result<u64, Fault>>, is_over: &AtomicBool) -> Result<u64, Stop> {
    let mut moved = 0;
    for _ in 0..MOVES {
        thread::sleep(APART);
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let keys = relocate().ok_or_else(|| Stop::NotOffered("moving keys between servers".to_string()))?;
        moved += keys.map_err(|fault| failed("a move of keys to another server".to_string(), &fault))?;
    }
    thread::sleep(APART);
    Ok(moved)
}

/// Adds, sets and gets until all is over. Returns the number of rounds.
fn use_while(talk: &mut ProbeSession<'_>, keys: &Keys, number: usize, is_over: &AtomicBool) -> Result<i64, Stop> {
    let [count, own] = &keys.own[number];
    let mut rounds = 0;
    while !is_over.load(Ordering::Relaxed) {
        rounds += 1;
        match talk.ask(Op::Increment { key: &keys.sum, by: 1 })? {
            Reply::Number(_) => {}
            other => return Err(wrong("increment".to_string(), format!("{other:?}"))),
        }
        // One that was done twice, or a counter that came back as it was before, is seen at once.
        talk.expect(Op::Increment { key: count, by: 1 }, Reply::Number(rounds))?;
        let value = own_value(number, rounds);
        talk.set(own, value.as_bytes())?;
        talk.holds(own, value.as_bytes())?;
        get_some(talk, keys, rounds as usize * 7 + number)?;
    }
    Ok(rounds)
}

fn get_some(talk: &mut ProbeSession<'_>, keys: &Keys, from: usize) -> Probed {
    let (mut asked, mut expected) = (KeyList::default(), ValueList::default());
    for number in (from..from + AT_ONCE).map(|number| number % VALUES) {
        asked.push(&keys.values[number]);
        expected.push(Some(&value(number)));
    }
    talk.expect(Op::GetMany(asked.lend()), Reply::Values(expected.lend()))
}
