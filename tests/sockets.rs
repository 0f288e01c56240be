//! Many connections on a few threads, against a server of our own that answers right but as no real one does: a byte at
//! a time, several answers in one piece, wrong bytes, too much, nothing.

use std::time::Duration;

use crate::common::strange::{Drive, Manner, REQUESTS, Watched};
use kvfair::jobs::Part;
use kvfair::loadgen::{LoadStats, Stopped};
use kvfair::model::metrics::Metrics;
use kvfair::model::record::Open;

fn drive(manner: Manner, part: Part, clients: u32, depth: u32, value_bytes: u32) -> Result<LoadStats, Stopped> {
    Drive::new(part, clients, depth, value_bytes).against(manner).map(|(seen, _)| seen)
}

/// The same at a rate, where no request waits for the one before.
fn drive_rated(manner: Manner, part: Part, clients: u32) -> Result<LoadStats, Stopped> {
    Drive { rate: Some(10_000), ..Drive::new(part, clients, 1, 32) }.against(manner).map(|(seen, _)| seen)
}

/// What is right is counted right, however it comes.
#[test]
fn answers_in_pieces_and_together_change_no_count() {
    for manner in [Manner::Plain, Manner::Dripping, Manner::Hoarding(1)] {
        for (clients, depth, value_bytes) in [(1, 1, 32), (3, 16, 1), (7, 5, 300), (2, 1000, 32)] {
            for part in [Part::Set, Part::Get] {
                let seen = drive(manner, part, clients, depth, value_bytes).unwrap();
                let counted = seen.metrics;
                let counts = (counted.units, counted.ops, counted.commands, counted.misses, seen.times.count());
                assert_eq!(counts, (REQUESTS, REQUESTS, REQUESTS, 0, REQUESTS));
                let bytes = REQUESTS * u64::from(value_bytes);
                let expected = if part == Part::Set { (REQUESTS * 16 + bytes, 0) } else { (REQUESTS * 16, bytes) };
                assert_eq!((counted.bytes_out, counted.bytes_in), expected);
                assert!(counted.waiting_s > 0.0 && seen.took_s > 0.0);
            }
        }
    }
}

#[test]
fn at_a_rate_answers_in_pieces_and_together_change_no_count() {
    for manner in [Manner::Plain, Manner::Dripping, Manner::Hoarding(1), Manner::Hoarding(40)] {
        for (clients, part) in [(1, Part::Set), (4, Part::Get)] {
            let seen = drive_rated(manner, part, clients).unwrap();
            let counted = seen.metrics;
            let counts = (counted.units, counted.ops, counted.commands, counted.misses, seen.times.count());
            assert_eq!(counts, (REQUESTS, REQUESTS, REQUESTS, 0, REQUESTS));
            assert_eq!(seen.asked.iter().map(|(_, asked)| asked).sum::<u64>(), REQUESTS);
        }
    }
}

#[test]
fn answers_that_come_all_at_once_are_told_apart() {
    // 4,000 requests of 4 clients at a depth of 40: 25 whole batches each.
    let seen = drive(Manner::Hoarding(40), Part::Get, 4, 40, 100).unwrap();
    assert_eq!((seen.metrics.units, seen.metrics.misses), (REQUESTS, 0));
}

#[test]
fn values_larger_than_any_buffer_pass() {
    let seen = drive(Manner::Plain, Part::Set, 2, 3, 700_000).map(|seen| seen.metrics.units);
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
    let rated = drive_rated(Manner::Corrupting(700), Part::Get, 3);
    assert!(matches!(rated, Err(Stopped::Wrong(_))), "{rated:?}");
}

#[test]
fn a_key_that_is_not_there_is_counted() {
    assert_eq!(drive(Manner::Forgetting(9), Part::Get, 3, 4, 32).unwrap().metrics.misses, 3);
}

#[test]
fn a_connection_of_no_more_use_stops_all_by_name() {
    let said = |manner, depth| match if depth == 0 {
        drive_rated(manner, Part::Get, 4)
    } else {
        drive(manner, Part::Get, 4, depth, 32)
    } {
        Err(stopped) => stopped.to_string(),
        Ok(seen) => panic!("{} units in spite of all", seen.metrics.units),
    };
    // None is at a rate.
    for depth in [0, 1, 16] {
        let closed = said(Manner::Closing(300), depth);
        // The error depends on whether requests were unread when it was closed, and whether one was being written.
        let ways = ["closed the connection", "reset by peer", "Broken pipe"];
        let is_closed = ways.iter().any(|way| closed.contains(way));
        assert!(closed.contains("redis at ") && is_closed, "{closed}");
        let silent = said(Manner::Silent(300), depth);
        assert!(silent.contains("has been silent for") && silent.contains("s on 4 connections"), "{silent}");
        let trickling = said(Manner::Trickling(300), depth);
        let late = "has not finished an answer within ";
        assert!(trickling.contains(late) && trickling.contains("s on 1 connections"), "{trickling}");
        let flooding = said(Manner::Flooding(300), depth);
        assert!(flooding.contains("garbled answer: an answer of more than 2100352 bytes"), "{flooding}");
        let babbling = said(Manner::Babbling(300), depth);
        assert!(babbling.contains("garbled") || babbling.contains("wrong answer"), "{babbling}");
    }
}

