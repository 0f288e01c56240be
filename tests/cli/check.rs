//! `kvfair check`: every fault that has cost somebody days is found and told with what was sent and what came, good
//! stores pass, and nobody's store is touched but below our own name.

#[path = "check/broken_clients.rs"]
pub mod broken_clients;

use std::time::Duration;

use kvfair::model::op::Op;
use kvfair::model::trial::Transport;

use crate::cli::limits::run_on_disk;
use crate::cli::strangers::{SECRET, ask, ask_info, port_of};
use crate::common;
use crate::common::desk::{Desk, Said, Started, command_line, signal, wait_for};
use crate::common::needs::{Need, needs, servers_here};
use crate::common::pool::{ask_mariadb, ask_postgres};

use broken_clients::unchanged;

/// Clients race for seconds in each check, however fast they are. They leave the processors to other tests.
pub fn checked(desk: &Desk, targets: &[&str]) -> Said {
    let check = ["-n", "10", env!("CARGO_BIN_EXE_kvfair"), "check"];
    Started::new(desk.command("nice", &[&check[..], targets].concat())).wait()
}

/// What the process that asks has noted as its last question, at each target that is being checked.
fn last_asked(desk: &Desk) -> String {
    let below = |folder: std::path::PathBuf| std::fs::read_dir(folder).into_iter().flatten().flatten();
    let targets = below(desk.tmp()).flat_map(|scratch| below(scratch.path()));
    targets.filter_map(|target| std::fs::read_to_string(target.path().join("asked")).ok()).collect()
}

