//! The phase that asks once more with twice the threads, to see whether the generator was the limit. Where there are
//! few processors no run has it, so that it is forced here.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use kvfair::harness::task::{Event, Task, TrialStep, TrialTask};
use kvfair::model::load::Load;
use kvfair::model::part::Part;
use kvfair::model::record::{Phase, Record, Verdict};
use kvfair::model::trial::{Data, JobSettings, Transport, Verify};
use kvfair::report::sweep;
use kvfair::stores::Launch;

use crate::common;
use crate::common::desk::Desk;

fn trial(launch: Launch) -> TrialTask {
    let load = Load { records: 100, value_bytes: 32, depth: 3, clients: vec![2, 9], ..Load::default() };
    let points = load.points(Some(3_000), 0);
    TrialTask {
        store: "redis".to_string(),
        launch: Launch { clients: 9, ..launch },
        limit_s: None,
        through: None,
        doubles: true,
        pinned: false,
        points,
        job: JobSettings {
            name: "getset".to_string(),
            data: Data::Recipe { name: "drawn".to_string(), seed: 1 },
            format: String::new(),
            read_as: None,
            units: Some(3_000),
            skip_bad: 0,
            via: Default::default(),
            split: Default::default(),
            load: Some(load),
            replay_percent: None,
            ngrams: Default::default(),
            lookup: Default::default(),
            fans: Default::default(),
        },
        input: "nothing".into(),
        stream: Default::default(),
        expected: "nothing".into(),
        drawn: "nothing".into(),
        verify: Verify::Full,
        is_strict: false,
        guest: false,
        room: Default::default(),
        only_take_back: false,
        step: TrialStep::Whole,
        cache: None,
        program: None,
        agents: Vec::new(),
        judges_start: false,
    }
}

/// Hears a trial's child to its end, and says go wherever it waits.
fn carried_out(desk: &Desk, trial: TrialTask) -> (Vec<Phase>, Option<Verdict>) {
    let mut child = desk.kvfair(&["child", "trial"]);
    let mut child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("kvfair starts");
    let mut pipe = child.stdin.take().expect("it is piped");
    let mut tell = |text: &str| writeln!(pipe, "{text}").expect("it listens");
    tell(&serde_json::to_string(&Task::Trial(Box::new(trial))).expect("plain data"));
    let (mut phases, mut verdict) = (Vec::new(), None);
    for line in BufReader::new(child.stdout.take().expect("it is piped")).lines() {
        match serde_json::from_str(&line.expect("a line")).expect("what it tells") {
            Event::Begins(_) | Event::Closed => tell("go"),
            Event::Ended(phase, _) => {
                phases.push(*phase);
                tell("go");
            }
            Event::Verdict(found, _) => verdict = Some(found),
            Event::Refused(why) | Event::Failed(why) => panic!("{why}"),
            _ => {}
        }
    }
    assert!(child.wait().expect("our own child").success());
    (phases, verdict)
}

#[test]
fn the_most_clients_ask_once_more_with_twice_the_threads_and_all_is_right() {
    let (desk, server) = (Desk::new(), common::start("redis", Transport::Unix));
    let (phases, verdict) = carried_out(&desk, trial(server.launch.clone()));
    let told: Vec<(&str, u32, bool)> =
        phases.iter().map(|phase| (phase.part.name(), phase.clients, phase.doubled)).collect();
    let expected = [
        ("load", 1, false),
        ("set", 2, false),
        ("get", 2, false),
        ("set", 9, false),
        ("set", 9, true),
        ("get", 9, false),
        ("get", 9, true),
        ("final_flush", 1, false),
    ];
    assert_eq!(told, expected);
    for pair in [&phases[3..5], &phases[5..7]] {
        assert_eq!((pair[1].threads, pair[1].metrics.units, pair[1].metrics.ops), (2 * pair[0].threads, 3_000, 3_000));
    }
    assert!(matches!(verdict, Some(Verdict::Right(_))), "{verdict:?}");
}

/// Beside the numbers of the point itself, which stay as they are.
#[test]
fn what_twice_the_threads_reached_limits_its_point_and_is_no_number_of_it() {
    let desk = Desk::new();
    let sweep = ["run", "getset", "--blocks", "1", "--records", "100", "--requests", "3000", "--clients", "2,9"];
    desk.run(&[&sweep[..], &["redis+unix"]].concat()).exits(0);
    let mut record: Record = serde_json::from_value(desk.record("redis+unix")).expect("a record");
    // Many processors have tried it already.
    record.phases.retain(|phase| !phase.doubled);
    let plain = sweep::points(std::slice::from_ref(&record), false).unwrap();
    let with = |times: f64| {
        let mut record = record.clone();
        let phase = record.phases.iter().find(|phase| (phase.part, phase.clients) == (Part::Get, 9)).unwrap();
        let doubled = Phase { doubled: true, took_s: phase.took_s / times, ..phase.clone() };
        record.phases.push(doubled);
        assert_eq!(record.took_s().map(f64::to_bits), self::took_s(&record).map(f64::to_bits), "it counts for nothing");
        sweep::points(&[record], false).unwrap()
    };
    for (times, limited) in [(1.2, true), (1.03, false), (0.7, false)] {
        for (point, plain) in with(times).iter().zip(&plain) {
            let is_it = (point.part, point.clients) == (Part::Get, 9);
            assert_eq!(point.requests_per_s, plain.requests_per_s);
            assert_eq!(point.client_limited, plain.client_limited || (is_it && limited), "{point:?}");
            assert_eq!(point.doubled_rise.map(|rise| (rise * 100.0).round() / 100.0), is_it.then_some(times));
        }
    }
}

/// Of all phases that are no doubled one.
fn took_s(record: &Record) -> Option<f64> {
    let counted = record.phases.iter().filter(|phase| phase.part != Part::Load && !phase.doubled);
    Some(counted.map(|phase| phase.took_s).sum())
}
