//! Results: written once and never over others, printed again as they were, and valid by the schema.

use serde_json::Value;

use crate::common::desk::{Desk, Started, one_line, records_in, signal, wait_for};

const SHORT: &[&str] = &["run", "ngrams", "--messages", "30", "--blocks", "2", "ram", "null"];

fn run(desk: &Desk, more: &[&str]) -> crate::common::desk::Said {
    desk.run(&[SHORT, more].concat())
}

/// A name with a mistake in it would become a directory, also of root's.
#[test]
fn no_directory_is_made_for_what_is_written() {
    let desk = Desk::new();
    run(&desk, &["--output", "out.jsonl"]).exits(0);
    let commands: [&[&str]; 6] = [
        &["run", "ngrams", "--messages", "5", "--blocks", "1", "ram", "--output", "new/x.jsonl"],
        &["run", "ngrams", "--messages", "5", "--blocks", "1", "ram", "--html", "new/x.html"],
        &["find-max", "mixed", "lmdb", "--slo", "p99:9s", "--output", "new/x.jsonl"],
        &["show", "out.jsonl", "--html", "new/x.html"],
        &["bundle", "out.jsonl", "--output", "new/x.tar.zst"],
        &["growth", "ram", "--budget", "9s", "--output", "new/x.jsonl"],
    ];
    for command in commands {
        let said = desk.run(command);
        said.exits(1).complains("cannot write new/x.").complains("there is no directory new hint: make the directory");
        assert_eq!(said.out, "", "{command:?}: nothing was measured before");
        assert!(!desk.home().join("new").exists(), "{command:?}");
    }
}

#[test]
fn results_are_never_overwritten() {
    let desk = Desk::new();
    desk.file("mine.jsonl", "precious\n");
    run(&desk, &["--output", "mine.jsonl"]).exits(1).complains("mine.jsonl is there already, and results are never");
    assert_eq!(std::fs::read_to_string(desk.home().join("mine.jsonl")).expect("still there"), "precious\n");
    run(&desk, &["--output", "."]).exits(1).complains("is there already");
    run(&desk, &["--output", "mine.jsonl/out.jsonl"]).exits(1).complains("mine.jsonl");
    run(&desk, &["--output", "/proc/nowhere/out.jsonl"]).exits(1).complains("/proc/nowhere");
    run(&desk, &["--output", "out.jsonl"]).exits(0).complains("results: out.jsonl");
    assert_eq!(records_in(&desk.home().join("out.jsonl")).len(), 4);
    // Three runs within a second or two: their names must differ all the same.
    for _ in 0..3 {
        run(&desk, &[]).exits(0);
    }
    assert_eq!(std::fs::read_dir(desk.home().join("kvfair-results")).expect("results").count(), 3);
    assert_eq!(desk.records().len(), 12);
}

#[test]
fn a_table_is_printed_again_from_its_file() {
    let desk = Desk::new();
    desk.run(&["show"]).exits(1).complains("no results yet").complains("`kvfair run fans` makes some");
    desk.run(&["history"]).exits(1).complains("or name files: `kvfair history FILES`");
    let said = run(&desk, &[]);
    assert_eq!(desk.run(&["show"]).exits(0).out, said.out);
    let wide = desk.run(&["show", "--wide"]);
    wide.exits(0).shows("lowest..highest").shows("op p99");
    assert!(said.out.lines().all(|line| line.chars().count() <= 200) && !said.out.contains("op p99"));
    assert_eq!(desk.rows().len(), 2);
    desk.run(&["show", "none.jsonl"]).exits(1).complains("cannot read results from none.jsonl");
    desk.run(&["show", desk.file("odd.jsonl", "{\"x\":1}\n")])
        .exits(1)
        .complains("odd.jsonl:1: not a record of kvfair");
    desk.run(&["show", desk.file("discarded.jsonl", "")]).exits(1).complains("discarded.jsonl holds no records");
}

