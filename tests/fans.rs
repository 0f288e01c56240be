//! The clients of `fans`, driven at random against a map in memory: any number of them, any number of questions under
//! way.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::io::{BufRead, Cursor};

use kvfair::draw::Rng;
use kvfair::jobs::fans::FANS;
use kvfair::jobs::{Ask, Client, Heard, Part, Source};
use kvfair::model::load::At;
use kvfair::model::op::{Op, Reply};
use kvfair::model::trial::{Data, JobSettings};
use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use proptest::sample::select;

struct Memory(Vec<u8>);

impl Source for Memory {
    fn name(&self) -> &str {
        "memory"
    }

    fn open(&self) -> std::io::Result<Box<dyn BufRead>> {
        Ok(Box::new(Cursor::new(self.0.clone())))
    }
}

fn settings(units: Option<u64>, skip_bad: u64) -> JobSettings {
    JobSettings {
        name: FANS.name.to_string(),
        data: Data::Recipe { name: FANS.recipe.to_string(), seed: FANS.default_seed },
        format: "tsv".to_string(),
        read_as: None,
        units,
        skip_bad,
        via: Default::default(),
        split: Default::default(),
        load: None,
        replay_percent: None,
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    }
}

fn clients(of: u32, settings: &JobSettings, source: &dyn Source) -> Vec<Box<dyn Client>> {
    let job = (FANS.open)(settings);
    (0..of).map(|index| job.client(Part::Run, index, At::closed(of, 0), source).unwrap()).collect()
}

fn tsv(profiles: &[Vec<String>]) -> Memory {
    let line =
        |pages: &Vec<String>| format!("user{}\n", pages.iter().map(|page| format!("\t{page}")).collect::<String>());
    Memory(profiles.iter().map(line).collect::<String>().into_bytes())
}

/// A question as it is on its way to a store: the client's own copy is gone by then.
enum Sent {
    Get(Vec<u8>),
    Set(Vec<u8>, Vec<u8>),
}

enum Answer {
    Done,
    Got(Option<Vec<u8>>),
}

/// One client and its connection, which keeps questions and answers in order.
struct Line {
    client: Box<dyn Client>,
    sent: VecDeque<Sent>,
    answers: VecDeque<Answer>,
    /// Pages that were asked for and are not set yet.
    open: BTreeSet<Vec<u8>>,
    waits: bool,
    ended: bool,
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    gets: u64,
    sets: u64,
    units: u64,
    parts: u64,
    most_under_way: usize,
}

type Map = HashMap<Vec<u8>, Vec<u8>>;

/// Lets all clients ask, the store work and the clients hear in an order of chance, until all have ended.
fn drive(clients: Vec<Box<dyn Client>>, depth: usize, seed: u64) -> (Map, Seen) {
    let mut lines: Vec<Line> = clients.into_iter().map(Line::new).collect();
    let (mut store, mut seen, mut rng) = (Map::new(), Seen::default(), Rng::new(seed));
    while !lines.iter().all(|line| line.ended && line.under_way() == 0) {
        let chance = rng.draw();
        let index = (chance >> 8) as usize % lines.len();
        let line = &mut lines[index];
        match chance % 4 {
            0 => line.hear(&mut seen),
            1 => line.work(&mut store),
            _ => line.ask(depth, &mut seen),
        }
    }
    assert!(lines.iter().all(|line| line.open.is_empty()), "all that was got is set again");
    (store, seen)
}

impl Line {
    fn new(client: Box<dyn Client>) -> Line {
        let (sent, answers, open) = Default::default();
        Line { client, sent, answers, open, waits: false, ended: false }
    }

    fn under_way(&self) -> usize {
        self.sent.len() + self.answers.len()
    }

    fn ask(&mut self, depth: usize, seen: &mut Seen) {
        let under_way = self.under_way();
        if under_way >= depth || self.waits || self.ended {
            return;
        }
        match self.client.ask() {
            Ask::Op(Op::Get(key)) => {
                assert!(self.open.insert(key.to_vec()), "{key:?} is asked for while it is at work on");
                seen.gets += 1;
                self.sent.push_back(Sent::Get(key.to_vec()));
            }
            Ask::Op(Op::Set { key, value, ttl_s: None }) => {
                seen.sets += 1;
                self.sent.push_back(Sent::Set(key.to_vec(), value.to_vec()));
            }
            Ask::Wait => {
                assert!(under_way > 0, "waits for nothing");
                self.waits = true;
            }
            Ask::Unit => seen.units += 1,
            Ask::End => self.ended = true,
            other => panic!("{other:?}"),
        }
        seen.most_under_way = seen.most_under_way.max(self.under_way());
    }

