//! Many connections on a few threads, against a server of our own that answers right but as no real one does: a byte at
//! a time, several answers in one piece, wrong bytes, too much, nothing.

#[path = "common/strange.rs"]
mod strange;

use kvfair::drive::{Seen, Stopped};
use kvfair::jobs::Part;
use strange::{Drive, Manner, REQUESTS};

fn drive(manner: Manner, part: Part, clients: u32, depth: u32, value_bytes: u32) -> Result<Seen, Stopped> {
    Drive::new(part, clients, depth, value_bytes).against(manner).map(|(seen, _)| seen)
}

/// The same at a rate, where no request waits for the one before.
fn drive_rated(manner: Manner, part: Part, clients: u32) -> Result<Seen, Stopped> {
    Drive { rate: Some(10_000), ..Drive::new(part, clients, 1, 32) }.against(manner).map(|(seen, _)| seen)
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
fn at_a_rate_answers_in_pieces_and_together_change_no_count() {
    for manner in [Manner::Plain, Manner::Dripping, Manner::Hoarding(1), Manner::Hoarding(40)] {
        for (clients, part) in [(1, Part::Set), (4, Part::Get)] {
            let seen = drive_rated(manner, part, clients).unwrap();
            let counts = (seen.units, seen.ops, seen.commands, seen.misses, seen.times.count());
            assert_eq!(counts, (REQUESTS, REQUESTS, REQUESTS, 0, REQUESTS));
            assert_eq!(seen.asked.iter().map(|(_, asked)| asked).sum::<u64>(), REQUESTS);
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
    let rated = drive_rated(Manner::Corrupting(700), Part::Get, 3);
    assert!(matches!(rated, Err(Stopped::Wrong(_))), "{rated:?}");
}

#[test]
fn a_key_that_is_not_there_is_counted() {
    assert_eq!(drive(Manner::Forgetting(9), Part::Get, 3, 4, 32).unwrap().misses, 3);
}

#[test]
fn a_connection_of_no_more_use_stops_all_by_name() {
    let said = |manner, depth| match if depth == 0 {
        drive_rated(manner, Part::Get, 4)
    } else {
        drive(manner, Part::Get, 4, depth, 32)
    } {
        Err(stopped) => stopped.to_string(),
        Ok(seen) => panic!("{} units in spite of all", seen.units),
    };
    // None is at a rate.
    for depth in [0, 1, 16] {
        let closed = said(Manner::Closing(300), depth);
        assert!(closed.contains("redis at ") && closed.contains("closed the connection"), "{closed}");
        let silent = said(Manner::Silent(300), depth);
        assert!(silent.contains("has been silent for") && silent.contains("s on 4 connections"), "{silent}");
        let babbling = said(Manner::Babbling(300), depth);
        assert!(babbling.contains("garbled") || babbling.contains("wrong answer"), "{babbling}");
    }
}
