//! Hints: what a message proposes works in the situation that prints it. A table has them, and a scan of the sources
//! misses those that are in no test.

mod exceptions;
mod files;
mod hosts;
mod literals;
mod network;
mod options;
mod scan;
mod table;
mod targets;

use kvfair::model::trial::Transport;

use crate::cli::strangers::{SECRET, ask, port_of};
use crate::common;
use crate::common::desk::{Desk, Said, one_line};

/// The command behind `lead` in a text that is wrapped: up to the end, or to what cannot belong to it.
fn proposed(text: &str, lead: &str) -> String {
    let (_, rest) = text.rsplit_once(lead).unwrap_or_else(|| panic!("no '{lead}' in {text}"));
    let rest = one_line(rest);
    rest.split(['`', ';']).next().unwrap_or_default().trim().to_string()
}

/// Runs a command line as a shell does.
fn as_typed(desk: &Desk, line: &str) -> Said {
    let rest = line.strip_prefix("kvfair ").unwrap_or_else(|| panic!("no command: {line}"));
    let line = format!("exec '{}' {rest}", env!("CARGO_BIN_EXE_kvfair"));
    crate::common::desk::Started::new(desk.command("/bin/sh", &["-c", &line])).wait()
}

/// What its owner has set is not known of a server by URL: it may refuse the level.
#[test]
fn no_durability_level_is_proposed_for_a_server_that_refuses_it() {
    let server = common::start("redis", Transport::Tcp);
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}", port_of(&server));
    let small = ["run", "ngrams", "--messages", "20", "--clients", "2", "--blocks", "1"];
    let said = desk.run(&[&small[..], &[&url]].concat());
    assert_eq!(proposed(said.exits(0).out.as_str(), "next: "), "kvfair show --wide");
    as_typed(&desk, "kvfair show --wide").exits(0);
    let crash = desk.run(&[&small[..], &["--durability", "crash", &url]].concat());
    crash.exits(1).shows("which does not keep 'crash'");
    // A server that kvfair starts keeps it.
    let said = desk.run(&[&small[..], &["redis"]].concat());
    let next = proposed(said.exits(0).out.as_str(), "next: ");
    assert!(next.contains("--durability crash"), "{next}");
    as_typed(&desk, &next).exits(0);
}

/// No other target would be left.
#[test]
fn the_only_target_is_not_proposed_to_be_left_out() {
    let desk = Desk::new();
    for typed in [&["check", "null"][..], &["run", "lookup", "ram", "--readers", "2"], &["crash", "redis?cluster=3"]] {
        let said = desk.run(typed);
        said.exits(2);
        assert!(!said.err.contains("out") || !said.err.contains("hint: leave"), "{typed:?}: {}", said.err);
    }
    let said = desk.run(&["check", "null", "ram"]);
    said.exits(2).complains("hint: leave this target out");
    desk.run(&["check", "ram"]).exits(0);
}

#[test]
fn stores_that_can_are_stores_that_are_installed() {
    let desk = Desk::with_only(&["redis-server"]);
    let said = desk.run(&["run", "fans", "--via", "cas", "tokyotyrant"]);
    let (_, hint) = said.exits(2).err.split_once("hint: stores that can: ").expect("a hint");
    let names: Vec<&str> = hint.trim().split(", ").collect();
    assert!(names.contains(&"redis") && !names.contains(&"memcached"), "{hint}");
    for name in names {
        desk.run(&["run", "fans", "--via", "cas", "--list", "--blocks", "1", name]).exits(0);
    }
}

#[test]
fn a_server_that_wants_a_password_is_said_so_before_anything_is_made() {
    let server = common::start("redis", Transport::Tcp);
    assert_eq!(ask(&server, &format!("CONFIG SET requirepass {SECRET}")), "+OK");
    let desk = Desk::new();
    let url = format!("redis://127.0.0.1:{}/9", port_of(&server));
    let of_a_limit = format!("redis://127.0.0.1:{}/9?name=mine", port_of(&server));
    for typed in [
        &["run", "ngrams", "--messages", "5", "--blocks", "1", "lmdb", &of_a_limit][..],
        &["run", "ngrams", "--messages", "5", "--blocks", "1", "--accept-unchecked", &url],
        &["run", "--exec", "true", &url],
        &["find-max", "mixed", &url],
        &["compare", "fans", "--base", "redis", "--head", &url],
        &["check", &url],
        &["check", "--accept-unchecked", &url],
    ] {
        let said = desk.run(typed);
        said.exits(1).complains("the server wants a password: KVFAIR_PASSWORD or REDISCLI_AUTH");
        assert!(!said.err.contains("accept-unchecked") && said.out.is_empty(), "{typed:?}: {}{}", said.out, said.err);
    }
    assert!(desk.records().is_empty(), "nothing was run");
    let mut check = desk.kvfair(&["run", "ngrams", "--messages", "5", "--blocks", "1", &url]);
    check.env("REDISCLI_AUTH", SECRET);
    crate::common::desk::Started::new(check).wait().exits(0);
}