    fn work(&mut self, store: &mut Map) {
        match self.sent.pop_front() {
            Some(Sent::Get(key)) => self.answers.push_back(Answer::Got(store.get(&key).cloned())),
            Some(Sent::Set(key, value)) => {
                assert!(self.open.remove(&key), "{key:?} is set without having been got");
                store.insert(key, value);
                self.answers.push_back(Answer::Done);
            }
            None => {}
        }
    }

    fn hear(&mut self, seen: &mut Seen) {
        let Some(answer) = self.answers.pop_front() else {
            return;
        };
        self.waits = false;
        let heard = match &answer {
            Answer::Done => self.client.hear(&Reply::Done),
            Answer::Got(None) => self.client.hear(&Reply::Missing),
            Answer::Got(Some(value)) => self.client.hear(&Reply::Value(value)),
        };
        match heard {
            Heard::More => {}
            Heard::Unit { counted } => {
                seen.parts += 1;
                seen.units += counted;
            }
            Heard::Wrong(wrong) => panic!("{wrong:?}"),
        }
    }
}

/// Fans of every page, and with how many of them it shares which other.
type Fans = BTreeMap<String, (u64, BTreeMap<String, u64>)>;

/// The answer by the plainest means.
fn replay<'p>(profiles: impl Iterator<Item = BTreeSet<&'p str>>) -> Fans {
    let mut answer = Fans::new();
    for profile in profiles {
        for page in &profile {
            let (fans, also) = answer.entry(page.to_string()).or_default();
            *fans += 1;
            let others = profile.iter().filter(|other| *other != page);
            others.for_each(|other| *also.entry(other.to_string()).or_default() += 1);
        }
    }
    answer
}

fn as_answer(store: &Map) -> Fans {
    let record = |value: &[u8]| {
        let json: serde_json::Value = serde_json::from_slice(value).unwrap();
        (json["fans"].as_u64().unwrap(), serde_json::from_value(json["also"].clone()).unwrap())
    };
    store.iter().map(|(key, value)| (String::from_utf8(key.clone()).unwrap(), record(value))).collect()
}

fn distinct(profiles: &[Vec<String>]) -> impl Iterator<Item = BTreeSet<&str>> {
    profiles.iter().map(|pages| pages.iter().map(String::as_str).collect())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_end_state_is_the_answer(
        profiles in vec(vec("[abc][xyz\"\\\\]?|page [0-9]|long page name [0-9]{2}", 0..12), 1..60),
        of in select(vec![1, 3, 8]),
        depth in select(vec![1, 2, 4, 64]),
        seed in any::<u64>(),
    ) {
        let (store, seen) = drive(clients(of, &settings(None, 0), &tsv(&profiles)), depth, seed);
        let pages: u64 = distinct(&profiles).map(|pages| pages.len() as u64).sum();
        prop_assert_eq!(as_answer(&store), replay(distinct(&profiles)));
        prop_assert_eq!((seen.gets, seen.sets, seen.units), (pages, pages, profiles.len() as u64));
        if of == 1 {
            prop_assert_eq!(seen.parts, distinct(&profiles).filter(|pages| !pages.is_empty()).count() as u64);
        }
        prop_assert!(seen.most_under_way <= depth);
    }

    #[test]
    fn one_question_at_a_time_never_waits(profiles in vec(btree_set("[a-e]", 0..5), 1..40), of in 1..4u32) {
        let profiles: Vec<Vec<String>> = profiles.into_iter().map(|pages| pages.into_iter().collect()).collect();
        for client in clients(of, &settings(None, 0), &tsv(&profiles)) {
            let mut line = Line::new(client);
            while !line.ended {
                line.ask(1, &mut Seen::default());
                prop_assert!(!line.waits);
                line.work(&mut Map::new());
                line.hear(&mut Seen::default());
            }
        }
    }
}

