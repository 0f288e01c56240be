//! The accuracy of the timing: a server that lies about nothing, and what the generator says of it.
//!
//! One test, since two at once would disturb each other's moments.

use std::time::{Duration, Instant};

use crate::common::strange::{Drive, Manner};
use kvfair::jobs::Part;
use kvfair::loadgen::LoadStats;
use kvfair::model::hist::Times;
use kvfair::model::record::Open;
use kvfair::stats::arrivals::{CRITICAL, a_squared};

/// Other programs can only make moments later than they are: what is right once is right.
const ATTEMPTS: u32 = 5;

#[test]
fn requests_at_a_rate_are_timed_from_when_they_were_due() {
    attempt("half the rate", lag_stays_small_at_half_the_rate);
    attempt("exactly 5 ms", an_answer_after_5_ms_took_5_ms);
    attempt("arrivals", requests_are_sent_as_independent_ones_come);
    let freezes = [true, false].map(|blocking| {
        std::thread::spawn(move || attempt("freeze", || a_freeze_counts_for_all_who_came_meanwhile(blocking)))
    });
    freezes.into_iter().for_each(|freeze| freeze.join().unwrap());
}

/// Says why, and fails for good where it never comes right.
fn attempt(name: &str, check: impl Fn() -> Result<(), String>) {
    let mut said = Vec::new();
    for _ in 0..ATTEMPTS {
        match check() {
            Ok(()) => return,
            Err(why) => said.push(why),
        }
    }
    panic!("{name}: {said:#?}");
}

fn rated(manner: Manner, rate: u64, seconds: u64, clients: u32, blocking: bool) -> (LoadStats, Open) {
    let drive = Drive { rate: Some(rate), requests: rate * seconds, blocking, ..Drive::new(Part::Get, clients, 1, 32) };
    let (seen, open) = drive.against(manner).unwrap();
    (seen, open.unwrap())
}

fn within(name: &str, found_ns: u64, low_ms: f64, high_ms: f64) -> Result<(), String> {
    let found_ms = found_ns as f64 / 1e6;
    let right = (low_ms..=high_ms).contains(&found_ms);
    right.then_some(()).ok_or_else(|| format!("{name} is {found_ms:.3} ms, not from {low_ms} to {high_ms}"))
}

fn p99(times: &Times) -> u64 {
    times.quantile_ns(0.99).expect("there are enough")
}

fn lag_stays_small_at_half_the_rate() -> Result<(), String> {
    let closed = Drive { requests: 40_000, ..Drive::new(Part::Get, 4, 1, 32) }.against(Manner::Plain).unwrap().0;
    let most = closed.metrics.units as f64 / closed.took_s;
    let own = std::thread::spawn(|| own_lateness(Duration::from_secs(2)));
    let (_, open) = rated(Manner::Plain, (most / 2.0) as u64, 2, 4, false);
    // Where other programs keep even a bare sleeper waiting, no generator can be in time.
    let own_ms = p99(&own.join().unwrap()) as f64 / 1e6;
    within("the lag's p99", p99(&open.lag_ns.times()?), 0.0, 1_f64.max(3.0 * own_ms))
}

/// How late this machine wakes up whoever sleeps for a while.
fn own_lateness(lasting: Duration) -> Times {
    const NAP: Duration = Duration::from_millis(1);
    let (mut late, began) = (Times::default(), Instant::now());
    while began.elapsed() < lasting {
        let asleep = Instant::now();
        std::thread::sleep(NAP);
        late.record((asleep.elapsed() - NAP).as_nanos() as u64);
    }
    late
}

fn an_answer_after_5_ms_took_5_ms() -> Result<(), String> {
    let (seen, open) = rated(Manner::Exactly(Duration::from_millis(5)), 200, 5, 20, false);
    within("the response's median", open.response_ns.times()?.median_ns(), 5.0, 5.25)?;
    within("the service's median", seen.times.median_ns(), 4.75, 5.25)
}

/// At gaps of 5 ms a sleep that ends some microseconds late is not seen.
fn requests_are_sent_as_independent_ones_come() -> Result<(), String> {
    for blocking in [true, false] {
        let (_, open) = rated(Manner::Plain, 200, 7, 8, blocking);
        let gaps: Vec<f64> = open.sends_ns.windows(2).map(|pair| (pair[1].saturating_sub(pair[0])) as f64).collect();
        assert_eq!(gaps.len(), 999, "so many are watched");
        let found = a_squared(&gaps).expect("there are enough");
        if found > 2.0 * CRITICAL {
            return Err(format!("A2 is {found}, with a thread a client: {blocking}"));
        }
    }
    Ok(())
}

/// One second in sixty: of all requests one in sixty came while nothing was answered, and waited half a second on
/// average. A hundredth of all waited longer than 0.4 s. Measured from the sending it would be a few requests that took
/// long, those that were asked just before.
fn a_freeze_counts_for_all_who_came_meanwhile(blocking: bool) -> Result<(), String> {
    let freeze = Manner::Freezing { after: Duration::from_secs(20), lasting: Duration::from_secs(1) };
    let (seen, open) = rated(freeze, 1_000, 60, if blocking { 1 } else { 10 }, blocking);
    within("the response's p99", p99(&open.response_ns.times()?), 350.0, 450.0)?;
    within("the response's longest", open.response_ns.times()?.max_ns(), 950.0, 1_300.0)?;
    within("the service's p99", p99(&seen.times), 0.0, 20.0)?;
    if open.late.is_some() { Err("the rate was given up".to_string()) } else { Ok(()) }
}