/// A thread a client, too: no piece of an answer gives the rest of it more time.
#[test]
fn an_answer_that_never_ends_is_not_waited_for() {
    let drive = Drive { blocking: true, ..Drive::new(Part::Get, 4, 1, 32) };
    // The server closes the connection after 6 s, and then another thing is said.
    let stopped = drive.against(Manner::Trickling(300)).expect_err("it never ends").to_string();
    assert!(stopped.contains("has not finished an answer within 0.5 s"), "{stopped}");
    let drive = Drive { blocking: true, ..Drive::new(Part::Get, 4, 1, 32) };
    let stopped = drive.against(Manner::Flooding(300)).expect_err("it is too long").to_string();
    assert!(stopped.contains("an answer of more than 2100352 bytes, longer than any of the job"), "{stopped}");
}

/// What was read of an answer counts too: the codec keeps it until the rest has come.
#[test]
fn an_answer_of_many_pieces_is_bounded_while_it_comes() {
    for blocking in [false, true] {
        let drive = Drive { blocking, batch: 100, ..Drive::new(Part::Get, 2, 1, 32) };
        let stopped = drive.against(Manner::Piling).expect_err("it is too long").to_string();
        assert!(stopped.contains("an answer of more than 2100352 bytes, longer than any of the job"), "{stopped}");
    }
}

/// A connection is made once it waits in the server's queue: until all are taken out of it nothing is timed.
#[test]
fn who_has_not_been_taken_yet_is_not_timed() {
    let welcoming = Manner::Welcoming(Duration::from_millis(20));
    let drive = Drive { requests: 200, ..Drive::new(Part::Get, 20, 1, 32) };
    let Watched { seen, taken, answered, ended, .. } = drive.watched(welcoming).unwrap();
    assert!(
        answered.len() == 200 && answered.iter().all(|request| request.came > taken),
        "asked before all were there"
    );
    let since_s = ended.duration_since(taken).as_secs_f64();
    assert!(seen.took_s < since_s, "{} s, and the last one was taken {since_s} s ago", seen.took_s);
}

/// At a rate, where none is named a depth.
fn drive_again(
    manner: Manner,
    part: Part,
    clients: u32,
    depth: Option<u32>,
) -> Result<(LoadStats, Option<Open>), Stopped> {
    let rate = if depth.is_none() { Some(10_000) } else { None };
    Drive { rate, reopens: true, ..Drive::new(part, clients, depth.unwrap_or(1), 32) }.against(manner)
}

#[test]
fn lost_connections_are_opened_again_and_what_was_under_way_is_asked_once_more() {
    for depth in [None, Some(1), Some(16), Some(1000)] {
        for (part, manner) in
            [(Part::Set, Manner::Closing(90)), (Part::Get, Manner::Closing(90)), (Part::Get, Manner::Parting(90))]
        {
            let (seen, _) = drive_again(manner, part, 4, depth).unwrap();
            // Each of 4 clients has 1,000 requests: eleven connections of 90, and one for the rest. What was answered
            // and not heard before the connection was lost is asked, and counted by the server, once more.
            assert!((44..88).contains(&seen.metrics.reconnects), "depth {depth:?}: {}", seen.metrics.reconnects);
            let counts = (seen.metrics.units, seen.metrics.ops, seen.metrics.misses, seen.times.count());
            assert_eq!(counts, (REQUESTS, REQUESTS, 0, REQUESTS), "depth {depth:?}");
            let bytes = if part == Part::Set { (REQUESTS * 48, 0) } else { (REQUESTS * 16, REQUESTS * 32) };
            assert_eq!((seen.metrics.bytes_out, seen.metrics.bytes_in), bytes, "what is asked once more counts once");
            assert!(seen.metrics.commands >= REQUESTS + 44, "{} commands", seen.metrics.commands);
        }
    }
}

#[test]
fn the_time_of_a_request_goes_on_while_its_connection_is_lost() {
    const AWAY: Duration = Duration::from_millis(250);
    for depth in [None, Some(1), Some(16)] {
        let away = Manner::Away { after: 300, lasting: AWAY };
        let (seen, open) = drive_again(away, Part::Set, 2, depth).unwrap();
        assert_eq!((seen.metrics.units, seen.times.count()), (REQUESTS, REQUESTS));
        let longest_ns = open.map_or(seen.times.max_ns(), |open| open.response_ns.times().unwrap().max_ns());
        assert!(u128::from(longest_ns) >= AWAY.as_nanos(), "{longest_ns} ns");
        // Only what the server has taken is open again.
        assert_eq!(seen.metrics.reconnects, 1);
    }
}

