//! A server of our own that answers right, but as no real one does, and a generator driven against it.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::mpsc;
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use kvfair::jobs::getset::GETSET;
use kvfair::jobs::{LOAD_DEPTH, Part};
use kvfair::loadgen::pace::Pace;
use kvfair::loadgen::sockets::{self, Conduct, Threads};
use kvfair::loadgen::{LoadStats, Progress, Stopped, Work, threads};
use kvfair::model::load::{Arrivals, At, Load};
use kvfair::model::record::Open;
use kvfair::model::trial::{Data, JobSettings};
use kvfair::stores::{self, Launch, Place};

use super::nothing::Nothing;

pub const RECORDS: u64 = 500;
pub const REQUESTS: u64 = 4_000;

/// How the server answers.
#[derive(Clone, Copy, PartialEq)]
pub enum Manner {
    Plain,
    /// Every byte by itself.
    Dripping,
    /// Nothing until so many requests came, then all answers at once.
    Hoarding(usize),
    /// The last byte of the so-manieth value is another.
    Corrupting(usize),
    /// Gone when one comes after so many requests.
    Closing(usize),
    /// Gone as soon as it has answered so many requests.
    Parting(usize),
    /// The same once, and then nobody is heard for a while.
    Away {
        after: usize,
        lasting: Duration,
    },
    /// Silent after so many requests.
    Silent(usize),
    /// After so many requests of one connection its answer comes byte by byte and never ends; others are answered.
    Trickling(usize),
    /// After so many requests an answer has as much as the protocol allows.
    Flooding(usize),
    /// Values of 64 KiB to the keys of one request: each is short, and all of them are much.
    Piling,
    /// One answer too many after so many requests.
    Babbling(usize),
    /// Says nothing of one key that was set.
    Forgetting(usize),
    /// So long after a request came, whatever others there are.
    Exactly(Duration),
    /// Takes one connection after another, each so long after the one before.
    Welcoming(Duration),
    /// At once, but that it stands still for a while, so long after its first request.
    Freezing {
        after: Duration,
        lasting: Duration,
    },
}

type Records = Arc<Mutex<HashMap<Vec<u8>, Vec<u8>>>>;

/// When the server had read a request, and when it began to write the answer.
#[derive(Clone, Copy)]
pub struct Answered {
    pub came: Instant,
    pub said: Instant,
}

/// What the server saw, without the connection that loads.
#[derive(Default)]
struct Noted {
    /// When the last connection was taken.
    taken: Option<Instant>,
    /// All requests in the order of their answers.
    answered: Vec<Answered>,
}

type Ledger = Arc<Mutex<Noted>>;

/// Notes a request that is answered now.
fn note(ledger: &Ledger, came: Instant) {
    ledger.lock().unwrap().answered.push(Answered { came, said: Instant::now() });
}

/// Takes connections until the test ends. What is loaded is answered plainly.
fn serve(manner: Manner, ledger: &Ledger) -> (tempfile::TempDir, PathBuf) {
    let ledger = ledger.clone();
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("s");
    let listener = UnixListener::bind(&path).unwrap();
    let records = Records::default();
    let first = Arc::new(OnceLock::new());
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let (records, stream, first) = (records.clone(), stream.unwrap(), first.clone());
            // The first connection loads; the others are what is tested.
            let manner = if number == 0 { Manner::Plain } else { manner };
            let is_away = |lasting| first.get().is_some_and(|since: &Instant| since.elapsed() < lasting);
            if matches!(manner, Manner::Away { lasting, .. } if is_away(lasting)) {
                continue;
            }
            if let Manner::Welcoming(pause) = manner {
                std::thread::sleep(pause);
            }
            let ledger = if number == 0 { Ledger::default() } else { ledger.clone() };
            ledger.lock().unwrap().taken = Some(Instant::now());
            std::thread::spawn(move || answer(stream, &records, manner, &first, &ledger));
        }
    });
    (directory, path)
}