/// A crash while a line was written loses that line alone.
#[test]
fn a_last_line_that_was_cut_off_is_left_out() {
    let desk = Desk::new();
    let said = run(&desk, &["--output", "out.jsonl"]);
    let text = std::fs::read_to_string(desk.home().join("out.jsonl")).expect("results");
    desk.file("cut.jsonl", format!("{text}{}", &text[..text.len() / 5]));
    let shown = desk.run(&["show", "cut.jsonl"]).exits(0).out.replace("--wide cut.jsonl", "--wide out.jsonl");
    assert_eq!(shown, said.out);
    desk.file("torn.jsonl", format!("{}\n{text}", &text[..text.len() / 5]));
    desk.run(&["show", "torn.jsonl"]).exits(1).complains("torn.jsonl:1: not a record");
}

#[test]
fn a_list_of_trials_runs_nothing() {
    let desk = Desk::with_only(&[]);
    let said = desk.run(&["run", "fans", "--blocks", "3", "--seed", "5", "--list", "ram", "redis", "null"]);
    said.exits(0).shows("seed 5 block 1 trial 1: fans on ");
    assert_eq!(said.out.lines().count(), 1 + 3 * 3);
    assert_eq!(std::fs::read_dir(desk.home()).expect("home").count(), 0, "nothing was written");
    let again = desk.run(&["run", "fans", "--blocks", "3", "--seed", "5", "--list", "ram", "redis", "null"]);
    assert_eq!(said.out, again.out, "the same seed gives the same order");
    let order = |seed: &str| desk.run(&["run", "fans", "--blocks", "9", "--seed", seed, "--list", "ram", "null"]).out;
    assert_ne!(order("5").lines().skip(1).collect::<Vec<_>>(), order("6").lines().skip(1).collect::<Vec<_>>());
}

#[test]
fn rows_as_json_are_json_alone() {
    let desk = Desk::new();
    let said = run(&desk, &["--json"]);
    let told: Value = serde_json::from_str(&said.exits(0).out).expect("JSON and nothing else");
    let rows = told["rows"].as_array().expect("rows");
    let targets: Vec<&str> = rows.iter().map(|row| row["target"].as_str().expect("a target")).collect();
    assert_eq!(std::collections::BTreeSet::from_iter(targets), ["null", "ram"].into(), "{told}");
    assert!(rows.len() == 2 && rows.iter().all(|row| row["took_s"].as_f64() > Some(0.0)), "{told}");
    assert_eq!(told, desk.json(&[]), "the same from the file");
}

#[test]
fn answers_only_tells_no_seconds() {
    let desk = Desk::new();
    let said = run(&desk, &["--answers-only"]);
    said.exits(0).shows("answers only, nothing timed").shows("sha256 terms").shows("ram right");
    assert_eq!(desk.records().len(), 2, "one block");
    let told: Vec<&str> = said.out.lines().filter(|line| line.contains("ram") || line.contains("null")).collect();
    assert!(told.len() >= 2, "{}", said.out);
    for line in told {
        assert!(!line.contains('.') || line.contains("kvfair run"), "a number: {line}");
    }
    run(&desk, &["--answers-only"]);
    let rows = desk.rows();
    assert!(rows.len() == 2 && rows.iter().all(|row| row["took_s"].is_null() && row["ops"].is_null()), "{rows:?}");
}

#[test]
fn two_copies_of_a_target_need_names() {
    let desk = Desk::new();
    let said = desk.run(&["run", "ngrams", "--messages", "20", "--blocks", "1", "ram", "ram?name=mine"]);
    said.exits(0).shows("mine");
    assert_eq!(
        (desk.record("ram")["verdict"]["kind"].as_str(), desk.record("mine")["verdict"]["kind"].as_str()),
        (Some("right"), Some("right"))
    );
    assert_eq!(desk.record("mine")["target"]["store"], "ram");
}

