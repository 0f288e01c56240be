//! The recipes give the same bytes for ever and data with the properties that are promised of it; and what is read of
//! data is what independent programs in another language read of it (`tests/golden/*.py`).

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write;
use std::fs;
use std::io::{self, BufRead, Cursor};
use std::process::Command;

use kvfair::jobs::ngrams::NGRAMS;
use kvfair::jobs::people::{self, Profile, Profiles};
use kvfair::jobs::{Ask, Heard, Part, Source, text};
use kvfair::model::load::At;
use kvfair::model::op::{Op, Reply};
use kvfair::model::trial::{Data, JobSettings};
use sha2::{Digest, Sha256};

const USERS: u64 = 10_000;
const MESSAGES: u64 = 45_000;

#[test]
fn recipes_never_change() {
    assert_eq!(sha256(&likes10k(people::LIKES10K_SEED, USERS)), golden("likes10k").sha256);
    assert_eq!(sha256(&likes10k(1, 100)), golden("likes10k of another seed").sha256);
    assert_eq!(sha256(&tweets2(text::TWEETS2_SEED, MESSAGES)), golden("tweets2").sha256);
    assert_eq!(sha256(&tweets2(1, 100)), golden("tweets2 of another seed").sha256);
}

#[test]
fn a_longer_file_begins_like_a_shorter_one() {
    assert!(likes10k(5, 60).starts_with(&likes10k(5, 50)));
    assert!(tweets2(5, 60).starts_with(&tweets2(5, 50)));
}

#[test]
fn answers_are_those_of_other_programs() {
    let jsonl = likes10k(people::LIKES10K_SEED, USERS);
    assert_eq!(Likes::read("jsonl", jsonl.clone()).answer(), golden("likes10k").answer);
    assert_eq!(other_program("fans.py", "likes.jsonl", &jsonl), golden("likes10k").answer);
    let messages = tweets2(text::TWEETS2_SEED, MESSAGES);
    assert_eq!(answer(&count(messages.clone(), 1, 1)), golden("tweets2").answer);
    assert_eq!(other_program("ngrams.py", "messages.txt", &messages), golden("tweets2").answer);
}

#[test]
fn fixtures_are_read_as_other_programs_read_them() {
    for form in ["jsonl", "tsv"] {
        let name = format!("profiles.{form}");
        let data = fs::read(fixture(&name)).unwrap();
        assert_eq!(Likes::read(form, data.clone()).answer(), golden(&name).answer, "{name}");
        assert_eq!(other_program("fans.py", &name, &data), golden(&name).answer, "{name}");
    }
    let data = fs::read(fixture("messages.txt")).unwrap();
    assert_eq!(answer(&count(data.clone(), 1, 1)), golden("messages.txt").answer);
    assert_eq!(other_program("ngrams.py", "messages.txt", &data), golden("messages.txt").answer);
}

#[test]
fn many_clients_and_deep_questions_count_the_same() {
    let data = fs::read(fixture("messages.txt")).unwrap();
    let whole = count(data.clone(), 1, 1);
    for (clients, depth) in [(1, 3), (2, 1), (3, 1000), (40, 2)] {
        assert_eq!(count(data.clone(), clients, depth), whole, "{clients} clients, depth {depth}");
    }
}

/// The post's own figures, and those that two independent programs found for the recipe.
#[test]
fn likes_are_as_promised() {
    let found = Likes::read("jsonl", likes10k(people::LIKES10K_SEED, USERS));
    assert_eq!(found.top(), ("Michael Jackson", 406, "Green Bay Packers", 22));
    let likes: usize = found.profiles.iter().map(Vec::len).sum();
    near(likes, 134_000, 0.01);
    assert_eq!([1, 5, 9].map(|tenths| found.likes_at(tenths * 1000)), [3, 10, 27]);
    near(found.likes_at(9_900), 61, 0.05);
    assert!(found.likes_at(9_999) <= 300);
    near(found.fans.len(), 41_600, 0.01);
    near(found.also().len() / 2, 1_600_000, 0.02);
    // What the names' lengths make of it: bytes of the records read and written by the job, and left behind.
    let bytes = found.bytes();
    near(bytes.read, 394_000_000, 0.05);
    near(bytes.written, 468_000_000, 0.05);
    near(bytes.left, 75_000_000, 0.05);
    near(bytes.largest, 170_000, 0.1);
}

