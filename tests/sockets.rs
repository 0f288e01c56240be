//! Many connections on a few threads, against a server of our own that answers right but as no real one does: a byte at
//! a time, several answers in one piece, wrong bytes, too much, nothing.

use std::collections::HashMap;
use std::io::{self, Cursor, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use kvfair::drive::{Progress, Seen, Stopped, Work, sockets};
use kvfair::jobs::getset::GETSET;
use kvfair::jobs::{LOAD_DEPTH, Part, Source};
use kvfair::stores::{self, Launch, Place};
use kvfair::words::trial::{Data, Durability, JobSettings, Load};

const RECORDS: u64 = 500;
const REQUESTS: u64 = 4_000;

/// How the server answers.
#[derive(Clone, Copy, PartialEq)]
enum Manner {
    Plain,
    /// Every byte by itself.
    Dripping,
    /// Nothing until so many requests came, then all answers at once.
    Hoarding(usize),
    /// The last byte of the so-manieth value is another.
    Corrupting(usize),
    /// Gone after so many requests.
    Closing(usize),
    /// Silent after so many requests.
    Silent(usize),
    /// One answer too many after so many requests.
    Babbling(usize),
    /// Says nothing of one key that was set.
    Forgetting(usize),
}

struct NoSource;

impl Source for NoSource {
    fn name(&self) -> &str {
        "nothing"
    }

    fn open(&self) -> io::Result<Box<dyn io::BufRead>> {
        Ok(Box::new(Cursor::new(Vec::new())))
    }
}

type Records = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

/// Takes connections until the test ends. What is loaded is answered plainly.
fn serve(manner: Manner) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let records = Records::default();
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (records, stream) = (records.clone(), stream.unwrap());
            // The first connection loads; the others are what is tested.
            let manner = if number == 0 { Manner::Plain } else { manner };
            std::thread::spawn(move || answer(stream, &records, manner));
        }
    });
    (directory, path)
}

fn answer(mut stream: UnixStream, records: &Records, manner: Manner) -> io::Result<()> {
    let mut requests = Requests { stream: stream.try_clone()?, bytes: Vec::new() };
    let mut held = Vec::new();
    let mut count = 0;
    while let Some(parts) = requests.next()? {
        count += 1;
        let mut records = records.lock().unwrap();
        let mut said = match parts.as_slice() {
            [name, key, value] if name == b"SET" => {
                records.insert(key.clone(), value.clone());
                b"+OK\r\n".to_vec()
            }
            [name, key] if name == b"GET" && manner != Manner::Forgetting(count) => match records.get(key) {
                Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
                None => b"$-1\r\n".to_vec(),
            },
            _ => b"$-1\r\n".to_vec(),
        };
        drop(records);
        match manner {
            Manner::Closing(after) if count > after => return Ok(()),
            Manner::Silent(after) if count > after => continue,
            Manner::Babbling(after) if count == after => said.extend_from_slice(b"+OK\r\n"),
            Manner::Corrupting(which) if count == which && said.len() > 8 => {
                let last = said.len() - 3;
                said[last] ^= 1;
            }
            _ => {}
        }
        match manner {
            Manner::Dripping => said.iter().try_for_each(|byte| stream.write_all(&[*byte]))?,
            Manner::Hoarding(most) => {
                held.extend_from_slice(&said);
                if count % most == 0 {
                    stream.write_all(&held)?;
                    held.clear();
                }
            }
            _ => stream.write_all(&said)?,
        }
    }
    Ok(())
}

/// Commands as they come: arrays of bulk strings.
struct Requests {
    stream: UnixStream,
    bytes: Vec<u8>,
}

impl Requests {
    fn next(&mut self) -> io::Result<Option<Vec<Vec<u8>>>> {
        loop {
            if let Some((used, parts)) = command(&self.bytes) {
                self.bytes.drain(..used);
                return Ok(Some(parts));
            }
            let mut more = [0; 4096];
            match self.stream.read(&mut more)? {
                0 => return Ok(None),
                count => self.bytes.extend_from_slice(&more[..count]),
            }
        }
    }
}

fn command(bytes: &[u8]) -> Option<(usize, Vec<Vec<u8>>)> {
    let line = |from: usize| {
        let end = from + bytes.get(from..)?.windows(2).position(|pair| pair == b"\r\n")?;
        let number: usize = std::str::from_utf8(&bytes[from + 1..end]).ok()?.parse().ok()?;
        Some((end + 2, number))
    };
    let (mut at, count) = line(0)?;
    let mut parts = Vec::new();
    for _ in 0..count {
        let (start, length) = line(at)?;
        parts.push(bytes.get(start..start + length)?.to_vec());
        at = start + length + 2;
    }
    (at <= bytes.len()).then_some((at, parts))
}

