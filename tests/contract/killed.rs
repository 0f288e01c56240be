//! What was acknowledged at `crash` and `power` is there after the process was killed in the middle of its work, also
//! where it overwrote other values of other lengths; and no record is anything that nobody wrote.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use kvfair::model::op::{Op, Reply};
use kvfair::model::trial::Durability;
use kvfair::stores::{Role, Session};

use crate::common::embedded::{Shape, shapes};

/// How often a store is killed at a durability level: a kill must fall into the middle of a change to be worth
/// anything. At `power` the log or the file is the same but for the syncs.
const ROUNDS: [(Durability, u64); 2] = [(Durability::Crash, 25), (Durability::Power, 5)];

/// Few enough that each is overwritten many times.
const RECORDS: usize = 60;
/// One more is a counter.
const COUNTER: usize = RECORDS;

/// Changes that are acknowledged before a kill, at the least.
const LEAST_CHANGES: u32 = 100;

/// What the longest values have, which take an engine longest to put in place: most kills fall there.
const LONGEST_BYTES: usize = 150_000;

#[test]
fn acknowledged_writes_outlive_a_kill() {
    let mut lost = Vec::new();
    for shape in shapes().filter(|shape| shape.adapter.role == Role::Store) {
        for (level, rounds) in ROUNDS.into_iter().filter(|(level, _)| (shape.adapter.keeps)(*level).is_ok()) {
            lost.extend(killed_again_and_again(&shape, level, rounds).err());
        }
    }
    assert!(lost.is_empty(), "{}", lost.join("\n"));
}

/// A kill in the middle of a value, which seldom comes by itself, made of a file as a kill leaves it: the end of what
/// was written last is missing. The check sum of 6 bits that Tkrzw's records have anyway overlooks one end in 61.
#[test]
fn tkrzw_does_not_believe_a_value_that_was_half_written() {
    let shape = shapes().find(|shape| shape.name() == "tkrzw").expect("a store");
    let place = tempfile::tempdir().expect("a directory");
    let [data, left] = ["data", "left"].map(|name| place.path().join(name));
    [&data, &left].into_iter().for_each(|directory| std::fs::create_dir(directory).expect("a directory"));
    let open =
        |directory: &Path| (shape.adapter.open)(&shape.launch(directory, Durability::Crash, 1)).expect("it opens");
    let [old, new] = [100, 3_000].map(|length| vec![b'x'; length]);
    let store = open(&data);
    let mut session = store.session().expect("a session");
    for value in [&old, &new] {
        session.ask(&Op::Set { key: b"key", value, ttl_s: None }).expect("an answer");
    }
    let whole = std::fs::read(data.join("kvfair.tkh")).expect("its file");
    let end = whole.iter().rposition(|byte| *byte == b'x').expect("the value") + 1;
    for missing in 1..=64 {
        let mut torn = whole.clone();
        torn[end - missing..].fill(0);
        std::fs::write(left.join("kvfair.tkh"), torn).expect("its file, as a kill left it");
        let store = open(&left);
        let mut session = store.session().expect("a session");
        let found = session.ask(&Op::Get(b"key")).expect("an answer");
        assert!(found == Reply::Value(&old), "{missing} bytes were never written, and {} were read", found.bytes());
    }
}

/// A kill in the middle of a write to Kyoto Cabinet's log does harm where zeros follow it, which the library leaves
/// behind a transaction.
#[test]
fn kyoto_cabinet_has_an_empty_log_after_each_change() {
    let shape = shapes().find(|shape| shape.name() == "kyotocabinet").expect("a store");
    for level in [Durability::Crash, Durability::Power] {
        let place = tempfile::tempdir().expect("a directory");
        let store = (shape.adapter.open)(&shape.launch(place.path(), level, 1)).expect("it opens");
        let mut session = store.session().expect("a session");
        let mut change = |op: Op| {
            let reply = session.ask(&op).map(|_| ());
            let log = std::fs::metadata(place.path().join("kvfair.kch.wal")).map(|log| log.len());
            assert!(reply.is_ok() && log.as_ref().is_ok_and(|bytes| *bytes == 0), "{op:?}: {reply:?}, {log:?}");
        };
        for length in [12_000, 11_000, 100, 13_000] {
            change(Op::Set { key: b"key", value: &vec![b'x'; length], ttl_s: None });
        }
        change(Op::Increment { key: b"counter", by: 1 });
        change(Op::Increment { key: b"counter", by: 1 });
        change(Op::Delete(b"key"));
    }
}