/// The reader of a pipe may leave whenever it likes.
#[test]
fn a_pipe_that_is_closed_early_is_no_error() {
    let desk = Desk::new();
    let script = "{ \"$0\" data fans; echo $? >code; } 2>err | head -1";
    let command = desk.command("sh", &["-c", script, env!("CARGO_BIN_EXE_kvfair")]);
    let said = crate::common::desk::Started::new(command).wait();
    said.exits(0).shows("{\"user\": \"user00001\"");
    let wrote = |name: &str| std::fs::read_to_string(desk.home().join(name)).expect("written by the script");
    assert_eq!((wrote("code").as_str(), wrote("err").as_str()), ("0\n", ""));
}

/// Ten records are a limit for all clients together, and none are no limit for any of them.
#[test]
fn a_cache_of_few_records_holds_them_for_several_clients() {
    let desk = Desk::new();
    let run = ["run", "getset", "--records", "10", "--requests", "2000", "--clients", "2", "--blocks", "1"];
    desk.run(&[&run[..], &["cached:ram?items=10"]].concat()).exits(0);
    let counters = &desk.record("cached:ram?items=10")["counters"];
    assert!(counters["cache hits"].as_u64() > Some(1_000) && counters["cache evictions"] == 0, "{counters}");
}

/// All kinds of outcomes in one results file, each record valid and each number a number.
#[test]
fn every_record_is_valid_by_the_schema() {
    let desk = Desk::with_only(&["redis-server"]);
    desk.wrap("valkey-server", "exec sleep 1000");
    desk.file("400.tsv", format!("u\tTea\t{}\n", "n".repeat(400)).repeat(4));
    let urls = ["redis://127.0.0.1:1", "redis://user:secret@127.0.0.1:1/7?name=mine"];
    let run = ["run", "fans", "--input", "400.tsv", "--blocks", "1", "--timeout", "1s", "--clients", "2"];
    let targets = ["ram", "null", "redis", "redis+unix", "valkey", "memcached"];
    desk.run(&[&run[..], &["--skip-missing"], &targets, &urls].concat()).exits(3);
    desk.run(&["run", "fans", "--profiles", "3000", "--blocks", "1", "--timeout", "1s", "redis"]).exits(1);
    desk.run(&["run", "ngrams", "--blocks", "1", "--messages", "9", "--durability", "power", "ram", "redis"]).exits(1);
    desk.run(&["run", "ngrams", "--blocks", "1", "--messages", "200", "--verify", "sample", "ram"]).exits(0);
    desk.run(&["run", "getset", "--blocks", "1", "--requests", "200", "--clients", "1,3", "ram", "redis"]).exits(0);

    desk.file("ten.lis", "1 10 0 0\n");
    desk.run(&["run", "trace", "--blocks", "1", "--input", "ten.lis", "ram", "cached:null"]).exits(0);
    desk.file("ten.csv", "0,key,3,9,1,get,0\n".repeat(10));
    let replay =
        ["run", "trace", "--blocks", "1", "--input", "ten.csv", "--format", "twitter", "--replay", "9x", "ram"];
    desk.run(&replay).exits(0);
    let small = ["run", "getset", "--blocks", "1", "--requests", "300", "--records", "20", "--clients", "2"];
    for option in [["--rate", "2k,3k"], ["--values", "9,90"], ["--values", "etc"], ["--batch", "3,5"]] {
        desk.run(&[&small[..], &option, &["ram", "redis"]].concat()).exits(0);
    }
    desk.run(&[&small[..], &["--reconnect", "redis"]].concat()).exits(0);
    for answer in ["stdout", "{dir}/a", "none"] {
        let program = ["run", "--exec", "echo 1 >{dir}/a", "--answer", answer, "--blocks", "1", "lmdb", "redis"];
        desk.run(&program).exits(0);
    }
    let endless = ["run", "getset", "--blocks", "1", "--requests", "90000000", "--records", "20", "--clients", "2"];
    desk.run(&[&endless[..], &["--timeout", "1s", "ram"]].concat()).exits(1);

    let schema: Value = serde_json::from_str(include_str!("../../schema/record.schema.json")).expect("the schema");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let records = desk.records();
    for record in &records {
        let faults: Vec<String> =
            validator.iter_errors(record).map(|fault| format!("{} at {}", fault, fault.instance_path())).collect();
        assert!(faults.is_empty(), "{}: {faults:?}", record["target"]["label"]);
        numbers_are_finite(record);
    }
    let kinds = |of: &str| -> std::collections::BTreeSet<String> {
        records.iter().map(|record| record[of]["kind"].as_str().expect("a kind").to_string()).collect()
    };
    let outcomes = ["finished", "missing", "refused", "timed_out", "failed"];
    assert_eq!(kinds("outcome"), outcomes.map(str::to_string).into());
    assert!(kinds("verdict").len() >= 3, "{:?}", kinds("verdict"));

    let mut broken = records[0].clone();
    broken["stream"]["units"] = Value::from("many");
    assert!(!validator.is_valid(&broken), "the schema sees what is wrong");
}

