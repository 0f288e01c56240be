//! `--exec`: a program of the user's as the trial. What it is told, what is counted of it, whether its answers are the
//! same, and that nothing of it is left however it ends.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::Command;

use nix::sys::signal::Signal;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::common;
use crate::common::desk::{Desk, Said, Started, one_line, records_in, signal, wait_for};
use crate::common::needs::{Need, needs, tools};
use kvfair::model::trial::Transport;

/// Runs `--exec` with this command, on these targets and with these options.
fn exec(desk: &Desk, command: &str, others: &[&str]) -> Said {
    Started::new(exec_command(desk, command, others)).wait()
}

fn exec_command(desk: &Desk, command: &str, others: &[&str]) -> Command {
    let mut kvfair = desk.kvfair(&[&["run", "--exec", command][..], others].concat());
    kvfair.env("PYTHONPATH", tools().join("python")).env("NODE_PATH", tools().join("node_modules"));
    kvfair
}

/// Whether that command can be run and ends well.
fn works(program: &str, arguments: &[&str]) -> bool {
    let done = Command::new(program).args(arguments).env("NODE_PATH", tools().join("node_modules")).output();
    done.is_ok_and(|done| done.status.success())
}

fn of_the_project(file: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(file).display().to_string()
}

fn hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

fn run_of(record: &Value) -> Value {
    let phases = record["phases"].as_array().expect("phases");
    phases.iter().find(|phase| phase["name"] == "run").expect("a run").clone()
}

/// A real program by real client libraries gives the straight calculation's answer from every store, over every way.
#[test]
fn fans_in_python_are_the_same_from_every_store() {
    needs!(Need::tool("python/redis"), Need::tool("python/pymemcache"));
    let desk = Desk::new();
    let data = desk.run(&["data", "fans", "--profiles", "40"]);
    desk.file("profiles.jsonl", &data.exits(0).out);
    let straight = desk.command("python3", &[&of_the_project("tests/golden/fans.py"), "profiles.jsonl"]);
    let straight = Started::new(straight).wait();
    let command = format!("python3 {} {{url}} profiles.jsonl", of_the_project("examples/languages/fans.py"));
    let targets = ["redis", "redis+unix", "valkey", "memcached", "memcached+unix"];
    let said = exec(&desk, &command, &[&["--blocks", "1", "--output", "one.jsonl"], &targets[..]].concat());
    said.exits(0).shows("{url} profiles.jsonl` · data fits in memory").shows(" answers right").shows("CPU s");
    let records = records_in(&desk.home().join("one.jsonl"));
    assert_eq!(records.len(), targets.len());
    for record in records {
        let answered = &record["verdict"];
        let digest = (answered["kind"].as_str(), answered["sha256"].as_str());
        assert_eq!(digest, (Some("answered"), Some(hex(straight.out.as_bytes()).as_str())), "{}", record["target"]);
        assert_eq!(answered["ends"], straight.out.lines().next_back().expect("a line"));
        let run = run_of(&record);
        let client_s = run["client"]["user_s"].as_f64().unwrap() + run["client"]["system_s"].as_f64().unwrap();
        let server_s = run["server"]["user_s"].as_f64().unwrap() + run["server"]["system_s"].as_f64().unwrap();
        let took_s = run["took_s"].as_f64().unwrap();
        assert!(0.03 < client_s && client_s < took_s && server_s > 0.0, "{client_s} + {server_s} in {took_s} s");
        // Python with a client library; the supervisor's own memory would be some MB without it.
        assert!(record["memory"]["client"]["anonymous_bytes"].as_u64().unwrap() > 5_000_000);
        assert!(record["memory"]["server"]["anonymous_bytes"].as_u64().unwrap() > 500_000);
        assert!(record["store_stats"].as_object().is_some_and(|said| !said.is_empty()), "the server's own counters");
    }
    desk.run(&["show", "one.jsonl"]).exits(0).shows(&one_line(&said.out));
    desk.run(&["show", "one.jsonl", "--wide", "--csv"]).exits(0);
    let all = desk.run(&["show", "one.jsonl", "--all"]);
    let trials = records_in(&desk.home().join("one.jsonl")).len();
    assert_eq!(
        all.exits(0).out.matches(" MB + ").count(),
        trials,
        "the program's memory and the server's:\n{}",
        all.out
    );
    desk.run(&["compare", "one.jsonl", "one.jsonl"]).exits(0).shows("target seconds CPU");
}

