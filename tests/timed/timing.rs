//! The accuracy of the timing: what the load generator says of a server that notes itself when each request came and
//! when it answered.
//!
//! A request comes after it was sent, and is heard after it was answered: these bounds hold on any machine. How much
//! later is the machine's doing, and a thread that only sleeps shows in the same run how late the machine is.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::load::alone;
use crate::common::strange::{Answered, Drive, Manner, Watched};
use kvfair::jobs::Part;
use kvfair::model::hist::Times;
use kvfair::model::record::Open;
use kvfair::stats::arrivals::{CRITICAL, a_squared};

/// A histogram has three digits.
const GRAIN: f64 = 0.002;
const QUANTILES: [f64; 6] = [0.0, 0.1, 0.5, 0.9, 0.99, 1.0];

fn rated(manner: Manner, rate: u64, requests: u64, clients: u32, blocking: bool) -> Watched {
    let drive = Drive { rate: Some(rate), requests, blocking, ..Drive::new(Part::Get, clients, 1, 32) };
    drive.watched(manner).expect("a right server")
}

fn open(watched: &Watched) -> &Open {
    watched.open.as_ref().expect("a rate's own")
}

/// What the server saw, counted from when each request was due. Its requests came over one connection.
fn since_due(watched: &Watched, moment: impl Fn(&Answered) -> Instant) -> Times {
    assert_eq!(watched.answered.len(), watched.due.len(), "all requests were answered");
    let mut times = Times::default();
    for (answered, due) in watched.answered.iter().zip(&watched.due) {
        let since = moment(answered).checked_duration_since(*due).expect("nothing comes before it is due");
        times.record(since.as_nanos() as u64);
    }
    times
}

fn milliseconds(times: &Times, quantile: f64) -> f64 {
    times.value_at(quantile) as f64 / 1e6
}

/// At each quantile.
#[track_caller]
fn is_at_most(name: &str, shorter: &Times, longer: &Times) {
    assert_eq!(shorter.count(), longer.count(), "{name}");
    for quantile in QUANTILES {
        let (low_ms, high_ms) = (milliseconds(shorter, quantile), milliseconds(longer, quantile));
        assert!(low_ms <= high_ms * (1.0 + GRAIN), "{name} at {quantile}: {low_ms} ms and {high_ms} ms");
    }
}

/// What `work` gives, and how late this machine meanwhile woke up a thread that only slept: 99 of 100 times.
fn beside_a_sleeper<T>(work: impl FnOnce() -> T) -> (T, f64) {
    const NAP: Duration = Duration::from_millis(1);
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let mut late = Times::default();
            while !is_over.load(Ordering::Relaxed) {
                let asleep = Instant::now();
                std::thread::sleep(NAP);
                late.record((asleep.elapsed() - NAP).as_nanos() as u64);
            }
            milliseconds(&late, 0.99)
        });
        let made = work();
        is_over.store(true, Ordering::Relaxed);
        (made, sleeper.join().expect("a thread that sleeps"))
    })
}

#[test]
fn the_lag_is_what_the_server_saw_and_small_at_half_the_rate() {
    let _alone = alone();
    let closed = Drive { requests: 20_000, ..Drive::new(Part::Get, 1, 1, 32) }.against(Manner::Plain).unwrap().0;
    let rate = (closed.metrics.units as f64 / closed.took_s / 2.0) as u64;
    let (watched, sleeper_ms) = beside_a_sleeper(|| rated(Manner::Plain, rate, rate, 1, false));
    let lag = open(&watched).lag_ns.times().unwrap();
    is_at_most("the lag, which ends before the request comes", &lag, &since_due(&watched, |answered| answered.came));
    let lag_ms = milliseconds(&lag, 0.5);
    assert!(lag_ms < 1.0 + 3.0 * sleeper_ms, "{lag_ms} ms, and a sleeper was {sleeper_ms} ms late");
}

