//! What grows out of proportion is found where it was planted, real stores are not blamed, and the budget is kept.

use std::time::{Duration, Instant};

use serde_json::Value;

use crate::common::desk::{Desk, Said, records_in};

/// All growths of one command, of which something may be unclear on a noisy machine.
fn grown(said: &Said) -> Vec<Value> {
    assert!([0, 6].contains(&said.code), "{}\n{}{}", said.code, said.out, said.err);
    serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("no JSON:\n{}{}", said.out, said.err))
}

/// "faulty get batch", of each that is out of proportion.
fn found(grown: &[Value]) -> Vec<String> {
    let is_out = |one: &&Value| one["verdict"] == "out_of_proportion";
    let text = |value: &Value| value.as_str().expect("text").to_string();
    let name = |one: &Value| [&one["target"], &one["part"], &one["over"]].map(text).join(" ");
    grown.iter().filter(is_out).map(name).collect()
}

#[test]
#[ignore = "takes minutes on a quiet machine and up to 17 on a noisy one: cargo test --test cli growth -- --ignored"]
fn planted_faults_are_found_each_where_it_is_within_the_budget() {
    let planted = [
        ("many-square", &["bad get batch"][..]),
        ("value-square", &["bad set value_bytes"]),
        ("keys-square", &["bad get keys"]),
        ("clients-square", &["bad set clients", "bad get clients"]),
    ];
    for (fault, expected) in planted {
        let desk = Desk::new();
        let grown = measured(&desk, &format!("faulty?fault={fault}&name=bad"), expected);
        let is_expected =
            |one: &&Value| expected.iter().any(|name| name.ends_with(one["over"].as_str().expect("text")));
        if grown.iter().filter(is_expected).any(|one| one["verdict"].is_object()) {
            eprintln!("skipped: {fault}: unclear after 3 minutes, the machine has too much else to do");
            continue;
        }
        assert_eq!(found(&grown), expected, "{grown:?}");
        let fits = grown.iter().filter(|one| one["verdict"] == "out_of_proportion").map(|one| &one["fit"]);
        for fit in fits {
            assert!(fit["low"].as_f64() > Some(1.2) && fit["exponent"].as_f64() < Some(2.2), "{fit}");
        }
    }
}

/// A machine with much else to do has few repetitions in a short budget: then a longer one.
fn measured(desk: &Desk, target: &str, expected: &[&str]) -> Vec<Value> {
    let mut all = Vec::new();
    for budget_s in [20, 60, 180] {
        let (budget, file) = (format!("{budget_s}s"), format!("{budget_s}.jsonl"));
        let began = Instant::now();
        let said = desk.run(&["growth", target, "--budget", &budget, "--seed", "1", "--json", "--output", &file]);
        // What is set up and taken down around the last trial comes on top.
        assert!(began.elapsed() < Duration::from_secs(budget_s + 30), "{:?} of {budget}", began.elapsed());
        assert!(!records_in(&desk.home().join(&file)).is_empty(), "what was measured is kept");
        all = grown(&said);
        let found = found(&all);
        assert!(found.iter().all(|one| expected.contains(&one.as_str())), "{}", said.out);
        if found.len() == expected.len() {
            break;
        }
    }
    all
}

#[test]
fn real_stores_are_not_blamed_whatever_else_the_machine_does() {
    let desk = Desk::new();
    let mut spinner = desk.command("sh", &["-c", "while :; do :; done"]).spawn().expect("a shell");
    let files = ["--output", "out.jsonl", "--html", "growth.html"];
    let said = desk.run(&[&["growth", "ram", "lmdb", "redis+unix", "--budget", "15s", "--json"], &files[..]].concat());
    spinner.kill().and_then(|()| spinner.wait()).expect("our own child");
    let grown = grown(&said);
    assert_eq!(found(&grown), Vec::<String>::new(), "{}", said.out);
    assert_eq!(grown.len(), 3 * 8, "three stores, four sizes, set and get");
    for one in grown.iter().filter(|one| one["verdict"].is_object()) {
        assert!(one["verdict"]["unclear"].as_str().is_some_and(|why| why.len() > 9), "{one}");
    }
    shown_again_is_what_it_was(&desk, &said);
}

/// The file tells all that the command told.
fn shown_again_is_what_it_was(desk: &Desk, said: &Said) {
    said.complains("page: growth.html");
    let again = desk.run(&["show", "out.jsonl", "--json", "--html", "again.html"]);
    assert_eq!((again.out.as_str(), again.code), (said.out.as_str(), said.code), "{}", again.err);
    let page = |name: &str| std::fs::read_to_string(desk.home().join(name)).expect(name);
    assert!(page("growth.html") == page("again.html"), "{}", page("again.html"));
    let text = desk.run(&["show", "out.jsonl"]);
    assert_eq!(text.code, said.code);
    text.shows("growth: the CPU of client and server as n grows, seed ").shows("lmdb");
    // Before anything is measured.
    let taken = desk.run(&["growth", "ram", "--html", "growth.html", "--output", "other.jsonl"]);
    taken.exits(1).complains("growth.html is there already");
    assert!(!desk.home().join("other.jsonl").exists());
}

#[test]
fn what_cannot_be_asked_is_refused_or_named() {
    let desk = Desk::new();
    desk.run(&["growth"]).exits(2).complains("<TARGETS>");
    desk.run(&["growth", "redis://localhost:1"]).exits(2).complains("only stores that are started here");
    desk.run(&["growth", "reddis"]).exits(2).complains("did you mean `redis`?");
    desk.run(&["growth", "redis?program=/nowhere/redis-server"])
        .exits(2)
        .complains("/nowhere/redis-server is no program");
    assert!(!desk.home().join("kvfair-results").exists(), "nothing was run");
}
