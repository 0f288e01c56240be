//! Rates, points and steps on a machine that does other things: no store is blamed for what the machine did, and a
//! store that stands still by itself is.

use std::time::Duration;

use kvfair::model::disturbed::disturbed;
use kvfair::model::noise::{Noise, Sign};
use kvfair::model::record::{Phase, Record};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::common::desk::{Desk, Said, Started, one_line, signal, wait_for};
use crate::common::load::{alone, spinners};

/// As a user runs it: tests otherwise accept noise.
fn run(desk: &Desk, arguments: &[&str]) -> Said {
    let mut command = desk.kvfair(arguments);
    command.env_remove("KVFAIR_ACCEPT_NOISE");
    Started::new(command).wait()
}

#[track_caller]
fn blames_nobody(said: &Said) {
    for words in ["breaks the promise", "could not keep", "overload", "keeps p99", "noise ok"] {
        assert!(!said.out.contains(words), "'{words}' in:\n{}{}", said.out, said.err);
    }
}

/// Three programs for each processor, until the end of the test.
#[cfg(target_os = "linux")]
#[test]
fn beside_other_programs_a_search_and_rates_are_unclear() {
    let _alone = alone();
    let desk = Desk::with_only(&["redis-server"]);
    let strangers = spinners(&desk);
    // At once, since each waits for the strangers most of the time. Of a trial of some milliseconds nothing can be said
    // to have been disturbed.
    let on = ["mixed", "redis+unix", "--records", "100"];
    let blocks = ["--blocks", "1", "--requests"];
    let find = [&["find-max"][..], &on, &["--step", "1", "--slo", "p99:1ms", "--output", "found.jsonl"]].concat();
    let share = [&["run"][..], &on, &blocks, &["100000", "--rate", "50%", "--output", "shared.jsonl"]].concat();
    let rate = [&["run"][..], &on, &blocks, &["1000", "--rate", "500,2k", "--output", "rates.jsonl"]].concat();
    let [found, shared, rated] = std::thread::scope(|scope| {
        let started = [&find, &share, &rate].map(|arguments| scope.spawn(|| run(&desk, arguments)));
        started.map(|one| one.join().expect("no panic"))
    });
    blames_nobody(&found);
    found.exits(6).shows("unclear: ").shows("other programs used ").complains("discarded: other programs used ");
    found.shows("The machine disturbed each try: no result for redis+unix.");
    shared.exits(6).complains("kvfair: unclear: ").complains("; no result for redis+unix");
    blames_nobody(&rated);
    rated
        .exits(6)
        .shows("500 unclear")
        .shows("no result for redis+unix at 2 points")
        .complains("redis+unix: discarded: ");
    assert_eq!(one_line(&rated.out).matches("other programs used").count(), 1, "the cause once:\n{}", rated.out);
    let told = crate::common::desk::records_in(&desk.home().join("rates.jsonl"));
    let discarded: Vec<bool> = told.iter().map(|record| record["discarded"] == true).collect();
    assert_eq!(discarded, [true, true, false], "run again twice");

    let accepted = ["1000", "--rate", "500", "--accept-noise", "--output", "all.jsonl"];
    let accepted = run(&desk, &[&["run"][..], &on, &blocks, &accepted].concat());
    accepted.exits(0);
    assert!(!accepted.out.contains("unclear"), "{}", accepted.out);
    drop(strangers);
    let told = desk.json(&["rates.jsonl"]);
    let point = &told["rows"][0];
    assert_eq!((&point["units_per_s"], &point["rate_kept"]), (&Value::Null, &Value::Null), "{point}");
    assert_eq!((&point["rate_per_s"], &point["target"]), (&500.into(), &"redis+unix".into()), "{point}");
    assert!(point["reason"].as_str().is_some_and(|reason| reason.starts_with("other programs used")), "{point}");
    desk.run(&["show", "rates.jsonl", "--csv"]).exits(6).shows(",,false,unclear,").shows("run,rate,10,500,");
}

/// Nothing is claimed from a block, and its table says all the same that the machine was noisy.
#[cfg(target_os = "linux")]
#[test]
fn a_table_of_few_blocks_says_that_the_machine_was_noisy() {
    let _alone = alone();
    let desk = Desk::with_only(&[]);
    let strangers = spinners(&desk);
    let said = run(&desk, &["run", "ngrams", "sqlite", "--messages", "4000", "--blocks", "1", "--wide"]);
    drop(strangers);
    said.exits(0).shows("warning (noise): in some trials that count other programs used ");
}