fn killed_again_and_again(shape: &Shape, level: Durability, rounds: u64) -> Result<(), String> {
    let place = tempfile::tempdir().expect("a directory");
    let data = place.path().join("data");
    std::fs::create_dir(&data).expect("a directory");
    let notes = Notes::new(&place.path().join("notes"));
    for round in 0..rounds {
        let changes = write_until_killed(shape, level, place.path(), &notes, round);
        let store = (shape.adapter.open)(&shape.launch(&data, level, 1));
        let told = |what: String| {
            format!("{} at {level}, killed {} times, {changes} changes: {what}", shape.name(), round + 1)
        };
        let store = store.map_err(|fault| told(format!("opening: {fault}")))?;
        let mut session = store.session().expect("a session");
        for record in 0..=RECORDS {
            check(session.as_mut(), record, &notes).map_err(told)?;
        }
    }
    Ok(())
}

/// A record is what was acknowledged last, or what was asked after it and never answered.
fn check(session: &mut dyn Session, record: usize, notes: &Notes) -> Result<(), String> {
    let Noted { acknowledged, asked } = notes.read(record);
    let key = key(record);
    let found = match record {
        COUNTER => match session.ask(&Op::Number(&key)) {
            Ok(Reply::Missing) => Some(0),
            Ok(Reply::Number(count)) => u32::try_from(count).ok(),
            other => return Err(format!("the counter is {other:?}")),
        },
        _ => match session.ask(&Op::Get(&key)) {
            Ok(Reply::Missing) => Some(0),
            Ok(Reply::Value(found)) => [acknowledged, asked].into_iter().find(|turn| *found == *value(record, *turn)),
            other => return Err(format!("record {record} is {other:?}")),
        },
    };
    match found {
        Some(turn) if turn == acknowledged || turn == asked => {
            notes.write(record, Noted { acknowledged: turn, asked: turn });
            Ok(())
        }
        _ => Err(format!("record {record} is {found:?}, neither {acknowledged}, acknowledged, nor {asked}")),
    }
}