/// The same program in other languages, with their usual clients.
#[test]
fn fans_in_php_and_node_give_the_same_answer() {
    let desk = Desk::new();
    let data = desk.run(&["data", "fans", "--profiles", "40"]);
    let mut profiles = data.exits(0).out.clone();
    // Names that are numbers, and two that UTF-8 and UTF-16 put in different orders.
    profiles.push_str(r#"{"user": "odd", "likes": ["7", "42", "tea \"x\"", "\ud83c\udf75", "\uff5e", "a/b"]}"#);
    desk.file("profiles.jsonl", profiles);
    let straight = desk.command("python3", &[&of_the_project("tests/golden/fans.py"), "profiles.jsonl"]);
    let straight = Started::new(straight).wait();
    let redis = &["redis", "redis+unix", "valkey"][..];
    let every = &["redis", "redis+unix", "valkey", "memcached", "memcached+unix"][..];
    let has_php = works("php", &["-r", "exit(extension_loaded('redis') && extension_loaded('memcached') ? 0 : 1);"]);
    let has_node = works("node", &["-e", "require('ioredis')"]);
    needs!(
        Need::new("PHP with redis and memcached", has_php, "./test installs them"),
        Need::new("node with ioredis", has_node, "./test installs it"),
    );
    for (program, file, targets) in
        [("php", "examples/languages/fans.php", every), ("node", "examples/languages/fans.js", redis)]
    {
        let command = format!("{program} {} {{url}} profiles.jsonl", of_the_project(file));
        let output = format!("{program}.jsonl");
        exec(&desk, &command, &[&["--blocks", "1", "--output", &output], targets].concat()).exits(0);
        let records = records_in(&desk.home().join(output));
        assert_eq!(records.len(), targets.len());
        for record in records {
            assert_eq!(record["verdict"]["sha256"], hex(straight.out.as_bytes()), "{program} on {}", record["target"]);
        }
    }
}

#[test]
fn who_answers_otherwise_is_found() {
    let desk = Desk::new();
    let odd = "test $KVFAIR_TARGET = memcached && echo 41 || echo 42";
    let said = exec(&desk, odd, &["--blocks", "2", "redis", "memcached", "lmdb"]);
    said.exits(4)
        .shows("memcached FAILED: another answer: sha256")
        .shows("(41); expected sha256")
        .shows("(42) as lmdb, redis gave");
    said.shows("The answers differ: memcached cannot be compared.");
    assert_eq!(desk.records().len(), 5, "who is wrong is not run again");
    desk.run(&["show"]).exits(4).shows("memcached FAILED: another answer");
    assert_eq!(desk.record("memcached")["verdict"]["ends"], "41");

    let two = exec(&desk, odd, &["--blocks", "2", "--output", "two.jsonl", "memcached", "sqlite"]);
    two.exits(4).shows("kvfair cannot tell which is right: sha256").shows("(41) from memcached; sha256");
    assert_eq!(records_in(&desk.home().join("two.jsonl")).len(), 2, "there is nothing left to be run");
    exec(&desk, odd, &["--blocks", "1", "--answer", "none", "memcached", "sqlite"])
        .exits(0)
        .shows("none was asked for");

    let said = exec(&desk, "echo >>runs; wc -l <runs", &["--blocks", "3", "sqlite"]);
    said.exits(4).shows("(1) in block 1, sha256").shows("(2) in block 2; expected the same in every block");
}

#[test]
fn a_command_that_fails_says_why_and_the_others_are_kept() {
    let desk = Desk::new();
    let fails = r"echo begun; test $KVFAIR_TARGET != sqlite || { printf 'no\033[31m\n\nway\n' >&2; exit 7; }";
    let said = exec(&desk, fails, &["--blocks", "2", "lmdb", "sqlite"]);
    said.exits(1)
        .shows(r"sqlite failed: the command ended with exit code 7; its last lines: no\u{1b}[31m | way | begun");
    assert_eq!(desk.records().iter().filter(|record| record["outcome"]["kind"] == "finished").count(), 2, "lmdb's two");
    let said = exec(&desk, "no-such-program {dir}", &["--blocks", "1", "lmdb"]);
    said.exits(1).shows("exit code 127").shows("no-such-program");
    exec(&desk, "kill -SEGV $$", &["--blocks", "1", "lmdb"])
        .exits(1)
        .shows("killed by SIGSEGV; its last lines: it said nothing");
}

#[test]
fn what_means_nothing_is_a_usage_error() {
    let typed: &[(&[&str], &str)] = &[
        (&["--exec", "x {port}", "redis", "redis+unix"], "--exec: redis+unix has no {port}: it is reached over unix"),
        (
            &["--exec", "x {socket}", "redis"],
            "redis has no {socket}: it is reached over tcp hint: it has {host}, {port}",
        ),
        (&["--exec", "x {url}", "lmdb"], "lmdb has no {url}: it has no server"),
        (&["--exec", "x", "--answer", "{socket}/a", "redis"], "--answer: redis has no {socket}"),
        (&["--exec", " ", "redis"], "the command is empty"),
        (&["--exec", "x"], "no target is named"),
        (&["--exec", "x", "redis", "--profiles", "5"], "--profiles is an option of jobs"),
        (&["--exec", "x", "redis", "--clients", "5"], "--clients is an option of jobs"),
        (&["--exec", "x", "redis", "--rate", "5"], "--rate is an option of jobs"),
        (&["--exec", "x", "redis", "--input", "x"], "--input is an option of jobs"),
        (&["--exec", "x", "fans", "redis"], "there is no store 'fans'"),
        (&["--exec", "x", "ram"], "ram is a part of kvfair"),
        (&["--exec", "x", "cached:redis"], "the cache is in kvfair's own client"),
        (&["--exec", "x", "lmdb:/data"], "--exec begins with an empty store"),
        (&["--exec", "x", "lmdb", "--durability", "crash"], "lmdb is opened by the program"),
        (&["--exec", "x", "redis", "redis"], "two targets are called 'redis'"),
        (&["fans", "redis", "--answer", "none"], "--exec <CMD>"),
        (&[], "required arguments"),
    ];
    let desk = Desk::new();
    for (arguments, words) in typed {
        let said = desk.run(&[&["run"][..], arguments].concat());
        said.exits(2).complains(words);
        assert_eq!(said.out, "", "{arguments:?}");
    }
    desk.run(&["find-max", "--exec", "x", "redis"]).exits(2).complains("--exec is no option of find-max");
    assert!(desk.records().is_empty() && !desk.home().join("kvfair-results").exists(), "nothing was run");
    let said = exec(&desk, "x", &["--blocks", "1", "--list", "redis", "lmdb"]);
    said.exits(0).shows("exec on redis").shows("exec on lmdb");
}

/// An embedded store is the program's to open: it finds an empty directory in every trial, and what it leaves there is
/// the store's room on disk.
#[test]
fn an_embedded_store_is_in_the_programs_own_directory() {
    let desk = Desk::new();
    let script = "import os, sqlite3, sys\n\
        print(os.listdir(sys.argv[1]))\n\
        store = sqlite3.connect(sys.argv[1] + '/db')\n\
        store.execute('create table t (k)')\n\
        store.executemany('insert into t values (?)', [('x' * 100,)] * 1000)\n\
        store.commit()\n\
        open(sys.argv[1] + '/answer', 'w').write(str(store.execute('select count(*) from t').fetchone()[0]))\n";
    desk.file("mine.py", script);
    let said = exec(
        &desk,
        "python3 mine.py {dir}",
        &["--blocks", "2", "--answer", "{dir}/answer", "--keep", "kept", "sqlite"],
    );
    said.exits(0).shows("last line 1000").complains("kept: kept/sqlite");
    assert!(desk.home().join("kept/sqlite/db").is_file());
    let record = desk.record("sqlite");
    assert_eq!(record["verdict"]["sha256"], hex(b"1000"));
    assert!(record["bytes_on_disk"].as_u64().is_some_and(|bytes| bytes > 100_000), "{}", record["bytes_on_disk"]);
    assert!(record["store"].is_null() && record["phases"][0]["server"].is_null(), "no server and no opening of ours");
    exec(&desk, "ls -A {dir}", &["--blocks", "2", "sqlite", "redis"]).exits(0).shows("bytes 0");
    // A file that was there before is nobody's answer.
    desk.file("old", "42");
    let said = exec(&desk, "true", &["--blocks", "1", "--answer", "old", "sqlite"]);
    said.exits(1).shows("--answer old: is as it was before: the command has not written it");
    exec(&desk, "true", &["--blocks", "1", "--answer", "{dir}/no", "sqlite"]).exits(1).shows("No such file");
}

/// CPU of children that were reaped by their parents, and of those whose parents did not wait for them.
#[test]
fn the_cpu_of_all_descendants_is_counted() {
    let desk = Desk::new();
    let busy = "import sys, time\nwhile time.process_time() < float(sys.argv[1]): pass\nopen(sys.argv[2], 'w')\n";
    desk.file("busy.py", busy);
    // One that is waited for by its own parent, one in a session of its own that nobody waits for, and one that never
    // ends by itself.
    let command = "rm -f done*; sh -c 'sh -c \"python3 busy.py 0.4 done1; true\"; true'; \
        sh -c 'setsid python3 busy.py 0.3 done2 &'; until test -e done2; do sleep 0.01; done; \
        sh -c 'setsid sleep 1000 &'";
    exec(&desk, command, &["--blocks", "1", "lmdb"]).exits(0);
    let client = &run_of(&desk.record("lmdb"))["client"];
    let cpu_s = client["user_s"].as_f64().unwrap() + client["system_s"].as_f64().unwrap();
    assert!((0.7..1.3).contains(&cpu_s), "{cpu_s}");
}

#[test]
fn a_time_out_takes_everything_along() {
    let desk = Desk::new();
    // An orphan, one beside, and one below a session of its own.
    let command = "echo waiting >&2; sh -c 'setsid sleep 1000 &'; sleep 1001 & setsid sh -c 'sleep 1002; true'; true";
    let said = exec(&desk, command, &["--blocks", "1", "--timeout", "1s", "lmdb"]);
    let ended = "the command did not end within 1 s (--timeout); its last lines: waiting";
    said.exits(1).shows(&format!("lmdb failed: {ended}"));
    desk.no_process_is_left();
}

/// Sleepers in sessions of their own, which no signal to a group reaches.
const SLEEPS: &str = "sh -c 'setsid sleep 1000 & exec setsid sleep 1001'; true";

fn two_asleep(desk: &Desk) {
    wait_for("two sleepers", || (desk.processes_named("sleep").len() == 2).then_some(()));
}

#[test]
fn a_kill_9_leaves_no_process_and_the_next_run_removes_its_files() {
    let desk = Desk::new();
    let started = Started::new(exec_command(&desk, SLEEPS, &["--blocks", "1", "redis"]));
    two_asleep(&desk);
    signal(started.id(), Signal::SIGKILL);
    started.wait().exits(-1);
    desk.no_process_is_left();
    assert_eq!(desk.scratch().len(), 1, "there is something to be swept");
    exec(&desk, "true", &["--blocks", "1", "lmdb"]).exits(0);
}

#[test]
fn ctrl_c_ends_the_program_and_keeps_what_was_finished() {
    let desk = Desk::new();
    let command = format!("test $KVFAIR_TARGET = lmdb || {{ {SLEEPS}; }}");
    let options = ["--blocks", "1", "--seed", "1", "--output", "out.jsonl", "lmdb", "redis"];
    let started = Started::new(exec_command(&desk, &command, &options));
    two_asleep(&desk);
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130).complains("interrupted;");
    desk.no_process_is_left();
}