/// What a size is chosen by is no number that was asked for: the run goes on, and says it.
#[cfg(target_os = "linux")]
#[test]
fn pilots_that_other_programs_disturbed_are_run_again_and_said() {
    let _alone = alone();
    let desk = Desk::with_only(&[]);
    let strangers = spinners(&desk);
    let said = run(&desk, &["run", "ngrams", "sqlite", "--budget", "10s", "--effort", "quick"]);
    drop(strangers);
    said.complains("kvfair: the pilots were disturbed (other programs used ").shows("sqlite");
}

/// Starts a rate of 500 a second for 4 s, and has these of its processes stand still from its middle to after its end.
fn stopped(desk: &Desk, whom: impl Fn(&Desk) -> Vec<u32>) -> Record {
    let rate = ["run", "mixed", "--records", "100", "--blocks", "1", "--rate", "500", "--requests", "2000"];
    let started = Started::new(desk.kvfair(&[&rate[..], &["redis+unix"]].concat()));
    wait_for("a trial", || (!desk.trials().is_empty()).then_some(()));
    std::thread::sleep(Duration::from_secs(2));
    let started_as = started.id();
    let still = whom(desk);
    still.iter().for_each(|pid| signal(*pid, Signal::SIGSTOP));
    std::thread::sleep(Duration::from_millis(4_500));
    still.iter().for_each(|pid| signal(*pid, Signal::SIGCONT));
    started.wait().exits(0);
    let record: Record = serde_json::from_value(desk.record("redis+unix")).expect("a record");
    let run = rated(&record);
    assert!(run.open.as_ref().is_some_and(|open| !open.is_kept(run.took_s)), "{} s", run.took_s);
    quiet(record, still.contains(&started_as))
}

fn rated(record: &Record) -> &Phase {
    record.phases.iter().find(|phase| phase.open.is_some()).expect("a rate")
}

/// The same as if nothing but this test had been on the machine, of which no test can be sure: even kvfair itself may
/// have been held up by others.
fn quiet(mut record: Record, all_stood_still: bool) -> Record {
    record.run.accepts_noise = false;
    for phase in &mut record.phases {
        let none = Some(0.0);
        phase.noise = phase.noise.map(|noise| Noise {
            foreign_share: none,
            unclaimed_share: none,
            steal_share: none,
            server_delay_share: none,
            client_delay_share: none,
            stalled_share: noise.stalled_share.filter(|_| all_stood_still),
            ..noise
        });
    }
    record
}

fn shown(desk: &Desk, record: &Record) -> Said {
    let line = serde_json::to_string(record).expect("a record");
    desk.run(&["show", desk.file("stopped.jsonl", line + "\n")])
}

#[cfg(target_os = "linux")]
fn a_stall_of_the_machine_is_not_the_stores() {
    let desk = Desk::with_only(&["redis-server"]);
    let record = stopped(&desk, |desk| desk.processes());
    let cause = disturbed(&record, rated(&record)).expect("a stall");
    // The generator's lag alone is known beside so many others that more threads than processors were at work, and
    // where the attendant stood still while it looked at processes: only its sleep is timed.
    let stalled_share = rated(&record).noise.and_then(|noise| noise.stalled_share);
    let sign = if stalled_share.is_some_and(|share| share > 0.3) { Sign::Stall } else { Sign::Lag };
    assert!(cause.reasons.iter().any(|reason| reason.sign == sign && reason.share > 0.3), "{cause:?}");
    let said = shown(&desk, &record);
    blames_nobody(&said);
    said.shows("500 unclear").shows("unclear: ").shows("no result for redis+unix, request at 500/s");
}

#[cfg(target_os = "linux")]
fn a_stall_of_the_load_generator_is_not_the_stores() {
    let desk = Desk::with_only(&["redis-server"]);
    let record = stopped(&desk, |desk| desk.trials());
    let cause = disturbed(&record, rated(&record)).expect("a stall");
    assert!(cause.stalled && cause.reasons.iter().all(|reason| reason.sign == Sign::Lag), "{cause:?}");
    let said = shown(&desk, &record);
    blames_nobody(&said);
    said.shows("unclear: the machine stalled: the load generator was kept from sending for ");
}

#[cfg(target_os = "linux")]
fn a_stall_of_the_store_is_its_own() {
    let desk = Desk::with_only(&["redis-server"]);
    let record = stopped(&desk, |desk| desk.processes_named("redis-server"));
    assert_eq!(disturbed(&record, rated(&record)), None, "{:?}", rated(&record).noise);
    shown(&desk, &record).shows("redis+unix could not keep 500 requests/s").shows("overload");
}

/// At once, since each stands still for most of its time.
#[cfg(target_os = "linux")]
#[test]
fn who_stood_still_is_blamed() {
    let _alone = alone();
    std::thread::scope(|scope| {
        scope.spawn(a_stall_of_the_machine_is_not_the_stores);
        scope.spawn(a_stall_of_the_load_generator_is_not_the_stores);
        scope.spawn(a_stall_of_the_store_is_its_own);
    });
}