fn settings(depth: u32, value_bytes: u32) -> JobSettings {
    JobSettings {
        name: "getset".to_string(),
        data: Data::Recipe { name: "uniform".to_string(), seed: 5 },
        format: String::new(),
        units: Some(REQUESTS),
        skip_bad: 0,
        via: Default::default(),
        split: Default::default(),
        load: Some(Load { records: RECORDS, value_bytes, depth, ..Load::default() }),
    }
}

/// Loads, then does one part by so many clients.
fn drive(manner: Manner, part: Part, clients: u32, depth: u32, value_bytes: u32) -> Result<Seen, Stopped> {
    let (_directory, path) = serve(manner);
    let launch = Launch {
        place: Place::Unix(path),
        durability: Durability::None,
        configuration: Default::default(),
        settings: Default::default(),
        login: Default::default(),
        clients,
        data_bytes: None,
        patience: Duration::from_millis(500),
    };
    let store = (stores::find("redis").unwrap().open)(&launch).unwrap();
    let job = (GETSET.open)(&settings(depth, value_bytes));
    let run = |part, clients, depth| {
        let progress = Progress::new(clients);
        let work =
            Work { store: store.as_ref(), job: job.as_ref(), source: &NoSource, part, clients, progress: &progress };
        let seen = sockets::run(&work, depth, launch.patience, || {});
        if let Ok(seen) = &seen {
            assert_eq!(progress.units(), seen.units, "what was told is what was counted");
        }
        seen
    };
    let loaded = run(Part::Load, 1, LOAD_DEPTH).expect("loading");
    assert_eq!((loaded.units, loaded.ops, loaded.misses), (RECORDS, RECORDS, 0));
    run(part, clients, depth)
}

/// What is right is counted right, however it comes.
#[test]
fn answers_in_pieces_and_together_change_no_count() {
    for manner in [Manner::Plain, Manner::Dripping, Manner::Hoarding(1)] {
        for (clients, depth, value_bytes) in [(1, 1, 32), (3, 16, 1), (7, 5, 300), (2, 1000, 32)] {
            for part in [Part::Set, Part::Get] {
                let seen = drive(manner, part, clients, depth, value_bytes).unwrap();
                let counts = (seen.units, seen.ops, seen.commands, seen.misses, seen.times.count());
                assert_eq!(counts, (REQUESTS, REQUESTS, REQUESTS, 0, REQUESTS));
                let bytes = REQUESTS * u64::from(value_bytes);
                let expected = if part == Part::Set { (REQUESTS * 16 + bytes, 0) } else { (REQUESTS * 16, bytes) };
                assert_eq!((seen.bytes_out, seen.bytes_in), expected);
                assert!(seen.waiting_s > 0.0 && seen.took_s > 0.0);
            }
        }
    }
}

#[test]
fn answers_that_come_all_at_once_are_told_apart() {
    // 4,000 requests of 4 clients at a depth of 40: 25 whole batches each.
    let seen = drive(Manner::Hoarding(40), Part::Get, 4, 40, 100).unwrap();
    assert_eq!((seen.units, seen.misses), (REQUESTS, 0));
}

#[test]
fn values_larger_than_any_buffer_pass() {
    let seen = drive(Manner::Plain, Part::Set, 2, 3, 700_000).map(|seen| seen.units);
    assert_eq!(seen.unwrap(), REQUESTS);
}

#[test]
fn one_wrong_byte_of_one_value_is_found_at_every_depth() {
    for (clients, depth) in [(1, 1), (2, 16), (1, 100), (3, 1000)] {
        match drive(Manner::Corrupting(700), Part::Get, clients, depth, 32) {
            Err(Stopped::Wrong(wrong)) => assert!(wrong.key.starts_with("key:0000000"), "{wrong:?}"),
            other => panic!("depth {depth}: {other:?}"),
        }
    }
}

#[test]
fn a_key_that_is_not_there_is_counted() {
    assert_eq!(drive(Manner::Forgetting(9), Part::Get, 3, 4, 32).unwrap().misses, 3);
}

#[test]
fn a_connection_of_no_more_use_stops_all_by_name() {
    let said = |manner, depth| match drive(manner, Part::Get, 4, depth, 32) {
        Err(stopped) => stopped.to_string(),
        Ok(seen) => panic!("{} units in spite of all", seen.units),
    };
    for depth in [1, 16] {
        let closed = said(Manner::Closing(300), depth);
        assert!(closed.contains("redis at ") && closed.contains("closed the connection"), "{closed}");
        let silent = said(Manner::Silent(300), depth);
        assert!(silent.contains("has been silent for 0.5 s on 4 connections"), "{silent}");
        let babbling = said(Manner::Babbling(300), depth);
        assert!(babbling.contains("garbled") || babbling.contains("wrong answer"), "{babbling}");
    }
}