#[test]
fn pages_at_work_are_passed_over_and_come_when_they_are_free() {
    let source = tsv(&[vec!["a".into(), "b".into()], vec!["a".into(), "c".into()], vec!["a".into()]]);
    let mut line = Line::new(clients(1, &settings(None, 0), &source).remove(0));
    let (mut store, mut seen) = (Map::new(), Seen::default());
    (0..9).for_each(|_| line.ask(9, &mut seen));
    assert_eq!((seen.gets, line.waits), (3, true), "a, b and c, and a waits twice");
    while !line.ended {
        line.work(&mut store);
        line.hear(&mut seen);
        line.ask(9, &mut seen);
    }
    assert_eq!(store[&b"a"[..]], br#"{"fans":3,"also":{"b":1,"c":1}}"#);
}

#[test]
fn what_is_under_way_is_bounded() {
    let profiles: Vec<Vec<String>> =
        (0..200).map(|user| (0..20).map(|page| format!("page {}", user * 20 + page)).collect()).collect();
    let (store, seen) = drive(clients(1, &settings(None, 0), &tsv(&profiles)), usize::MAX, 1);
    assert_eq!(store.len(), 4000);
    assert!(seen.most_under_way <= 1024, "{seen:?}");
}

#[test]
fn the_default_data_gives_the_answer_of_the_post() {
    let mut data = Vec::new();
    (FANS.data)(FANS.default_seed, FANS.default_units, &mut data).unwrap();
    let source = Memory(data);
    let lines: Vec<serde_json::Value> = source
        .0
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect();
    let answer = replay(
        lines.iter().map(|line| line["likes"].as_array().unwrap().iter().map(|page| page.as_str().unwrap()).collect()),
    );
    let (fans, also) = &answer["Michael Jackson"];
    assert_eq!((*fans, also["Green Bay Packers"], also.values().max()), (406, 22, Some(&22)));
    let settings = JobSettings { format: FANS.formats[0].to_string(), ..settings(None, 0) };
    // By one client a run of the program builds it (tests/cli/answers.rs).
    let (store, seen) = drive(clients(3, &settings, &source), 64, 7);
    assert!(as_answer(&store) == answer);
    assert_eq!(seen.units, FANS.default_units);
}

#[test]
fn a_store_that_forgets_is_served_to_the_end() {
    let profiles = vec![vec!["a".to_string(), "b".to_string()]; 10];
    let mut client = clients(1, &settings(Some(7), 0), &tsv(&profiles)).remove(0);
    let mut units = 0;
    loop {
        let reply = match client.ask() {
            Ask::Op(Op::Get(_)) => Reply::Missing,
            Ask::Op(Op::Set { value, .. }) => {
                assert!(value.starts_with(b"{\"fans\":1,"));
                Reply::Done
            }
            Ask::End => break,
            other => panic!("{other:?}"),
        };
        units += match client.hear(&reply) {
            Heard::Unit { counted } => counted,
            _ => 0,
        };
    }
    assert_eq!(units, 7, "the limit of units");
}

#[test]
fn answers_that_cannot_be_are_wrong() {
    let wrong = |replies: &[Reply<'_>]| {
        let mut client = clients(1, &settings(None, 0), &tsv(&[vec!["Abba".into(), "Blur".into()]])).remove(0);
        let mut heard = Heard::More;
        for reply in replies {
            assert_eq!(heard, Heard::More);
            assert!(matches!(client.ask(), Ask::Op(_)));
            heard = client.hear(reply);
        }
        match heard {
            Heard::Wrong(wrong) => {
                // What is left of the work is done, and then it ends.
                assert!(matches!(client.ask(), Ask::Op(_)));
                format!("{}: {}, not {}", wrong.key, wrong.found, wrong.expected)
            }
            other => panic!("{other:?} after {replies:?}"),
        }
    };
    assert_eq!(wrong(&[Reply::Done]), "Abba: Done, not a value or none");
    assert_eq!(wrong(&[Reply::Number(7)]), "Abba: Number(7), not a value or none");
    assert_eq!(wrong(&[Reply::Value(b"{}")]), "Abba: no {\"fans\": at byte 0: {}, not a fans record");
    assert_eq!(wrong(&[Reply::Missing, Reply::Missing]), "Abba: Missing, not that it was set");
    assert_eq!(wrong(&[Reply::Missing, Reply::Value(b"\xff")]), "Abba: \\xff, not that it was set");
}

#[test]
fn bad_input_is_named_and_skipped_on_demand() {
    let source = Memory(b"u1\ta\nu2\t\xff\nu3\tb\n".to_vec());
    let mut line = Line::new(clients(1, &settings(None, 1), &source).remove(0));
    let mut seen = Seen::default();
    while !line.ended {
        line.ask(1, &mut seen);
        line.work(&mut Map::new());
        line.hear(&mut seen);
    }
    assert_eq!((seen.units, line.client.skipped()), (2, 1));

    let mut client = clients(1, &settings(None, 0), &source).remove(0);
    assert!(matches!(client.ask(), Ask::Op(Op::Get(b"a"))));
    match client.ask() {
        Ask::Fail(fault) => assert!(fault.to_string().starts_with("memory:2: not UTF-8"), "{fault}"),
        other => panic!("{other:?}"),
    }
    assert!(matches!(client.ask(), Ask::Wait), "nothing more is read");
}