#[test]
fn an_answer_after_5_ms_took_5_ms() {
    let _alone = alone();
    let exactly = Manner::Exactly(Duration::from_millis(5));
    let (watched, sleeper_ms) = beside_a_sleeper(|| rated(exactly, 200, 300, 1, false));
    let response = open(&watched).response_ns.times().unwrap();
    let said = since_due(&watched, |answered| answered.said);
    is_at_most("the response, which lasts until the answer", &said, &response);
    assert!(milliseconds(&said, 0.0) > 4.99, "{} ms", milliseconds(&said, 0.0));
    let (response_ms, said_ms) = (milliseconds(&response, 0.5), milliseconds(&said, 0.5));
    let allowed_ms = 0.25 + 3.0 * sleeper_ms;
    assert!(response_ms < said_ms + allowed_ms, "{response_ms} ms, answered after {said_ms} ms, {sleeper_ms} ms");
}

/// Of requests that meet no other one on their connection.
#[test]
fn the_service_is_no_shorter_than_the_answer_was_held_back_and_no_longer_than_the_response() {
    let _alone = alone();
    let watched = rated(Manner::Exactly(Duration::from_millis(5)), 200, 300, 20, false);
    let response = open(&watched).response_ns.times().unwrap();
    let service = &watched.seen.times;
    assert!(milliseconds(&response, 0.0) > 4.99, "{} ms", milliseconds(&response, 0.0));
    assert!(milliseconds(service, 0.5) > 4.99, "{} ms", milliseconds(service, 0.5));
    is_at_most("the response, which begins when the request is due", service, &response);
}

#[test]
fn requests_are_sent_when_independent_ones_are_due() {
    let _alone = alone();
    for blocking in [true, false] {
        let (watched, sleeper_ms) = beside_a_sleeper(|| rated(Manner::Plain, 200, 300, 1, blocking));
        let due_ns: Vec<f64> = watched.due.windows(2).map(|pair| (pair[1] - pair[0]).as_nanos() as f64).collect();
        let a_squared = a_squared(&due_ns).expect("there are enough");
        assert!(a_squared < CRITICAL, "A2 is {a_squared}");
        // The first one was sent after it was due, and before it came.
        let (first_due, first_came) = (watched.due[0], watched.answered[0].came);
        let sends = &open(&watched).sends_ns;
        assert_eq!((sends.len(), watched.answered.len(), watched.due.len()), (300, 300, 300), "all are watched");
        for ((sent_ns, answered), due) in sends.iter().zip(&watched.answered).zip(&watched.due) {
            let after_first = Duration::from_nanos(*sent_ns);
            assert!(first_due + after_first <= answered.came, "it came before it was sent");
            assert!(first_came + after_first >= *due, "it was sent before it was due");
        }
        // Where two were sent together, one of them would be late.
        let lag_ms = milliseconds(&open(&watched).lag_ns.times().unwrap(), 0.75);
        assert!(lag_ms < 1.0 + 3.0 * sleeper_ms, "{lag_ms} ms, and a sleeper was {sleeper_ms} ms late");
    }
}

/// A fifth of all requests come while nothing is answered, and wait a quarter of a second on average. Measured from the
/// sending only those few would have taken long that were asked just before.
#[test]
fn a_freeze_counts_for_all_who_came_meanwhile() {
    let _alone = alone();
    let freeze = Manner::Freezing { after: Duration::from_millis(500), lasting: Duration::from_millis(500) };
    std::thread::scope(|scope| {
        let both = [true, false]
            .map(|blocking| scope.spawn(move || beside_a_sleeper(|| rated(freeze, 1_000, 2_500, 1, blocking))));
        for (watched, sleeper_ms) in both.map(|one| one.join().unwrap()) {
            let response = open(&watched).response_ns.times().unwrap();
            let said = since_due(&watched, |answered| answered.said);
            is_at_most("the response, which lasts until the answer", &said, &response);
            let (p90_ms, p99_ms) = (milliseconds(&response, 0.9), milliseconds(&response, 0.99));
            assert!(p90_ms > 200.0, "{p90_ms} ms: requests came while the server stood still");
            let said_ms = milliseconds(&said, 0.99);
            let service_ms = milliseconds(&watched.seen.times, 0.99);
            assert!(p99_ms < 1.1 * said_ms + 3.0 * sleeper_ms, "{p99_ms} ms, answered after {said_ms} ms");
            assert!(service_ms < p99_ms / 4.0, "{service_ms} ms of a service, {p99_ms} ms of a response");
            assert_eq!(open(&watched).late, None, "the rate was not given up");
        }
    });
}
