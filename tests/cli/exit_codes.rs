//! Each row of the table of exit codes: a situation that ends so. And "no verdict", which is one exit code for all
//! commands.

use kvfair::report::exit::{Exit, TABLE};
use nix::sys::signal::Signal;
use serde_json::Value;

use crate::cli::comment::{compared, two_runs};
use crate::common::desk::{Desk, Said, Started};

/// A situation of each exit code.
fn situation(exit: Exit, desk: &Desk) -> Said {
    let small =
        |targets: &[&str]| desk.run(&[&["run", "ngrams", "--messages", "5", "--blocks", "1"], targets].concat());
    match exit {
        Exit::Ok => small(&["ram", "null"]),
        Exit::Error => small(&["ram", "--durability", "power"]),
        Exit::Usage => small(&["ram", "--no-such-option"]),
        Exit::Missing => small(&["redis"]),
        Exit::WrongAnswers => small(&["faulty?fault=drop&after=5"]),
        Exit::Regression => {
            two_runs(desk, &[("redis", 1.6)], |_| {});
            compared(desk, &["--fail-if", "slower:5%"])
        }
        Exit::Inconclusive => {
            disturbed(desk, "out.jsonl");
            desk.run(&["show", "out.jsonl"])
        }
        Exit::Interrupted => {
            let started = Started::new(desk.kvfair(&["run", "ngrams", "ram", "null", "--blocks", "500"]));
            started.interrupt_at_once(Signal::SIGINT);
            started.wait()
        }
    }
}

#[test]
fn each_row_of_the_table_of_exit_codes_is_a_situation_that_ends_so() {
    for (exit, meaning) in TABLE {
        let desk = Desk::with_only(&[]);
        let said = situation(exit, &desk);
        assert_eq!(said.code, exit as i32, "{meaning}\n{}{}", said.out, said.err);
    }
}

/// A run of programs in which the machine disturbed all blocks but the first, and no target took longer.
fn disturbed(desk: &Desk, file: &'static str) {
    let run = ["run", "--exec", "true", "lmdb", "sqlite", "--blocks", "5", "--output", "run.jsonl"];
    desk.run(&run).exits(0);
    let mut records = crate::common::desk::records_in(&desk.home().join("run.jsonl"));
    for record in &mut records {
        let is_slow = record["block"].as_u64() > Some(1);
        record["run"].as_object_mut().expect("an object").remove("accepts_noise");
        let noise = record["noise"].as_object_mut().expect("an object");
        let is_sign = |name: &String| name.ends_with("_share") || name.ends_with("_ns");
        noise.retain(|name, _| !is_sign(name));
        noise.insert("processor_probe_ns".to_string(), if is_slow { 2_000 } else { 1_000 }.into());
        record["phases"].as_array_mut().expect("phases").iter_mut().for_each(|phase| phase["took_s"] = 1.0.into());
    }
    desk.file(file, records.iter().map(|record: &Value| format!("{record}\n")).collect::<String>());
}

/// The exit code of a run is that of its file, and standard error and the table say the same.
#[test]
fn a_run_of_programs_that_the_machine_disturbed_has_no_verdict() {
    let desk = Desk::with_only(&[]);
    disturbed(&desk, "out.jsonl");
    for form in [&[][..], &["--json"], &["--csv"], &["--markdown"], &["--all"]] {
        desk.run(&[&["show", "out.jsonl"], form].concat()).exits(6);
    }
    desk.run(&["show", "--wide", "out.jsonl"]).shows("Single times are not reliable: the machine disturbed ");
}

/// A time that is too short for the blocks of a claim.
#[test]
fn a_run_that_has_no_time_for_a_claim_has_no_verdict() {
    let desk = Desk::new();
    let run = ["run", "--exec", "sleep 1", "lmdb", "sqlite", "--budget", "13s"];
    desk.run(&run).exits(6).shows(", no claim");
    desk.run(&["show"]).exits(6);
}