fn numbers_are_finite(value: &Value) {
    match value {
        Value::Number(number) => assert!(number.as_f64().is_some_and(f64::is_finite), "{number}"),
        Value::Array(values) => values.iter().for_each(numbers_are_finite),
        Value::Object(fields) => fields.values().for_each(numbers_are_finite),
        _ => {}
    }
}

#[test]
fn many_clients_give_the_same_answers() {
    let desk = Desk::new();
    for job in [["ngrams", "--messages", "300"], ["fans", "--profiles", "200"]] {
        let one = desk.run(&[&["run", "--blocks", "1", "--answers-only"], &job[..], &["ram"]].concat());
        let many = desk.run(
            &[&["run", "--blocks", "1", "--answers-only", "--clients", "7"], &job[..], &["ram", "redis", "redis+unix"]]
                .concat(),
        );
        let digest = |said: &crate::common::desk::Said| {
            let text = one_line(&said.exits(0).out);
            text.split_once("the answer").map(|(_, rest)| rest.split("data:").next().unwrap_or_default().to_string())
        };
        assert!(digest(&one).is_some_and(|answer| answer.contains("sha256")));
        assert_eq!(digest(&one), digest(&many));
    }
}

#[test]
fn show_passes_over_what_holds_no_measurement_and_names_it() {
    let desk = Desk::new();
    let run = |target: &str, file: &str| {
        desk.run(&[
            "run",
            "ngrams",
            "--messages",
            "20",
            "--blocks",
            "1",
            "-o",
            &format!("kvfair-results/{file}"),
            target,
        ])
    };
    std::fs::create_dir(desk.home().join("kvfair-results")).expect("a directory");
    // A program that ends at once.
    run("redis?program=/bin/false", "1-failed.jsonl").exits(3);
    desk.run(&["show"]).exits(3).shows("/bin/false");
    // Also where nothing else can be shown.
    desk.file("kvfair-results/2-empty.jsonl", "");
    let said = desk.run(&["show"]);
    said.exits(3).shows("/bin/false").complains("skipped kvfair-results/2-empty.jsonl: it is empty");
    run("lmdb", "2-right.jsonl").exits(0);
    run("redis?program=/bin/false", "3-failed.jsonl").exits(3);
    desk.file("kvfair-results/4-empty.jsonl", "");
    let said = desk.run(&["show"]);
    said.exits(0).shows(" lmdb ").complains("skipped kvfair-results/4-empty.jsonl: it is empty");
    said.complains("skipped kvfair-results/3-failed.jsonl: no trial was finished");
    desk.run(&["show", "kvfair-results/3-failed.jsonl"]).exits(3).shows("/bin/false");
}