fn answer(
    mut stream: UnixStream,
    records: &Records,
    manner: Manner,
    first: &OnceLock<Instant>,
    ledger: &Ledger,
) -> io::Result<()> {
    let mut requests = Requests { stream: stream.try_clone()?, bytes: Vec::new() };
    let mut held = Vec::new();
    let later = Later::begin(stream.try_clone()?, ledger.clone());
    let mut count = 0;
    while let Some(parts) = requests.next()? {
        // Whoever connects asks that first, and it is no request.
        if parts == [b"PING"] {
            stream.write_all(b"+PONG\r\n")?;
            continue;
        }
        count += 1;
        let came = Instant::now();
        let mut said = reply(&parts, records, manner, count);
        match manner {
            Manner::Closing(after) if count > after => return Ok(()),
            // Of two connections that are that far at the same moment, one is lost.
            Manner::Away { after, .. } if count > after && first.set(Instant::now()).is_ok() => return Ok(()),
            Manner::Silent(after) if count > after => continue,
            Manner::Flooding(after) if count > after => return flood(&mut stream),
            Manner::Piling => return pile(&mut stream, parts.len() - 1),
            Manner::Trickling(after) if count > after && first.set(Instant::now()).is_ok() => {
                return trickle(&mut stream);
            }
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
            Manner::Exactly(wait) => later.say(came, wait, said),
            Manner::Freezing { after, lasting } => {
                let begins = *first.get_or_init(Instant::now) + after;
                if Instant::now() >= begins {
                    std::thread::sleep((begins + lasting).saturating_duration_since(Instant::now()));
                }
                note(ledger, came);
                stream.write_all(&said)?;
            }
            _ => {
                note(ledger, came);
                stream.write_all(&said)?;
            }
        }
        if manner == Manner::Parting(count) {
            return Ok(());
        }
    }
    Ok(())
}

/// What a server that is in order answers to the request of that number.
fn reply(parts: &[Vec<u8>], records: &Records, manner: Manner, count: usize) -> Vec<u8> {
    let mut records = records.lock().unwrap();
    match parts {
        [name, key, value] if name == b"SET" => {
            records.insert(key.clone(), value.clone());
            b"+OK\r\n".to_vec()
        }
        [name, key] if name == b"GET" && manner != Manner::Forgetting(count) => match records.get(key) {
            Some(value) => [format!("${}\r\n", value.len()).as_bytes(), value, b"\r\n"].concat(),
            None => b"$-1\r\n".to_vec(),
        },
        _ => b"$-1\r\n".to_vec(),
    }
}

fn pile(stream: &mut UnixStream, values: usize) -> io::Result<()> {
    stream.write_all(format!("*{values}\r\n").as_bytes())?;
    let value = [b"$65536\r\n", &[b'x'; 1 << 16][..], b"\r\n"].concat();
    (0..values).try_for_each(|_| stream.write_all(&value))
}

fn flood(stream: &mut UnixStream) -> io::Result<()> {
    stream.write_all(b"$536870912\r\n")?;
    for sent in 0.. {
        stream.write_all(&[b'x'; 64 << 10])?;
        assert!(sent < 1_000, "it takes them all");
    }
    Ok(())
}

fn trickle(stream: &mut UnixStream) -> io::Result<()> {
    stream.write_all(b"$32\r\n")?;
    for _ in 0..31 {
        stream.write_all(b"x")?;
        std::thread::sleep(Duration::from_millis(200));
    }
    Ok(())
}

/// Says each thing so long after it was asked, while others are heard.
struct Later(mpsc::Sender<(Instant, Duration, Vec<u8>)>);

impl Later {
    fn begin(mut stream: UnixStream, ledger: Ledger) -> Later {
        let (say, said) = mpsc::channel::<(Instant, Duration, Vec<u8>)>();
        std::thread::spawn(move || {
            while let Ok((came, wait, bytes)) = said.recv() {
                std::thread::sleep((came + wait).saturating_duration_since(Instant::now()));
                note(&ledger, came);
                if stream.write_all(&bytes).is_err() {
                    break;
                }
            }
        });
        Later(say)
    }

    fn say(&self, came: Instant, wait: Duration, said: Vec<u8>) {
        let _ = self.0.send((came, wait, said));
    }
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

fn settings(name: &str, depth: u32, value_bytes: u32) -> JobSettings {
    JobSettings {
        name: name.to_string(),
        data: Data::Recipe { name: "uniform".to_string(), seed: 5 },
        format: String::new(),
        read_as: None,
        units: Some(REQUESTS),
        skip_bad: 0,
        via: Default::default(),
        split: Default::default(),
        load: Some(Load { records: RECORDS, value_bytes, depth, writes: 1, ..Load::default() }),
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    }
}

/// What is to be driven against a server of that manner.
#[derive(Clone, Copy)]
pub struct Drive {
    /// Whose clients: those of `ycsb-f` write everything that they read.
    pub job: &'static str,
    pub part: Part,
    pub clients: u32,
    pub depth: u32,
    pub value_bytes: u32,
    /// Keys that are asked for at once.
    pub batch: u32,
    pub requests: u64,
    /// Requests a second; none for as fast as they are answered.
    pub rate: Option<u64>,
    /// A thread a client instead of connections that share one.
    pub blocking: bool,
    /// Lost connections are opened again.
    pub reopens: bool,
    /// Twice the threads drive the connections.
    pub threads: Threads,
    /// Nothing is asked any more after so long.
    pub limit: Option<Duration>,
}

impl Drive {
    pub fn new(part: Part, clients: u32, depth: u32, value_bytes: u32) -> Drive {
        Drive {
            job: "getset",
            part,
            clients,
            depth,
            value_bytes,
            batch: 1,
            requests: REQUESTS,
            rate: None,
            blocking: false,
            reopens: false,
            threads: Threads::Half,
            limit: None,
        }
    }