/// Starts this test program once more as a writer and kills it in the middle of its work. Says how many changes were
/// acknowledged.
fn write_until_killed(shape: &Shape, level: Durability, place: &Path, notes: &Notes, round: u64) -> u32 {
    let mut writer = Command::new(std::env::current_exe().expect("our own program"))
        .args(["--exact", "contract::killed::a_writer_to_be_killed", "--ignored", "--nocapture"])
        .env(WRITER, format!("{} {level} {round} {}", shape.name(), place.display()))
        .stdout(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut lines = BufReader::new(writer.stdout.take().expect("a pipe")).lines().map_while(Result::ok);
    let begun = lines.any(|line| line == BEGUN);
    let changes = || (0..=RECORDS).map(|record| notes.changes(record)).sum::<u32>();
    while begun && changes() < LEAST_CHANGES * (round as u32 + 1) && writer.try_wait().is_ok_and(|end| end.is_none()) {
        std::thread::sleep(Duration::from_millis(1));
    }
    // Not always at the same place of a change.
    std::thread::sleep(Duration::from_micros(draw(round) % 10_000));
    let ended = writer.try_wait().expect("it can be asked for");
    writer.kill().expect("it is killed");
    writer.wait().expect("it is gone");
    assert!(begun && ended.is_none(), "{} at {level}: the writer ended by itself: {ended:?}", shape.name());
    changes()
}

const WRITER: &str = "KVFAIR_TEST_WRITER";
const BEGUN: &str = "begun";

/// Not a test: the other process of `acknowledged_writes_outlive_a_kill`.
#[test]
#[ignore = "started by acknowledged_writes_outlive_a_kill"]
fn a_writer_to_be_killed() {
    let Ok(order) = std::env::var(WRITER) else { return };
    let mut order = order.splitn(4, ' ');
    let mut next = || order.next().expect("store, durability level, round, place");
    let (name, level, round, place) = (next(), next().parse().expect("a durability level"), next(), Path::new(next()));
    let shape = shapes().find(|shape| shape.name() == name).expect("a store");
    let notes = Notes::new(&place.join("notes"));
    let store = (shape.adapter.open)(&shape.launch(&place.join("data"), level, 1)).expect("it opens");
    let mut session = store.session().expect("a session");
    println!("\n{BEGUN}");
    let seed = round.parse::<u64>().expect("a round") << 32;
    for step in 0.. {
        let record = (draw(seed + step) % (RECORDS as u64 + 1)) as usize;
        let Noted { acknowledged, .. } = notes.read(record);
        // Of two values that were asked for by two writers, one was never acknowledged and may be asked for again.
        let turn = acknowledged + 1;
        notes.write(record, Noted { acknowledged, asked: turn });
        let key = key(record);
        let reply = match record {
            COUNTER => session.ask(&Op::Increment { key: &key, by: 1 }),
            _ => session.ask(&Op::Set { key: &key, value: &value(record, turn), ttl_s: None }),
        };
        reply.expect("an answer");
        notes.write(record, Noted { acknowledged: turn, asked: turn });
        notes.changed(record);
    }
}

fn key(record: usize) -> Vec<u8> {
    format!("key {record}").into_bytes()
}

/// The value of a record after so many changes: some bytes to some pages, none like another.
fn value(record: usize, turn: u32) -> Vec<u8> {
    static NOISE: std::sync::OnceLock<Vec<u8>> = std::sync::OnceLock::new();
    let noise = NOISE.get_or_init(|| (0..LONGEST_BYTES as u64 / 4).flat_map(|word| draw(word).to_be_bytes()).collect());
    let drawn = draw((record as u64) << 32 | u64::from(turn)) as usize;
    let longest = [100, 3_000, 20_000, LONGEST_BYTES][drawn % 4];
    let (start, length) = (drawn / 4 % LONGEST_BYTES, 20 + drawn / 5 % (longest - 20));
    noise[start..start + length].to_vec()
}

/// A number without a pattern (the finalizer of SplitMix64).
fn draw(seed: u64) -> u64 {
    let mut state = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    state = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    state = (state ^ state >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    state ^ state >> 31
}

/// A record's last two turns: the one that the store has acknowledged, and the one that it was asked for after it.
struct Noted {
    acknowledged: u32,
    asked: u32,
}

/// What the writer knows, in a file, where a kill leaves it.
struct Notes(File);

impl Notes {
    /// The two turns, and how many changes were acknowledged.
    const BYTES: u64 = 12;

    fn new(path: &Path) -> Notes {
        let file = File::options().read(true).write(true).create(true).truncate(false).open(path).expect("a file");
        file.set_len(Notes::BYTES * (RECORDS as u64 + 1)).expect("room");
        Notes(file)
    }

    fn word(&self, record: usize, index: u64) -> u32 {
        let mut bytes = [0; 4];
        self.0.read_exact_at(&mut bytes, Notes::BYTES * record as u64 + 4 * index).expect("our own notes");
        u32::from_le_bytes(bytes)
    }

    fn read(&self, record: usize) -> Noted {
        Noted { acknowledged: self.word(record, 0), asked: self.word(record, 1) }
    }

    fn write(&self, record: usize, noted: Noted) {
        let bytes = [noted.acknowledged.to_le_bytes(), noted.asked.to_le_bytes()].concat();
        self.0.write_all_at(&bytes, Notes::BYTES * record as u64).expect("our own notes");
    }

    fn changes(&self, record: usize) -> u32 {
        self.word(record, 2)
    }

    fn changed(&self, record: usize) {
        let changes = self.changes(record) + 1;
        self.0.write_all_at(&changes.to_le_bytes(), Notes::BYTES * record as u64 + 8).expect("our own notes");
    }
}