/// What was typed comes back with the option that helps, and without what must not exist yet.
#[test]
fn the_next_command_keeps_what_was_typed() {
    let desk = Desk::new();
    let run = ["run", "mixed", "lmdb", "--records", "100", "--rate", "2000", "--requests", "500"];
    let typed = "next: kvfair run mixed lmdb --records 100 --rate 2000 --requests 500";
    let said = desk.run(&[&run[..], &["--blocks", "1", "-oone.jsonl", "sqlite?name=it's"]].concat());
    said.exits(0).shows(&format!("{typed} 'sqlite?name=it'\\''s'"));
    assert!(!said.out.contains(&format!("{typed} --blocks")) && !said.out.contains("-oone.jsonl"), "{}", said.out);
    desk.run(&[&run[..], &["--blocks", "1"]].concat()).shows(&format!("{typed} --blocks 1 --durability crash"));
    // What was typed and keeps nothing gets no durability level; the file that was named is.
    let run = ["run", "mixed", "ram", "--records", "100", "--requests", "500", "--blocks", "1", "-o", "ram.jsonl"];
    desk.run(&run).shows("next: kvfair show --wide ram.jsonl");
    desk.run(&["show", "ram.jsonl"]).shows("next: kvfair show --wide ram.jsonl");
    let compare = ["compare", "mixed", "--base", "lmdb", "--head", "sqlite", "--records", "90", "--requests", "90"];
    let said = desk.run(&[&compare[..], &["--blocks", "1"]].concat());
    said.shows("next: kvfair compare mixed --base lmdb --head sqlite --records 90 --requests 90");
}

/// A run that was killed in the middle of a block is not shown as if it were whole.
#[test]
#[cfg(target_os = "linux")]
fn a_run_that_was_cut_off_is_told() {
    let desk = Desk::new();
    let run = ["run", "fans", "--profiles", "300", "--blocks", "9", "-o", "out.jsonl", "ram", "lmdb", "redis"];
    let started = Started::new(desk.kvfair(&run));
    let lines = || std::fs::read_to_string(desk.home().join("out.jsonl")).unwrap_or_default().lines().count();
    wait_for("a block", || (lines() >= 3).then_some(()));
    signal(started.id(), nix::sys::signal::Signal::SIGKILL);
    started.wait();
    let text = std::fs::read_to_string(desk.home().join("out.jsonl")).expect("records");
    let of_block = |wanted: u64| {
        let is_of = |line: &&str| {
            let record: serde_json::Value = serde_json::from_str(line).expect("a record");
            record["block"] == wanted && record["aa_control"] != true
        };
        text.lines().filter(is_of).count()
    };
    let (whole, count) = (text.lines().take(3).collect::<Vec<_>>().join("\n"), of_block(0));
    assert_eq!(count, 3, "the block that warms up");
    desk.file("whole.jsonl", format!("{whole}\n"));
    let first = text.lines().next().expect("a record").replacen("\"block\":0", "\"block\":1", 1);
    desk.file("cut.jsonl", format!("{whole}\n{first}\n"));
    let said = desk.run(&["show", "cut.jsonl"]);
    said.complains("cut.jsonl: the run was cut off by its time limit or by a signal: block 1 has 1 of 3 trials");
    assert!(!desk.run(&["show", "whole.jsonl"]).err.contains("cut off"));
    desk.is_swept();
}

/// What somebody has removed meanwhile is printed all the same, and is missed.
#[test]
#[cfg(target_os = "linux")]
fn results_that_are_removed_during_a_run_are_said_to_be_lost() {
    for replaced in [false, true] {
        let desk = Desk::new();
        let run = ["run", "fans", "--profiles", "200", "--blocks", "2", "--output", "out.jsonl", "redis", "ram"];
        let started = Started::new(desk.kvfair(&run));
        let path = desk.home().join("out.jsonl");
        wait_for("a record", || std::fs::metadata(&path).is_ok_and(|meta| meta.len() > 0).then_some(()));
        std::fs::remove_file(&path).expect("it is there");
        if replaced {
            std::fs::write(&path, "mine").expect("a file");
        }
        let said = started.wait();
        said.exits(1).shows("fans, 200 profiles").shows("redis").shows("ram");
        said.complains("kvfair: the results are lost: out.jsonl was removed or replaced during the run");
        assert!(!said.err.contains("results: out.jsonl"), "{}", said.err);
        assert_eq!(std::fs::read_to_string(&path).ok(), replaced.then(|| "mine".to_string()));
    }
}

