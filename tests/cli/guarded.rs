//! Servers of our own over TCP let nobody else in: each start has a password of its own, and no list of processes,
//! record or file that others can read shows it.
#![cfg(target_os = "linux")]

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use kvfair::model::trial::Durability;
use kvfair::stores::{self, Launch, Place};
use nix::sys::signal::Signal;

use crate::common::desk::{Desk, Started, command_line, wait_for};
use crate::common::launch_at;
use crate::common::needs::servers_here;

/// Stores that take a password, their server's process and how its command line tells its port.
const GUARDED: [(&str, &str, &str); 4] = [
    ("redis", "redis-server", " 127.0.0.1:"),
    ("valkey", "valkey-server", " 127.0.0.1:"),
    ("mariadb", "mariadbd", "--port="),
    ("postgres", "postgres", "port="),
];

/// What that server says to who knows no password, and to who guesses one.
fn turned_away(store: &str, port: u16) -> [String; 2] {
    let place = Place::Tcp { host: "127.0.0.1".to_string(), port };
    [None, Some("guess".to_string())].map(|password| {
        let launch = launch_at(place.clone(), Durability::None);
        let launch = Launch { login: stores::Login { password, ..launch.login.clone() }, ..launch };
        let opened = (stores::find(store).expect("it is known").open)(&launch).and_then(|store| store.facts());
        opened.expect_err("none is let in").to_string()
    })
}

fn port_in(desk: &Desk, server: &str, option: &str) -> Option<u16> {
    let lines = desk.processes_named(server).into_iter().map(command_line);
    let ports = lines.filter_map(|line| line.split_once(option)?.1.split(['\0', ' ']).next()?.parse().ok());
    ports.into_iter().find(|port| *port > 0)
}

#[test]
fn a_server_over_tcp_lets_nobody_else_in() {
    let here = servers_here(&GUARDED.each_ref().map(|(store, ..)| *store));
    for (store, server, option) in GUARDED.iter().filter(|(store, ..)| here.contains(store)) {
        lets_nobody_else_in(store, store, server, option);
    }
}

/// While a trial of `target` runs, its server's process `server`, whose command line has its port behind `option`,
/// turns others away.
pub fn lets_nobody_else_in(target: &str, store: &str, server: &str, option: &str) {
    let desk = Desk::new();
    let slow = ["run", "mixed", "--records", "10", "--rate", "20", "--requests", "2000", "--blocks", "1"];
    let started = Started::new(desk.kvfair(&[&slow[..], &["--output", "out.jsonl", target]].concat()));
    wait_for("the trial", || desk.trials().first().copied());
    let port = port_in(&desk, server, option).expect("the trial's server");
    let refusals = match store {
        "mariadb" => ["Access denied"; 2],
        "postgres" => ["password missing", "password authentication failed"],
        _ => ["NOAUTH", "WRONGPASS"],
    };
    for (words, refusal) in turned_away(store, port).iter().zip(refusals) {
        assert!(words.contains(refusal), "{store}: {words}");
    }
    started.interrupt(Signal::SIGINT);
    started.wait().exits(130);
}

/// All files below, with what they hold.
fn files(directory: &Path) -> Vec<(std::path::PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten().map(|entry| entry.path());
    entries
        .flat_map(|path| if path.is_dir() { files(&path) } else { vec![(path.clone(), fs::read(&path).unwrap())] })
        .collect()
}

/// The password as the server is told it; and that each start has another, `KVFAIR_PASSWORD` never being one.
#[test]
fn a_password_is_fresh_and_told_to_nobody_else() {
    let desk = Desk::new();
    let told = desk.tmp().join("../told");
    desk.wrap("redis-server", &format!("cat >in; cat in >>{0}; exec \"$real\" \"$@\" <in", told.display()));
    let mut kvfair =
        desk.kvfair(&["run", "fans", "--profiles", "100", "--blocks", "3", "--output", "out.jsonl", "redis"]);
    kvfair.env("KVFAIR_PASSWORD", "of-somebody-else");
    let mut started = Started::new(kvfair);
    let (mut seen, mut environments) = (String::new(), Vec::new());
    while started.is_running() {
        for pid in desk.processes() {
            seen.push_str(&command_line(pid));
        }
        // A child that is not a program of its own yet still has what kvfair was given.
        for pid in desk.processes_named("redis-server") {
            environments.extend(fs::read(format!("/proc/{pid}/environ")).unwrap_or_default());
        }
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
    let said = started.wait();
    said.exits(0);
    let told = fs::read_to_string(&told).expect("what servers were told");
    let passwords: Vec<&str> = told.lines().filter_map(|line| line.strip_prefix("requirepass ")).collect();
    assert_eq!((passwords.len(), passwords.iter().collect::<BTreeSet<_>>().len()), (3, 3), "{told}");
    assert!(seen.contains("\0--port\0"), "its command line was seen");
    let environments = String::from_utf8_lossy(&environments);
    assert!(environments.contains("TMPDIR="), "an environment was seen");
    for password in passwords.into_iter().chain(["of-somebody-else"]) {
        assert!(password.len() >= 16);
        assert!(!seen.contains(password), "{password} is in a command line");
        assert!(!environments.contains(password), "{password} is in an environment");
        assert!(!said.out.contains(password) && !said.err.contains(password));
        for (path, bytes) in files(&desk.home()) {
            assert!(!String::from_utf8_lossy(&bytes).contains(password), "{}", path.display());
        }
    }
    assert!(!told.contains("of-somebody-else"));
}

#[test]
fn kept_data_notes_its_password_for_its_owner() {
    let desk = Desk::new();
    for store in servers_here(&GUARDED.each_ref().map(|(store, ..)| *store)) {
        let run =
            ["run", "fans", "--profiles", "60", "--blocks", "1", "--durability", "crash", "--keep", "kept", store];
        desk.run(&run).exits(0);
        let note = desk.home().join("kept").join(store).join("kvfair-password");
        assert_eq!(note.metadata().expect("a note").permissions().mode() & 0o777, 0o600);
        let password = fs::read_to_string(&note).expect("a note").trim().to_string();
        assert!(password.len() >= 16, "{password}");
        desk.run(&["query", &format!("{store}:kept/{store}"), "Michael Jackson"]).exits(0).shows("fans");
        let second = fs::read_to_string(&note).expect("a note").trim().to_string();
        assert_ne!(second, password, "another start, another password");
        let files = files(&desk.home().join("kept").join(store));
        assert!(files.iter().any(|(path, _)| *path == note), "{files:?}");
        for (path, bytes) in files {
            let mode = path.metadata().expect("a file").permissions().mode();
            let text = String::from_utf8_lossy(&bytes);
            let holds = text.contains(&password) || text.contains(&second);
            assert!(!holds || mode & 0o077 == 0, "{} has mode {mode:o}", path.display());
        }
    }
}

/// A program of the user's knows no password, and a database is what it was before.
#[test]
fn a_program_of_the_users_needs_none() {
    let desk = Desk::new();
    let command = "test -z \"$(echo {url} | grep @)\" && redis-cli -u {url} ping";
    let mut kvfair = desk.kvfair(&["run", "--exec", command, "--blocks", "1", "redis", "valkey"]);
    kvfair.env("KVFAIR_PASSWORD", "of-somebody-else");
    Started::new(kvfair).wait().exits(0).shows("last line PONG");
}
