//! The figures that kvfair owes, as ratios measured side by side in one run. `./bench` runs it; it ends with 1 if one
//! is missed.
//!
//! Everything is done several times in turn and the best is taken of each side: a shared machine only ever adds time.

mod adapters;
mod connections;
mod counting;
mod embedded;
mod generator;
mod ngrams;
mod rate;
mod report;
mod trace;
mod windows;

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use kvfair::harness::input::DataFile;
use kvfair::harness::load::{self, Parts};
use kvfair::jobs::merge;
use kvfair::jobs::people::{Profile, Profiles};
use kvfair::jobs::{Ask, Client, Heard, Job, Part, Source};
use kvfair::loadgen::{Progress, Work, threads};
use kvfair::model::load::At;
use kvfair::model::op::{Op, Reply};
use kvfair::model::record::Record;
use kvfair::model::trial::{Data, JobSettings};
use kvfair::stores::{self, Launch, Place, Session};

const ROUNDS: usize = 3;

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| argument != "--bench");
    match (arguments.next().as_deref(), arguments.next()) {
        (Some("straight"), Some(file)) => println!("{}", ngrams::straight(Path::new(&file))),
        (Some("bare"), Some(file)) => println!("{}", ngrams::bare(Path::new(&file))),
        (Some("recorded"), Some(form)) => {
            trace::read(&form, Path::new(&arguments.next().expect("a file")));
        }
        (Some("floor"), Some(server)) => {
            let rest: Vec<String> = arguments.collect();
            let number = |place: usize| rest[place].parse().expect("a number");
            let (connections, depth, requests, keys) = (number(2), number(3), number(4), number(5) as u64);
            let size = generator::floor::Size { connections, depth, requests, keys };
            generator::floor::run(&server, &rest[0], &rest[1], &size);
        }
        (Some("floor-at"), Some(rate)) => {
            let rest: Vec<String> = arguments.collect();
            let number = |place: usize| rest[place].parse().expect("a number");
            let rate = rate.parse().expect("a rate");
            generator::floor::run_at(rate, &rest[0], &rest[1], number(2), number(3));
        }
        (Some("generator"), word) => {
            let words: Vec<String> = word.into_iter().chain(arguments).collect();
            if !generator::measure(&words) {
                println!("missed: generator");
                std::process::exit(1);
            }
        }
        (only, _) => measure(only.unwrap_or("")),
    }
}

/// One figure that is owed: what is measured, and the bound.
struct Figure {
    name: &'static str,
    run: fn(&Bench) -> Outcome,
}

struct Outcome {
    line: String,
    holds: bool,
}

const FIGURES: &[Figure] = &[
    Figure { name: "harness", run: harness },
    Figure { name: "embedded", run: embedded::measure },
    Figure { name: "merge", run: merge },
    Figure { name: "adapters", run: adapters::measure },
    Figure { name: "ngrams", run: ngrams::measure },
    Figure { name: "counting", run: counting::measure },
    Figure { name: "fans", run: fans },
    Figure { name: "overhead", run: overhead },
    Figure { name: "memory", run: memory },
    Figure { name: "trace", run: trace::measure },
    Figure { name: "report", run: report::shown },
    Figure { name: "page", run: report::page },
    Figure { name: "looking", run: report::looking },
    Figure { name: "windows", run: windows::measure },
    Figure { name: "rate", run: rate::measure },
    Figure { name: "connections", run: connections::measure },
    Figure { name: "first-look", run: first_look },
];

/// Where the figures' files go.
struct Bench {
    directory: tempfile::TempDir,
}

fn measure(only: &str) {
    let bench = Bench { directory: tempfile::tempdir().expect("a scratch directory") };
    let mut missed = Vec::new();
    for figure in FIGURES.iter().filter(|figure| figure.name.contains(only)) {
        let outcome = (figure.run)(&bench);
        println!("{:10} {} {}", figure.name, if outcome.holds { "holds " } else { "MISSED" }, outcome.line);
        if !outcome.holds {
            missed.push(figure.name);
        }
    }
    if !missed.is_empty() {
        println!("missed: {}", missed.join(", "));
        std::process::exit(1);
    }
}

impl Bench {
    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// A job's default data, or so many units of it, as a file.
    fn data(&self, job: &str, scale: &str, units: u64) -> PathBuf {
        let path = self.path(&format!("{job}-{units}.{}", if job == "fans" { "jsonl" } else { "txt" }));
        if !path.exists() {
            let out = File::create(&path).expect("a data file");
            let status = kvfair().args(["data", job, scale, &units.to_string()]).stdout(out).status();
            assert!(status.expect("kvfair runs").success(), "kvfair data {job}");
        }
        path
    }

