//! `kvfair growth` beside other programs: real stores are not blamed.

use serde_json::Value;

use crate::common::desk::{Desk, Said};
use crate::common::load::{alone, so_many_spinners};

#[test]
fn real_stores_are_not_blamed_whatever_else_the_machine_does() {
    let _alone = alone();
    let desk = Desk::new();
    let spinners = so_many_spinners(&desk, 1);
    let measured = |budget: &str, file: &str| {
        let files = ["--output", file, "--html", "growth.html"];
        desk.run(&[&["growth", "lmdb", "redis+unix", "--budget", budget, "--json"], &files[..]].concat())
    };
    let (mut file, mut said) = ("out.jsonl", measured("30s", "out.jsonl"));
    // On a slow machine the pilots tell that it is not enough, and what is.
    if let Some((_, hint)) = said.err.split_once("hint: --budget ") {
        let enough = hint.split_whitespace().next().expect("a budget").to_string();
        let _ = std::fs::remove_file(desk.home().join("growth.html"));
        (file, said) = ("longer.jsonl", measured(&enough, "longer.jsonl"));
    }
    drop(spinners);
    let json: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
    let grown = json["rows"].as_array().expect("rows");
    let blamed: Vec<&Value> = grown.iter().filter(|one| one["verdict"] == "out_of_proportion").collect();
    assert!(blamed.is_empty(), "{blamed:?}");
    assert_eq!(grown.len(), 2 * 8, "an embedded store and a server, four sizes, set and get");
    let unclear: Vec<&Value> = grown.iter().filter(|one| one["verdict"].is_object()).collect();
    said.exits(if unclear.is_empty() { 0 } else { 6 });
    for one in unclear {
        assert!(one["verdict"]["unclear"].as_str().is_some_and(|why| why.len() > 9), "{one}");
    }
    shown_again_is_what_it_was(&desk, file, &said);
}

/// The file tells all that the command told.
fn shown_again_is_what_it_was(desk: &Desk, file: &str, said: &Said) {
    said.complains("page: growth.html");
    let again = desk.run(&["show", file, "--json", "--html", "again.html"]);
    assert_eq!((again.out.as_str(), again.code), (said.out.as_str(), said.code), "{}", again.err);
    let page = |name: &str| std::fs::read_to_string(desk.home().join(name)).expect(name);
    assert!(page("growth.html") == page("again.html"), "{}", page("again.html"));
    let text = desk.run(&["show", file]);
    assert_eq!(text.code, said.code);
    text.shows("growth: the CPU of client and server as n grows, seed ").shows("lmdb");
    // Before anything is measured.
    let taken = desk.run(&["growth", "ram", "--html", "growth.html", "--output", "other.jsonl"]);
    taken.exits(1).complains("growth.html is there already");
    assert!(!desk.home().join("other.jsonl").exists());
}
