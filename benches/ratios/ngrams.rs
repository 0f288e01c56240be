//! Counting n-grams in `ram`, beside a Python dict, a hash map and a bare loop.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use kvfair::harness::input::DataFile;
use kvfair::jobs::text::{Messages, Terms};
use kvfair::model::op::Op;
use kvfair::model::record::Record;
use kvfair::model::trial::{Data, JobSettings};
use kvfair::stores;

use super::{Bench, Outcome, ROUNDS, best, first_number, launch};

/// `ram` against a Python dict, against the same counting written straight onto a hash map, and against a bare loop over
/// its own table, on a million messages.
pub fn measure(bench: &Bench) -> Outcome {
    let file = bench.data("ngrams", "--messages", 1_000_000);
    let name = file.to_str().expect("a path in UTF-8");
    let this = std::env::current_exe().expect("our own path");
    let (mut ram, mut bare, mut rust, mut python) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let records = bench
            .records(&["ngrams", "ram", "--input", name, "--format", "text", "--blocks", "1", "--verify", "sample"]);
        ram.extend(records.iter().filter_map(Record::took_s));
        let_the_host_take_memory_back();
        bare.push(first_number(Command::new(&this).args(["bare", name])));
        let_the_host_take_memory_back();
        rust.push(first_number(Command::new(&this).args(["straight", name])));
        let_the_host_take_memory_back();
        python.push(first_number(Command::new("python3").arg("benches/ngrams_dict.py").arg(name)));
    }
    let [ram, bare, rust, python] = [ram, bare, rust, python].map(|seconds| best(&seconds));
    let line = format!(
        "ram {ram:.2} s: {:.1} times a Python dict's speed ({python:.2} s; owed 4.5), {:.2} times the time of a bare loop over the same table ({bare:.2} s), {:.2} times that of a hash map ({rust:.2} s; owed at most 1.5)",
        python / ram,
        ram / bare,
        ram / rust
    );
    Outcome { line, holds: python / ram >= 4.5 && ram / rust <= 1.5 }
}

/// The host of a virtual machine takes memory back that is free for some seconds, and who uses it first pays for its
/// return: a large part of the time of a large counting. A contender that begins at once would get the pages of the one
/// before. kvfair's trial begins after a while: all others wait as well.
fn let_the_host_take_memory_back() {
    std::thread::sleep(Duration::from_secs(6));
}

/// The same reader, tokeniser, map and hash as kvfair's, with nothing in between.
pub fn straight(file: &Path) -> f64 {
    let began = Instant::now();
    let mut counts: HashMap<Box<[u8]>, i64, RandomState> = HashMap::default();
    each_message(file, |terms| {
        for term in (0..terms.len()).map(|index| terms.get(index)) {
            match counts.get_mut(term) {
                Some(count) => *count += 1,
                None => drop(counts.insert(term.into(), 1)),
            }
        }
    });
    let took_s = began.elapsed().as_secs_f64();
    assert!(counts.len() > 1_000);
    took_s
}

/// The same reader, tokeniser and table as kvfair's, and terms told two ahead as the job tells them. What is missing is
/// the load generator: nothing is counted, checked or timed.
pub fn bare(file: &Path) -> f64 {
    let ram = stores::find("ram").expect("ram is built in");
    let store = (ram.open)(&launch()).expect("ram opens");
    let mut session = store.session().expect("a session");
    let began = Instant::now();
    each_message(file, |terms| {
        for index in 0..terms.len() {
            if index + 2 < terms.len() {
                session.expect(terms.get(index + 2));
            }
            session.ask(&Op::Increment { key: terms.get(index), by: 1 }).expect("ram counts");
        }
    });
    began.elapsed().as_secs_f64()
}

fn each_message(file: &Path, mut count: impl FnMut(&Terms)) {
    let data = Data::File { path: file.to_path_buf() };
    let settings = JobSettings {
        name: "ngrams".into(),
        data: data.clone(),
        format: "text".into(),
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
    let source = DataFile::new(file, &data);
    let mut messages = Messages::open(&settings, &source).expect("the file opens");
    let mut terms = Terms::default();
    while messages.read(|message| terms.read(message)).expect("good messages") {
        count(&terms);
    }
}