/// If its supervisor dies, all that it has started goes with it: what has kept to its group, sessions of their own, and
/// what knows nothing of us any more.
#[test]
fn a_supervisor_that_is_killed_is_a_failed_trial_and_leaves_nothing() {
    let unknowing = "env -i sh -c '(setsid sleep 1000 >/dev/null 2>&1 </dev/null &) &'; sleep 1001";
    for command in ["sleep 1000; true", SLEEPS, unknowing] {
        let desk = Desk::new();
        let options = ["--blocks", "1", "--seed", "1", "--output", "out.jsonl", "lmdb", "sqlite"];
        // The second trial takes a second: by then nothing of the first is there.
        let command = format!("test -e once && exec python3 -c 'import time; time.sleep(1)'; touch once; {command}");
        let started = Started::new(exec_command(&desk, &command, &options));
        let sleepers = || desk.processes_named("sleep");
        wait_for("sleepers", || (sleepers().len() == command.matches(" 100").count()).then_some(()));
        desk.trials().into_iter().for_each(|supervisor| signal(supervisor, Signal::SIGKILL));
        wait_for("the first record", || {
            std::fs::read_to_string(desk.home().join("out.jsonl")).ok().filter(|text| !text.is_empty())
        });
        assert_eq!(sleepers(), Vec::<u32>::new(), "{command}");
        started.wait().exits(1).shows("the trial's process died: killed by SIGKILL");
    }
}