/// Of a page that 400 like, chance alone makes 360 to 440 in one seed of twenty: so the middle of several seeds is
/// looked at.
#[test]
fn other_seeds_are_alike() {
    let tops: Vec<(u32, u32)> = (0..5)
        .map(|seed| {
            let found = Likes::read("jsonl", likes10k(seed, USERS));
            near(found.fans.len(), 41_600, 0.02);
            let (_, fans, _, overlap) = found.top();
            (fans, overlap)
        })
        .collect();
    let middle = |mut numbers: Vec<u32>| {
        numbers.sort_unstable();
        numbers[numbers.len() / 2]
    };
    assert!((384..=425).contains(&middle(tops.iter().map(|top| top.0).collect())), "{tops:?}");
    assert!((14..=24).contains(&middle(tops.iter().map(|top| top.1).collect())), "{tops:?}");
    assert!(tops.iter().all(|top| (330..=470).contains(&top.0)), "{tops:?}");
}

#[test]
fn messages_are_as_promised() {
    let counts = count(tweets2(text::TWEETS2_SEED, MESSAGES), 1, 1);
    let increments: i64 = counts.values().sum();
    near(increments as usize, 750_128, 0.001);
    near(counts.len(), 400_365, 0.001);
    let once = counts.values().filter(|count| **count == 1).count() as f64 / counts.len() as f64;
    assert!((0.89..=0.91).contains(&once), "{once}");
    let top = *counts.values().max().unwrap() as f64 / increments as f64;
    assert!((0.0135..=0.0150).contains(&top), "{top}");
}

/// Finds seeds whose top page has 406 fans and shares 22 of them with another: takes minutes.
#[test]
#[ignore = "a search by hand, for minutes"]
fn search_likes_seeds() {
    for seed in 0..4_000 {
        let data = likes10k(seed, USERS);
        // Counting the one page's name is far quicker than counting all.
        let fans = memchr::memmem::find_iter(&data, "\"Michael Jackson\"").count();
        if fans == 406 && matches!(Likes::read("jsonl", data).top(), (_, 406, _, 22)) {
            println!("seed {seed}");
        }
    }
}

/// Tells how far from what is expected the data of the first seeds are: takes minutes.
#[test]
#[ignore = "a search by hand, for minutes"]
fn search_message_seeds() {
    for seed in 0..300 {
        let counts = count(tweets2(seed, MESSAGES), 1, 1);
        let increments: i64 = counts.values().sum();
        println!("seed {seed}: {} {}", increments - 750_128, counts.len() as i64 - 400_365);
    }
}

fn near(found: usize, expected: usize, share: f64) {
    assert!(found.abs_diff(expected) as f64 <= expected as f64 * share, "{found} is not near {expected}");
}

fn likes10k(seed: u64, users: u64) -> Vec<u8> {
    let mut data = Vec::new();
    people::likes10k(seed, users, &mut data).unwrap();
    data
}

fn tweets2(seed: u64, messages: u64) -> Vec<u8> {
    let mut data = Vec::new();
    text::tweets2(seed, messages, &mut data).unwrap();
    data
}

/// What is kept of a file of data: the digest of its bytes, and what the other program printed of it.
#[derive(Clone, serde::Deserialize)]
struct Golden {
    sha256: String,
    answer: Vec<String>,
}

fn golden(name: &str) -> Golden {
    let all: HashMap<String, Golden> = serde_json::from_slice(&fs::read(fixture("digests.json")).unwrap()).unwrap();
    all[name].clone()
}

fn fixture(name: &str) -> String {
    format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"))
}

fn sha256(data: &[u8]) -> String {
    Sha256::digest(data).iter().fold(String::new(), |mut digest, byte| {
        write!(digest, "{byte:02x}").unwrap();
        digest
    })
}