    /// Runs kvfair and reads the records back.
    fn records(&self, arguments: &[&str]) -> Vec<Record> {
        let out = self.path(&format!(
            "{}.jsonl",
            arguments.join("_").replace('/', "-").chars().rev().take(150).collect::<String>()
        ));
        let _ = std::fs::remove_file(&out);
        let output = kvfair().args(["run"]).args(arguments).arg("--output").arg(&out).output().expect("kvfair runs");
        let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
        // A machine too noisy for ranks is not too noisy for its records.
        assert!(matches!(output.status.code(), Some(0 | 6)), "kvfair run {arguments:?}: {text}");
        load::records(&out, Parts::Tables).expect("records")
    }
}

fn kvfair() -> Command {
    Command::new(env!("CARGO_BIN_EXE_kvfair"))
}

fn best(seconds: &[f64]) -> f64 {
    seconds.iter().copied().fold(f64::INFINITY, f64::min)
}

fn first_number(command: &mut Command) -> f64 {
    let output = command.stderr(Stdio::inherit()).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout);
    text.split_whitespace().next().and_then(|number| number.parse().ok()).expect("a number on standard output")
}

/// `ram` against `redis+unix` on the default data.
fn fans(bench: &Bench) -> Outcome {
    let records = bench.records(&["fans", "ram", "redis+unix", "--blocks", "2"]);
    let of = |label: &str| {
        best(
            &records
                .iter()
                .filter(|record| record.target.label == label)
                .filter_map(Record::took_s)
                .collect::<Vec<_>>(),
        )
    };
    let (ram, redis) = (of("ram"), of("redis+unix"));
    Outcome {
        line: format!("ram {ram:.2} s, redis+unix {redis:.2} s: {:.0} times (owed 12)", redis / ram),
        holds: redis / ram >= 12.0,
    }
}

/// What a managed Redis trial costs beyond the job and reading its answers back.
fn overhead(bench: &Bench) -> Outcome {
    let run = |blocks: &str| {
        let began = Instant::now();
        let records = bench.records(&["fans", "redis+unix", "--profiles", "500", "--blocks", blocks]);
        let inside: f64 = records.iter().map(|record| record.took_s().unwrap_or(0.0) + record.checked_s()).sum();
        (began.elapsed().as_secs_f64() - inside, records.len() as f64)
    };
    let rounds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let ((few_s, few), (many_s, many)) = (run("1"), run("6"));
            (many_s - few_s) / (many - few)
        })
        .collect();
    let each_s = best(&rounds);
    Outcome {
        line: format!(
            "a managed Redis trial costs {each_s:.3} s more than the job and its expected state (owed at most 0.4)"
        ),
        holds: each_s <= 0.4,
    }
}

/// Peak memory of a trial must not grow with the input.
fn memory(bench: &Bench) -> Outcome {
    let piece = std::fs::read(bench.data("ngrams", "--messages", 45_000)).expect("the data");
    let peak = |megabytes: usize| {
        let path = bench.path(&format!("{megabytes}.txt"));
        let mut file = File::create(&path).expect("a large file");
        (0..megabytes * 1_000_000 / piece.len() + 1)
            .for_each(|_| file.write_all(&piece).expect("room for a large file"));
        drop(file);
        let name = path.to_str().expect("a path in UTF-8");
        let records = bench.records(&[
            "ngrams",
            "null",
            "--input",
            name,
            "--format",
            "text",
            "--blocks",
            "1",
            "--verify",
            "sample",
            "--timeout",
            "30m",
        ]);
        let _ = std::fs::remove_file(&path);
        let client = records[0].memory.client;
        (client.anonymous_bytes + client.file_bytes) as f64 / 1e6
    };
    let (small, large) = (peak(200), peak(2_000));
    let line = format!(
        "a trial peaks at {large:.1} MB on 2 GB of messages and at {small:.1} MB on 200 MB (owed under 100, and within 5)"
    );
    Outcome { line, holds: large < 100.0 && (large - small).abs() <= 5.0 }
}

/// `kvfair` alone: when its first block and when its last table is there.
fn first_look(bench: &Bench) -> Outcome {
    let began = Instant::now();
    let mut child = kvfair()
        .current_dir(bench.directory.path())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("kvfair runs");
    let lines = BufReader::new(child.stderr.take().expect("stderr is piped")).lines().map_while(Result::ok);
    let first =
        lines.filter(|line| line.starts_with("block 1 ")).map(|_| began.elapsed()).next().unwrap_or(Duration::MAX);
    let status = child.wait().expect("kvfair ends");
    let last = began.elapsed();
    let line = format!(
        "first table after {:.1} s (owed 20), last after {:.1} s (owed 90)",
        first.as_secs_f64(),
        last.as_secs_f64()
    );
    Outcome { line, holds: status.success() && first.as_secs() < 20 && last.as_secs() < 90 }
}