/// Checks targets until several clients count together. The process that asks is killed then: what a probe before that
/// has found is told all the same, and the next target is checked.
fn checked_until_clients_race(desk: &Desk, targets: &[&str]) -> Said {
    let mut started = Started::new(desk.kvfair(&[&["check"][..], targets].concat()));
    let races = || last_asked(desk).contains("kvfair:check:sum:n");
    while started.is_running() {
        if races() {
            let processes = desk.processes();
            let asking: Vec<u32> =
                processes.into_iter().filter(|pid| command_line(*pid).ends_with("\0child\0probe\0")).collect();
            // A process of the next target cannot be among them where this target is still being checked.
            if races() {
                asking.into_iter().for_each(|pid| signal(pid, nix::sys::signal::Signal::SIGKILL));
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    started.wait()
}

/// How targets are checked.
type Check = fn(&Desk, &[&str]) -> Said;

/// Checks faulty stores, and has each told by the probe that is there for it.
#[track_caller]
fn finds(check: Check, faults: &[(&str, &str, &str)]) {
    let desk = Desk::new();
    let name = |place: usize| format!("number-{place}");
    let targets = faults.iter().enumerate();
    let targets: Vec<String> =
        targets.map(|(place, (fault, ..))| format!("faulty?fault={fault}&name={}", name(place))).collect();
    let said = check(&desk, &targets.iter().map(String::as_str).collect::<Vec<_>>());
    said.exits(4);
    let told = crate::common::desk::one_line(&said.out);
    for (place, (fault, probe, came)) in faults.iter().enumerate() {
        let headline = |place| told.find(&format!("{} {} by none: ", name(place), env!("CARGO_PKG_VERSION")));
        let from = headline(place).unwrap_or_else(|| panic!("{fault}: {told}"));
        let lines = &told[from..headline(place + 1).unwrap_or(told.len())];
        assert!(lines.contains(" WRONG ("), "{fault} went unnoticed: {lines}");
        let finding = lines.split("WRONG ").find(|finding| finding.starts_with(&format!("{probe}: sent ")));
        let finding = finding.unwrap_or_else(|| panic!("{fault}: nothing by '{probe}': {lines}"));
        assert!(finding.contains("; came ") && finding.contains(came), "{fault}: no '{came}' in {finding}");
    }
}

#[test]
fn faults_of_sizes_and_bytes_are_found() {
    let faults = [
        ("cut1024", "values of 1,023 to 1,025 bytes", "came 1,024 bytes, not 1,025"),
        ("digits", "values of 999 to 1,001 bytes", "came 100 bytes, not 1,000"),
        ("crlf", "values with protocol text", "to \"\\r\\n\"; get \"kvfair:check:text:k\"; came 0 bytes, not 2"),
        ("tail", "overwriting by shorter and longer", "came 5,000 bytes, not 3"),
        ("swallow", "values of 65,535 to 65,537 bytes", "came 65,536 bytes, not 65,537"),
        ("nul", "keys that look alike", "get \"kvfair:check:alike:a\"; came 3 bytes, not 1"),
    ];
    finds(checked_until_clients_race, &faults);
}

#[test]
fn faults_of_counting_are_found() {
    let faults = [
        ("ninth", "get-many with missing keys", "get-many of 9 keys"),
        ("wrap", "counters past 2^31 and 2^53", "by 1; came -2,147,483,648, not 2,147,483,648"),
        ("clamp", "counters past 2^31 and 2^53", "came 9,007,199,254,740,992, not 9,007,199,254,740,993"),
    ];
    finds(checked_until_clients_race, &faults);
}

#[test]
fn faults_of_time_and_of_several_clients_are_found() {
    let faults = [
        ("lasting", "time to live", "set to live for 1 s; 2.2 s later get"),
        ("both-win", "check-and-set, won and lost", "came done, not conflict"),
        ("crossed", "several clients, each its own keys", "came "),
        ("stray", "values of 9 to 11 bytes", "get \"kvfair:check:10:next\"; came "),
        ("undelete", "delete, then get", "came \"v\", not missing"),
        ("late&after=300", "several clients, each its own keys", "came an answer after 7."),
    ];
    finds(checked_until_clients_race, &faults);
    finds(checked, &[("both-win", "two clients' check-and-set", "done for both in round 1, where one must win")]);
}

/// One target's crash or silence is its own line; the others are checked all the same.
#[test]
fn a_store_that_dies_or_hangs_is_one_target() {
    let desk = Desk::new();
    let of = |fault: &str, name: &str| format!("faulty?fault={fault}&after=503&name={name}");
    let said = desk.run(&["check", &of("die", "dead"), &of("stall", "silent"), &of("die", "another")]);
    said.exits(4).shows("the process that asked died: killed by SIGABRT").shows("came nothing for 30 s");
    // What was asked when it happened is told.
    said.shows("WRONG values of every byte: sent get \"kvfair:check:bytes:k\"; came nothing for 30 s");
    said.shows(&format!("another {} by none: ", env!("CARGO_PKG_VERSION")));
}

/// The store is a server, and goes on: kvfair's own process is killed, as the kernel does where memory is short.
#[test]
#[cfg(target_os = "linux")]
fn a_check_whose_own_process_is_killed_blames_no_store() {
    let desk = Desk::new();
    let started = Started::new(desk.kvfair(&["check", "memcached"]));
    wait_for("a probe", || last_asked(&desk).contains("kvfair:check:").then_some(()));
    let is_probe = |pid: &u32| command_line(*pid).ends_with("\0child\0probe\0");
    desk.processes().into_iter().filter(is_probe).for_each(|pid| signal(pid, nix::sys::signal::Signal::SIGKILL));
    let said = started.wait();
    said.exits(1).shows("could not be").shows("the process that asked died: killed by SIGKILL");
    assert!(!said.out.contains("WRONG"), "{}", said.out);
}

/// The keys that a check writes are noted on disk before.
#[test]
#[cfg(target_os = "linux")]
fn a_check_whose_disk_is_full_blames_no_store() {
    let server = common::start("redis", Transport::Tcp);
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    let said = run_on_disk(&desk, "full", "64k", ": TMPDIR", &["check", &url]);
    said.exits(1).shows("could not be asked: the journal of keys could not be written: No space left on device");
    assert!(!said.out.contains("WRONG"), "{}", said.out);
    assert_eq!(server.open().count().expect("an answer"), Some(0));
}

/// A replica that only reads.
#[test]
fn what_refuses_every_write_could_not_be_asked() {
    let replica = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&replica, "REPLICAOF 127.0.0.1 1"), "+OK");
    let desk = Desk::new();
    let said = desk.run(&["check", &format!("redis://127.0.0.1:{}", port_of(&replica))]);
    said.exits(1).shows("could not be checked: it cannot be asked: set: ").shows("READONLY");
    assert!(!said.out.contains("WRONG"), "{}", said.out);
}

/// Its owner's table has another meaning for the name of ours.
#[test]
fn a_database_whose_owner_has_such_a_table_could_not_be_asked() {
    needs!(Need::server("mariadb"));
    let server = common::start("mariadb", Transport::Tcp);
    ask_mariadb(&server.launch, "CREATE DATABASE owned");
    ask_mariadb(&server.launch, "CREATE TABLE owned.kvfair_records (name INT PRIMARY KEY, price INT)");
    let desk = Desk::new();
    let said = desk.run(&["check", &format!("mariadb://127.0.0.1:{}/owned", port_of(&server))]);
    said.exits(1).shows("could not be checked: it cannot be asked: ").shows("column");
    assert!(!said.out.contains("WRONG"), "{}", said.out);
    let count = ask_mariadb(&server.launch, "SELECT COUNT(*) FROM owned.kvfair_records");
    assert_eq!(count, [[Some("0".to_string())]]);
    needs!(Need::server("postgres"));
    let server = common::start("postgres", Transport::Tcp);
    ask_postgres(&server.launch, "CREATE TABLE kvfair_records (k bytea PRIMARY KEY, v text, n bigint)");
    let said = desk.run(&["check", &format!("postgres://127.0.0.1:{}", port_of(&server))]);
    said.exits(1).shows("could not be checked: it cannot be asked: ").shows("has other columns than ours");
}

#[test]
fn good_stores_are_right_and_say_their_limits() {
    let desk = Desk::new();
    let said = checked(&desk, &["lmdb", "redis+unix", "memcached", "memcached?protocol=binary"]);
    said.exits(0).shows("limit: keys up to 511 bytes; one byte more: lmdb takes keys of 1 to 511 bytes");
    said.shows("limit: values up to 1,048,").shows(" bytes; one byte more: SERVER_ERROR object too large for cache");
    said.shows("keys up to 250 bytes; one byte more: memcached takes keys of at most 250 bytes");
    assert_eq!(said.out.matches("probes, all right (").count(), 4, "{}", said.out);
}

#[test]
fn what_cannot_be_asked_has_its_exit_code() {
    let desk = Desk::with_only(&[]);
    desk.run(&["check", "redis", "ram"]).exits(3).complains("get it: apt install redis-server");
    let said = desk.run(&["check", "ram"]);
    said.exits(0).shows(" probes, all right (");
    said.shows("not asked: ram has no set with a time to live");
    desk.run(&["check", "unix:///no/such/socket"]).exits(1).shows("could not be checked: ").shows("/no/such/socket");
    desk.run(&["check", "null"]).exits(2).complains("null holds nothing on purpose");
    desk.run(&["check", "redsi"]).exits(2).complains("did you mean `redis`?");
}

/// Other keys stay as they are, and none of ours is left.
#[test]
fn a_guest_leaves_nothing_and_touches_nothing() {
    let server = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&server, "SET mine 1"), "+OK");
    assert_eq!(ask(&server, &format!("CONFIG SET requirepass {SECRET}")), "+OK");
    let desk = Desk::new();
    let url = format!("redis://:{SECRET}@127.0.0.1:{}", unchanged(&server));
    let said = desk.run(&["check", &url]);
    said.exits(0).shows("values of 2,097,152 bytes, the largest that was tried").shows("they may have an owner");
    assert!(!said.out.contains(SECRET) && !said.err.contains(SECRET), "{}{}", said.out, said.err);
    let wrong = desk.run(&["check", &url.replace(SECRET, "wr0ng-w0rd")]);
    wrong.exits(1).shows("WRONGPASS");
    assert!(!wrong.out.contains("wr0ng-w0rd") && !wrong.err.contains("wr0ng-w0rd"), "{}{}", wrong.out, wrong.err);
    assert_eq!(ask(&server, "PING"), "-NOAUTH Authentication required.");
    let store = server.open_as(None, Some(SECRET), None);
    assert_eq!(store.count().expect("an answer"), Some(1), "the one that was there");
}