fn other_program(program: &str, name: &str, data: &[u8]) -> Vec<String> {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join(name);
    fs::write(&path, data).unwrap();
    let ran = Command::new("python3").arg(fixture(program)).arg(&path).output().expect("these tests need python3");
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap().lines().map(str::to_string).collect()
}

struct Bytes(Vec<u8>);

impl Source for Bytes {
    fn name(&self) -> &str {
        "data"
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }
}

fn settings(format: &str) -> JobSettings {
    JobSettings {
        name: String::new(),
        data: Data::File { path: "data".into() },
        format: format.to_string(),
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
    }
}

/// Who likes what, by the reader that the job uses, counted in the plainest way.
#[derive(Default)]
struct Likes {
    names: Vec<String>,
    profiles: Vec<Vec<u32>>,
    fans: HashMap<u32, u32>,
}

/// How many like both of two pages, in both orders.
type Also = HashMap<(u32, u32), u32, foldhash::fast::FixedState>;

struct RecordBytes {
    read: usize,
    written: usize,
    left: usize,
    largest: usize,
}

impl Likes {
    fn read(format: &str, data: Vec<u8>) -> Likes {
        let mut likes = Likes::default();
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut profiles = Profiles::open(&settings(format), &Bytes(data)).unwrap();
        let mut profile = Profile::default();
        while profiles.read(&mut profile).unwrap() {
            let name = |page: &[u8]| str::from_utf8(page).unwrap().to_string();
            let pages = profile.pages().iter().map(|page| {
                *numbers.entry(name(page)).or_insert_with(|| {
                    likes.names.push(name(page));
                    likes.names.len() as u32 - 1
                })
            });
            let pages: Vec<u32> = pages.collect();
            pages.iter().for_each(|page| *likes.fans.entry(*page).or_default() += 1);
            likes.profiles.push(pages);
        }
        likes
    }

    fn also(&self) -> Also {
        let mut also = Also::default();
        for pages in &self.profiles {
            for page in pages {
                for other in pages.iter().filter(|other| *other != page) {
                    *also.entry((*page, *other)).or_default() += 1;
                }
            }
        }
        also
    }

    fn name(&self, page: u32) -> &str {
        &self.names[page as usize]
    }

    /// The page with most fans, how many, the page that it shares most of them with, and how many.
    fn top(&self) -> (&str, u32, &str, u32) {
        let (page, fans) = self.fans.iter().max_by_key(|(_, fans)| **fans).unwrap();
        let mut shared: HashMap<u32, u32> = HashMap::new();
        for others in self.profiles.iter().filter(|pages| pages.contains(page)) {
            others.iter().filter(|other| *other != page).for_each(|other| *shared.entry(*other).or_default() += 1);
        }
        let (other, overlap) = shared.iter().max_by_key(|(_, count)| **count).unwrap();
        (self.name(*page), *fans, self.name(*other), *overlap)
    }

    /// The likes of the person at that place, by how many they are.
    fn likes_at(&self, place: usize) -> usize {
        let mut counts: Vec<usize> = self.profiles.iter().map(Vec::len).collect();
        counts.sort_unstable();
        counts[place]
    }

    /// The bytes of the job's records `{"fans":1,"also":{"name":1}}` as they grow, told from the lengths of their
    /// parts alone.
    fn bytes(&self) -> RecordBytes {
        let mut records: HashMap<u32, (usize, u32)> = HashMap::new();
        let mut counts: HashMap<(u32, u32), u32, foldhash::fast::FixedState> = HashMap::default();
        let length = |(others, fans): (usize, u32)| {
            r#"{"fans":,"also":{}}"#.len() + fans.to_string().len() + others - usize::from(others > 0)
        };
        let (mut read, mut written) = (0, 0);
        for pages in &self.profiles {
            for page in pages {
                let record = records.entry(*page).or_default();
                read += if record.1 > 0 { length(*record) } else { 0 };
                record.1 += 1;
                for other in pages.iter().filter(|other| *other != page) {
                    let count = counts.entry((*page, *other)).or_default();
                    *count += 1;
                    record.0 += match *count {
                        1 => r#""":1,"#.len() + self.name(*other).len(),
                        10 | 100 => 1,
                        _ => 0,
                    };
                }
                written += length(*record);
            }
        }
        let left: Vec<usize> = records.values().map(|record| length(*record)).collect();
        RecordBytes { read, written, left: left.iter().sum(), largest: *left.iter().max().unwrap() }
    }