/// Merging as the job does on its default data, record by record as they grow, against copying the same old bytes.
/// Only the merging is timed.
fn merge(bench: &Bench) -> Outcome {
    let file = bench.data("fans", "--profiles", 10_000);
    let (mut merged, mut copied, mut bytes) = (Vec::new(), Vec::new(), 0);
    for _ in 0..ROUNDS {
        let mut records: HashMap<Box<[u8]>, Vec<u8>, RandomState> = HashMap::default();
        let (mut merging, mut copying) = (Duration::ZERO, Duration::ZERO);
        let mut copy = Vec::new();
        bytes = 0;
        each_page(&file, |name, own, pages, out| {
            let record = records.entry(name.into()).or_default();
            bytes += record.len();
            let old = (!record.is_empty()).then_some(record.as_slice());
            let began = Instant::now();
            merge::merge(old, own, pages, out).expect("our own records merge");
            merging += began.elapsed();
            let began = Instant::now();
            copy.clear();
            copy.extend_from_slice(record);
            copying += began.elapsed();
            record.clone_from(out);
        });
        merged.push(merging.as_secs_f64());
        copied.push(copying.as_secs_f64());
    }
    let speed = |seconds: &[f64]| bytes as f64 / best(seconds) / 1e9;
    let (merged, copied) = (speed(&merged), speed(&copied));
    let line =
        format!("merging goes over old records at {merged:.1} GB/s (owed 1.2), copying them again at {copied:.1} GB/s");
    Outcome { line, holds: merged >= 1.2 }
}

/// Every page of every profile, with the profile prepared for merging; reading the profiles is part of both sides.
fn each_page(file: &Path, mut each: impl FnMut(&[u8], usize, &merge::Pages, &mut Vec<u8>)) {
    let data = Data::File { path: file.to_path_buf() };
    let settings = JobSettings {
        name: "fans".into(),
        data: data.clone(),
        format: "jsonl".into(),
        read_as: None,
        units: None,
        skip_bad: 0,
        via: Default::default(),
        split: Default::default(),
        load: None,
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    };
    let mut profiles = Profiles::open(&settings, &DataFile::new(file, &data)).expect("the file opens");
    let (mut profile, mut pages, mut out) = (Profile::default(), merge::Pages::default(), Vec::new());
    while profiles.read(&mut profile).expect("good profiles") {
        pages.set(profile.pages());
        for (own, name) in profile.pages().iter().enumerate() {
            each(name, own, &pages, &mut out);
        }
    }
}

/// An op on `null` through client, session and clock.
fn harness(_: &Bench) -> Outcome {
    const OPS: u64 = 30_000_000;
    let null = stores::find("null").expect("null is built in");
    let store = (null.open)(&launch()).expect("null opens");
    let (mut bare, mut whole) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut client: Box<dyn Client> = Box::new(Bare(OPS));
        let mut session = store.session().expect("null has sessions");
        let began = Instant::now();
        without_tally(client.as_mut(), session.as_mut());
        bare.push(began.elapsed().as_secs_f64());
        let progress = Progress::new(1);
        let work = Work {
            store: store.as_ref(),
            job: &BareJob(OPS),
            source: &NoSource,
            part: Part::Run,
            at: At::closed(1, OPS),
            pace: None,
            limit: None,
            progress: &progress,
        };
        whole.push(threads::run(&work, || ()).expect("null answers").took_s);
    }
    let each = |seconds: &[f64]| best(seconds) * 1e9 / OPS as f64;
    let (bare, whole) = (each(&bare), each(&whole));
    let line = format!(
        "an op on null costs {whole:.1} ns (owed at most 30): {bare:.1} in client and session, {:.1} in counting and clock",
        whole - bare
    );
    Outcome { line, holds: whole <= 30.0 }
}

#[inline(never)]
fn without_tally(client: &mut dyn Client, session: &mut dyn Session) {
    while let Ask::Op(op) = client.ask() {
        let reply = session.ask(&op).expect("null answers");
        client.hear(&reply);
    }
}

fn launch() -> Launch {
    Launch::at(Place::Memory, Duration::from_secs(1))
}

/// A job of so many gets of one key, and nothing else.
struct BareJob(u64);

impl Job for BareJob {
    fn client(&self, _: Part, _: u32, _: At, _: &dyn Source) -> std::io::Result<Box<dyn Client>> {
        Ok(Box::new(Bare(self.0)))
    }
}

struct Bare(u64);

impl Client for Bare {
    fn ask(&mut self) -> Ask<'_> {
        if self.0 == 0 {
            return Ask::End;
        }
        self.0 -= 1;
        Ask::Op(Op::Get(b"key:000000012345"))
    }

    fn hear(&mut self, _: &Reply<'_>) -> Heard {
        Heard::More
    }
}

struct NoSource;

impl Source for NoSource {
    fn name(&self) -> &str {
        "nothing"
    }

    fn open(&self) -> std::io::Result<Box<dyn BufRead>> {
        Ok(Box::new(std::io::empty()))
    }
}