    /// Loads, then does the part. What came of it at the rate stands beside.
    pub fn against(self, manner: Manner) -> Result<(LoadStats, Option<Open>), Stopped> {
        self.watched(manner).map(|watched| (watched.seen, watched.open))
    }

    /// The same, with what the server saw.
    pub fn watched(self, manner: Manner) -> Result<Watched, Stopped> {
        let ledger = Ledger::default();
        let (_directory, path) = serve(manner, &ledger);
        // A busy machine takes its time, and only some servers are waited for in vain.
        let is_in_vain = matches!(manner, Manner::Silent(_) | Manner::Trickling(_));
        let patience = Duration::from_millis(if is_in_vain { 500 } else { 10_000 });
        let launch = Launch {
            clients: self.clients,
            answer_bytes: Some(100 * u64::from(self.value_bytes)),
            ..Launch::at(Place::Unix(path), patience)
        };
        let store = (stores::find("redis").unwrap().open)(&launch).unwrap();
        let job = (GETSET.open)(&settings(self.job, self.depth, self.value_bytes));
        let pace = self.rate.map(|rate| Pace::draw(rate, Arrivals::Poisson, self.requests, 1, 0));
        let run = |part, at: At, depth| {
            let progress = Progress::new(at.clients);
            let pace = pace.as_ref().filter(|_| part != Part::Load);
            let (store, job) = (store.as_ref(), job.as_ref());
            let limit = self.limit.filter(|_| part != Part::Load);
            let work = Work { store, job, source: &Nothing, part, at, pace, limit, progress: &progress };
            let seen = match self.blocking && part != Part::Load {
                true => threads::run(&work, || {}),
                false => sockets::run(
                    &work,
                    Conduct { depth, patience: launch.patience, reopens: self.reopens, threads: self.threads },
                    || {},
                ),
            };
            if let Ok(seen) = &seen {
                assert_eq!(progress.units(), seen.metrics.units, "what was told is what was counted");
            }
            seen
        };
        let loaded = run(Part::Load, At { value_bytes: self.value_bytes, ..At::closed(1, RECORDS) }, LOAD_DEPTH)
            .expect("loading");
        assert_eq!((loaded.metrics.units, loaded.metrics.ops, loaded.metrics.misses), (RECORDS, RECORDS, 0));
        let (batch, value_bytes) = (self.batch, self.value_bytes);
        let at = At { rate: self.rate, value_bytes, batch, ..At::closed(self.clients, self.requests) };
        let mut seen = run(self.part, at, self.depth)?;
        let ended = Instant::now();
        let open = pace.as_ref().zip(seen.lateness.take()).map(|(pace, lateness)| pace.open(lateness, !self.blocking));
        let Noted { taken, answered } = std::mem::take(&mut *ledger.lock().unwrap());
        let due = |pace: &Pace| {
            let due_ns = (0..self.requests).map_while(|number| pace.due_ns(number));
            due_ns.map(|due_ns| pace.began() + Duration::from_nanos(due_ns)).collect()
        };
        let due = pace.as_ref().map(due).unwrap_or_default();
        Ok(Watched { seen, open, due, taken: taken.expect("a connection"), answered, ended })
    }
}

/// What the load generator measured, and what the server saw of the same requests.
pub struct Watched {
    pub seen: LoadStats,
    pub open: Option<Open>,
    /// When each request was due.
    pub due: Vec<Instant>,
    /// When the server took the last connection.
    pub taken: Instant,
    /// In the order of the answers: that of `due` where there is one connection.
    pub answered: Vec<Answered>,
    /// When the part was over.
    pub ended: Instant,
}