/// What a program writes may be more than there is memory.
#[test]
fn much_output_is_hashed_as_it_comes() {
    let desk = Desk::new();
    let bytes = 50_000_000;
    let command = format!("head -c {bytes} /dev/zero; head -c 1000000 /dev/zero >&2; sleep 0.3");
    let started = Started::new(exec_command(&desk, &command, &["--blocks", "1", "lmdb"]));
    let most_kb = wait_for("the sleep after all was written", || {
        let supervisor = *desk.trials().first()?;
        desk.processes_named("sleep").first()?;
        let status = std::fs::read_to_string(format!("/proc/{supervisor}/status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().to_string();
        line.trim_end_matches(" kB").parse::<u64>().ok()
    });
    started.wait().exits(0);
    assert!(most_kb < 45_000, "{most_kb} kB");
    let record = desk.record("lmdb");
    let client = &run_of(&record)["client"];
    let cpu_s = client["user_s"].as_f64().unwrap() + client["system_s"].as_f64().unwrap();
    // Whoever hashes it takes longer, in a debug build by far.
    assert!(cpu_s < 0.3, "{cpu_s}");
    let verdict = &record["verdict"];
    assert_eq!(
        (verdict["bytes"].as_u64(), verdict["sha256"].as_str()),
        (Some(bytes), Some(hex(&vec![0; bytes as usize]).as_str()))
    );
    assert!(verdict.to_string().len() < 2_000, "{verdict}");
}

/// A store by URL: empty before, and the program must leave it so. Its password is in one variable and nowhere
/// else.
#[test]
fn a_guest_leaves_nothing_and_tells_no_password() {
    let running = common::start_set("redis", Transport::Tcp, Default::default(), &[]);
    let port = running.launch.place.to_string();
    let admin = |words: &[&str]| {
        let (host, port) = port.rsplit_once(':').expect("a port");
        let said = Command::new("redis-cli").args(["-h", host, "-p", port]).args(words).output();
        String::from_utf8_lossy(&said.expect("redis-cli").stdout).trim().to_string()
    };
    assert_eq!(admin(&["CONFIG", "SET", "requirepass", "s3cr et"]), "OK");
    let desk = Desk::new();
    let url = format!("redis://:s3cr%20et@{port}/3");
    let run = |command: &str, blocks: &str| {
        let mut kvfair = exec_command(&desk, command, &["--blocks", blocks, &url]);
        // For redis-cli, which takes no password out of a variable with a URL in it.
        kvfair.env("REDISCLI_AUTH", "s3cr et");
        Started::new(kvfair).wait()
    };
    let looks = "echo $KVFAIR_URL >url; for one in /proc/[0-9]*/cmdline; do tr '\\0\\n' '  ' <$one; echo; done 2>/dev/null >ps; \
                 echo {url} $KVFAIR_URL; ";
    let said = run(&format!("{looks} redis-cli -u {{url}} set left behind >&2; exit 3"), "1");
    said.exits(1).shows("exit code 3").shows(&format!("redis://{port}/3 redis://***@{port}/3"));
    said.shows("it left 1 record at").shows("it must delete them itself");
    let read = |name: &str| std::fs::read_to_string(desk.home().join(name)).expect("the program's file");
    assert_eq!(read("url").trim(), format!("redis://:s3cr%20et@{port}/3"));
    // What was typed into kvfair's own command line is the user's to hide.
    let ps: Vec<String> =
        read("ps").lines().filter(|line| !line.contains(" run --exec ")).map(str::to_string).collect();
    assert!(ps.iter().any(|line| line.contains("/bin/sh -c echo")), "{ps:?}");
    for text in [said.out, said.err, format!("{:?}", desk.records()), ps.join("\n")] {
        assert!(!text.contains("s3cr"), "{text}");
    }
    let said = run("true", "1");
    said.exits(1).shows("refused").shows("holds 1 record that is not ours");
    let clean = "redis-cli -u {url}";
    assert_eq!(admin(&["-a", "s3cr et", "--no-auth-warning", "-n", "3", "DEL", "left"]), "1");
    run(&format!("{clean} set a 1; {clean} del a"), "2").exits(0).shows("last line 1");
}

#[test]
fn runs_of_different_commands_are_never_held_against_each_other() {
    let desk = Desk::new();
    for (command, answer, file) in [("echo 1", "stdout", "a"), ("echo 2", "stdout", "b"), ("echo 1", "none", "c")] {
        exec(&desk, command, &["--blocks", "1", "--output", file, "--answer", answer, "lmdb", "sqlite"]).exits(0);
    }
    desk.run(&["compare", "a", "b"]).exits(0).shows("another command: `echo 1`, answer stdout and `echo 2`, answer");
    desk.run(&["compare", "a", "c"]).exits(0).shows("another command");
    let mixed = ["a", "b"].map(|file| std::fs::read_to_string(desk.home().join(file)).expect("records")).concat();
    desk.file("mixed", mixed);
    desk.run(&["show", "mixed"]).exits(1).complains("mixed:3: another command");
}