/// As strace sees it: the file is synced after each block, and its directory once.
#[test]
#[cfg(target_os = "linux")]
fn results_are_on_the_disk_after_each_block() {
    let desk = Desk::new();
    let kvfair = env!("CARGO_BIN_EXE_kvfair");
    std::fs::create_dir(desk.home().join("kept")).expect("a directory");
    let traced =
        ["-y", "-e", "trace=write,fsync,fdatasync", "-o", "calls", kvfair, "run", "ngrams", "--messages", "20"];
    let run = ["--blocks", "3", "--output", "kept/out.jsonl", "ram", "null"];
    Started::new(desk.command("strace", &[&traced[..], &run].concat())).wait().exits(0);
    let calls = std::fs::read_to_string(desk.home().join("calls")).expect("strace's report");
    let calls = calls.lines().filter_map(|line| match line {
        line if line.contains("/kept/out.jsonl>") => Some(if line.starts_with("write") { 'w' } else { 's' }),
        line if line.contains("/kept>") => Some('d'),
        _ => None,
    });
    assert_eq!(calls.collect::<String>(), "wwsdwwswws");
}

/// Nor is the end of a run lost that is cut off within a block.
#[test]
#[cfg(target_os = "linux")]
fn results_are_on_the_disk_after_a_run_that_was_cut_off() {
    let desk = Desk::new();
    let kvfair = env!("CARGO_BIN_EXE_kvfair");
    std::fs::create_dir(desk.home().join("kept")).expect("a directory");
    let traced = ["-y", "-e", "trace=write,fsync,fdatasync", "-o", "calls", kvfair, "run", "fans"];
    let run = ["--profiles", "1000", "--blocks", "1", "--output", "kept/out.jsonl", "ram", "redis", "lmdb"];
    let started = Started::new(desk.command("strace", &[&traced[..], &run].concat()));
    let path = desk.home().join("kept/out.jsonl");
    wait_for("a record", || std::fs::metadata(&path).is_ok_and(|meta| meta.len() > 0).then_some(()));
    started.interrupt(nix::sys::signal::Signal::SIGINT);
    started.wait().exits(130);
    let calls = std::fs::read_to_string(desk.home().join("calls")).expect("strace's report");
    let of_results = calls.lines().rfind(|line| line.contains("/kept/out.jsonl>")).expect("it was written");
    assert!(of_results.starts_with("fsync"), "{of_results}");
}

/// A standard output that takes nothing, or cannot be written, is no success.
#[test]
#[cfg(target_os = "linux")]
fn what_cannot_be_printed_is_an_error() {
    let desk = Desk::new();
    let run = ["run", "ngrams", "--messages", "20", "--blocks", "1", "--output", "out.jsonl", "ram"];
    desk.run(&run).exits(0);
    let again = [&run[..6], &["ram"]].concat();
    let json = [&again[..], &["--json"]].concat();
    let typed: &[&[&str]] = &[
        &again,
        &json,
        &["show", "out.jsonl"],
        &["show", "out.jsonl", "--csv"],
        &["stores"],
        &["jobs"],
        &["data", "fans"],
        &["--help"],
        &["run", "--help"],
        &["--version"],
        &["compare", "out.jsonl", "out.jsonl"],
    ];
    let fails = |arguments: &[&str], target: &str, why: &str| {
        let script = format!("exec \"$0\" \"$@\" {target}");
        let all = [&["-c", &script, env!("CARGO_BIN_EXE_kvfair")][..], arguments].concat();
        let said = Started::new(desk.command("sh", &all)).wait();
        said.exits(1).complains(&format!("kvfair: cannot write to standard output: {why}"));
    };
    for (target, why) in [(">/dev/full", "No space left on device"), ("1</dev/null", "Bad file descriptor")] {
        for arguments in typed {
            fails(arguments, target, why);
        }
    }
    // It takes as long as all others.
    fails(&["check", "ram"], ">/dev/full", "No space left on device");
}