#[test]
fn who_never_answers_again_is_not_asked_for_ever() {
    for depth in [None, Some(1), Some(16)] {
        let again = drive_again(Manner::Closing(0), Part::Set, 2, depth).map(|(seen, _)| seen);
        let said = again.unwrap_err().to_string();
        assert!(said.contains("opening it again, 10 times at most, did not help"), "{said}");
    }
}

#[test]
fn what_reaches_its_limit_is_asked_no_more_and_waited_for() {
    let slowly = Manner::Exactly(Duration::from_millis(20));
    for (rate, blocking) in [(None, false), (None, true), (Some(1_000), false), (Some(100), true)] {
        let limit = Some(Duration::from_millis(500));
        let drive = Drive { rate, blocking, limit, ..Drive::new(Part::Set, 4, if blocking { 1 } else { 3 }, 32) };
        let Watched { seen, open, answered, .. } = drive.watched(slowly).unwrap();
        assert!(seen.cut_off && seen.took_s > 0.49, "{} s", seen.took_s);
        assert!((1..REQUESTS).contains(&seen.metrics.units), "{} units", seen.metrics.units);
        assert_eq!(answered.len() as u64, seen.metrics.units, "the server saw no other");
        let (drawn, timed) = (seen.asked.iter().map(|(_, asked)| asked).sum::<u64>(), seen.times.count());
        let Metrics { units, ops, .. } = seen.metrics;
        assert_eq!((drawn, ops, timed), (units, units, units), "all that was asked was answered");
        assert_eq!(open.map(|open| open.late.is_some()), rate.map(|_| true), "a rate that is cut off is not kept");
    }
    let whole = Drive { limit: Some(Duration::from_secs(60)), ..Drive::new(Part::Set, 4, 3, 32) };
    let seen = whole.against(Manner::Plain).unwrap().0;
    assert!(!seen.cut_off && seen.metrics.units == REQUESTS);
}

/// Clients of `ycsb-f`, none of whose requests is a read alone.
fn modify(manner: Manner, rate: Option<u64>, clients: u32, depth: u32, blocking: bool) -> (LoadStats, Option<Open>) {
    let drive = Drive { job: "ycsb-f", rate, reopens: true, blocking, ..Drive::new(Part::Run, clients, depth, 32) };
    let requests = if manner == Manner::Plain { REQUESTS } else { REQUESTS / 10 };
    Drive { requests, ..drive }.against(manner).unwrap()
}

#[test]
fn what_is_read_is_written_at_once_at_a_rate_too_and_is_one_request() {
    for (manner, requests) in [(Manner::Plain, REQUESTS), (Manner::Dripping, 400), (Manner::Closing(90), 400)] {
        for (rate, depth) in [(Some(10_000), 1), (None, 1), (None, 16)] {
            let (seen, open) = modify(manner, rate, 4, depth, false);
            assert_eq!((seen.metrics.units, seen.metrics.ops, seen.metrics.misses), (requests, 2 * requests, 0));
            // A closed client's times are of questions.
            assert_eq!(seen.times.count(), if rate.is_some() { requests } else { 2 * requests });
            let told = open.map(|open| (open.response_ns.times().unwrap().count(), open.late));
            assert_eq!(told, rate.map(|_| (requests, None)));
            assert_eq!(seen.asked.iter().map(|(_, asked)| asked).sum::<u64>(), requests);
            assert_eq!(seen.metrics.reconnects > 0, matches!(manner, Manner::Closing(_)));
        }
    }
}

#[test]
fn the_time_of_what_is_read_and_written_is_of_both() {
    for blocking in [false, true] {
        let (seen, open) = modify(Manner::Exactly(Duration::from_millis(20)), Some(100), 20, 1, blocking);
        let open = open.unwrap();
        assert_eq!((seen.metrics.units, seen.metrics.ops), (REQUESTS / 10, REQUESTS / 5));
        let response = open.response_ns.times().unwrap();
        let ms = |ns: u64| ns as f64 / 1e6;
        let (shortest_ms, usual_ms) = (ms(response.value_at(0.0)), ms(response.median_ns()));
        assert!(shortest_ms > 39.9, "two answers of 20 ms each: {shortest_ms} ms");
        // Requests of one connection that meet share some of their service's time.
        let service_ms = ms(seen.times.median_ns());
        assert!((30.0..=1.01 * usual_ms).contains(&service_ms), "{service_ms} ms of {usual_ms} ms");
    }
}