    fn answer(&self) -> Vec<String> {
        let mut fans: Vec<String> =
            self.fans.iter().map(|(page, count)| format!("{}\t{count}\n", self.name(*page))).collect();
        fans.sort_unstable();
        // In the order of the lines. Numbers are compared sooner than lines.
        let mut by_name: Vec<u32> = (0..self.names.len() as u32).collect();
        by_name.sort_by_cached_key(|page| format!("{}\t", self.name(*page)));
        let mut places = vec![0; by_name.len()];
        by_name.iter().enumerate().for_each(|(place, page)| places[*page as usize] = place);
        let also = self.also();
        let mut also: Vec<((usize, usize), u32)> = also
            .iter()
            .map(|((page, other), count)| ((places[*page as usize], places[*other as usize]), *count))
            .collect();
        also.sort_unstable();
        let mut lines = String::new();
        for ((page, other), count) in &also {
            writeln!(lines, "{}\t{}\t{count}", self.name(by_name[*page]), self.name(by_name[*other])).unwrap();
        }
        vec![
            format!("fans {}", sha256(fans.concat().as_bytes())),
            format!("also {}", sha256(lines.as_bytes())),
            format!("users {}", self.profiles.len()),
            format!("pages {}", self.fans.len()),
            format!("pairs {}", also.len() / 2),
        ]
    }
}

/// The ngrams job on a map: one client after another, each with up to `depth` questions under way.
fn count(data: Vec<u8>, of: u32, depth: usize) -> BTreeMap<Vec<u8>, i64> {
    let source = Bytes(data);
    let job = (NGRAMS.open)(&settings("text"));
    let mut counts: HashMap<Vec<u8>, i64> = HashMap::new();
    let mut units = 0;
    for index in 0..of {
        let mut client = job.client(Part::Run, index, At::closed(of, 0), &source).unwrap();
        let mut over = false;
        while !over {
            let mut answers = Vec::new();
            while answers.len() < depth && !over {
                match client.ask() {
                    Ask::Op(Op::Increment { key, by }) => {
                        let count = counts.entry(key.to_vec()).or_default();
                        *count += by;
                        answers.push(*count);
                    }
                    Ask::Unit => units += 1,
                    Ask::Wait => {
                        assert!(!answers.is_empty());
                        break;
                    }
                    Ask::End => over = true,
                    other => panic!("{other:?}"),
                }
            }
            for count in answers {
                match client.hear(&Reply::Number(count)) {
                    Heard::More => {}
                    Heard::Unit { counted: 1 } => units += 1,
                    other => panic!("{other:?}"),
                }
            }
        }
    }
    let messages = source.open().unwrap().split(b'\n').count();
    assert_eq!(units, messages, "{of} clients, depth {depth}");
    counts.into_iter().collect()
}

fn answer(counts: &BTreeMap<Vec<u8>, i64>) -> Vec<String> {
    let readable = |term: &[u8]| str::from_utf8(term).unwrap().to_string();
    let lines: String = counts.iter().map(|(term, count)| format!("{}\t{count}\n", readable(term))).collect();
    let mut top: Vec<(&Vec<u8>, &i64)> = counts.iter().collect();
    top.sort_by_key(|(_, count)| std::cmp::Reverse(**count));
    let sum: i64 = counts.values().sum();
    let head =
        [format!("digest {}", sha256(lines.as_bytes())), format!("terms {}", counts.len()), format!("sum {sum}")];
    let top = top.iter().take(20).map(|(term, count)| format!("top {count} {}", readable(term)));
    head.into_iter().chain(top).collect()
}