/// The same of databases with tables.
#[test]
fn a_guest_of_a_database_leaves_its_own_records_alone() {
    let desk = Desk::new();
    for name in servers_here(&["postgres", "mariadb", "ferretdb", "cassandra"]) {
        let server = common::start(name, Transport::Tcp);
        let store = server.open();
        let mine = Op::Set { key: b"mine", value: b"1", ttl_s: None };
        common::session(store.as_ref()).ask(&mine).expect("a record of somebody's");
        let said = desk.run(&["check", &format!("{name}://127.0.0.1:{}", unchanged(&server))]);
        said.exits(0).shows("all right").shows("they may have an owner");
        assert_eq!(store.count().expect("an answer"), Some(1), "{name}: the one that was there");
    }
}

/// Directories of somebody's are left empty: else the job would refuse them.
#[test]
fn embedded_stores_by_url_are_left_empty() {
    let desk = Desk::new();
    for name in ["lmdb", "sqlite"] {
        std::fs::create_dir(desk.home().join(name)).expect("a directory");
        checked(&desk, &[&format!("{name}:{name}")]).exits(0);
        desk.run(&["run", "fans", "--profiles", "20", "--blocks", "1", &format!("{name}:{name}")]).exits(0);
    }
}

/// Keys of probes that last: of one client, of replies in pieces, of several clients.
const KEYS: [&str; 3] = ["kvfair:check:largest:value", "kvfair:check:split:small", "kvfair:check:sum:n"];

/// Ctrl-C at any moment: no process, no directory (the desk looks), no key.
#[test]
#[cfg(target_os = "linux")]
fn an_interrupted_check_takes_back_what_it_wrote() {
    let server = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&server, "SET mine 1"), "+OK");
    for key in KEYS {
        let desk = Desk::new();
        let url = format!("redis://127.0.0.1:{}", port_of(&server));
        let started = Started::new(desk.kvfair(&["check", &url]));
        wait_for(key, || (ask(&server, &format!("EXISTS {key}")) == ":1").then_some(()));
        started.interrupt(nix::sys::signal::Signal::SIGINT);
        started.wait().exits(130).complains("interrupted; 0 targets were checked");
        assert_eq!(ask_info(&server), "db0:keys=1", "while there was {key}: nothing of ours is left");
        desk.no_process_is_left();
    }
}

/// What a kill -9 leaves in somebody's store, the next check meets under the same names and deletes.
#[test]
#[cfg(target_os = "linux")]
fn kill_9_leaves_no_process_and_the_next_check_removes_its_keys() {
    let server = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&server, "SET mine 1"), "+OK");
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    for key in KEYS {
        let started = Started::new(desk.kvfair(&["check", &url]));
        wait_for(key, || (ask(&server, &format!("EXISTS {key}")) == ":1").then_some(()));
        signal(started.id(), nix::sys::signal::Signal::SIGKILL);
        started.wait().exits(-1);
        desk.no_process_is_left();
    }
    // However that went, there is something to be removed.
    assert!(ask(&server, "SET kvfair:check:many:3 left").starts_with('+'));
    assert_ne!(ask_info(&server), "db0:keys=1");
    desk.run(&["check", &format!("redis://127.0.0.1:{}", unchanged(&server))]).exits(0);
    assert_eq!(ask_info(&server), "db0:keys=1", "the one that was there");
    assert_eq!(ask(&server, "GET mine"), "$1");
    desk.is_swept();
}
