//! `kvfair growth` beside other programs: real stores are not blamed.

use serde_json::Value;

use crate::common::desk::{Desk, Said};
use crate::common::load::{alone, so_many_spinners};

/// An embedded store and a server at once: each is also load for the other.
#[test]
fn real_stores_are_not_blamed_whatever_else_the_machine_does() {
    let _alone = alone();
    let desk = Desk::new();
    let spinners = so_many_spinners(&desk, 1);
    let targets = ["lmdb", "redis+unix"];
    let grown: Vec<(String, Said)> = std::thread::scope(|scope| {
        let desk = &desk;
        let grown = targets.map(|target| scope.spawn(move || grown(desk, target)));
        grown.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    drop(spinners);
    for (target, (name, said)) in targets.into_iter().zip(&grown) {
        blames_nobody(said);
        shown_again_is_what_it_was(&desk, target, name, said);
    }
    // Before anything is measured.
    let taken = desk.run(&["growth", "ram", "--html", "lmdb.html", "--output", "other.jsonl"]);
    taken.exits(1).complains("lmdb.html is there already");
    assert!(!desk.home().join("other.jsonl").exists());
}

/// The results file, and what was said.
fn grown(desk: &Desk, target: &str) -> (String, Said) {
    let (file, page) = (format!("{target}.jsonl"), format!("{target}.html"));
    let measured = |budget: &str, file: &str| {
        desk.run(&["growth", target, "--budget", budget, "--json", "--output", file, "--html", &page])
    };
    let said = measured("30s", &file);
    // On a slow machine the pilots tell that it is not enough, and what is.
    let Some((_, hint)) = said.err.split_once("hint: --budget ") else { return (file, said) };
    let enough = hint.split_whitespace().next().expect("a budget");
    let _ = std::fs::remove_file(desk.home().join(&page));
    let longer = format!("longer-{file}");
    let said = measured(enough, &longer);
    (longer, said)
}

fn blames_nobody(said: &Said) {
    let json: Value = serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{}{}", said.out, said.err));
    let grown = json["rows"].as_array().expect("rows");
    let blamed: Vec<&Value> = grown.iter().filter(|one| one["verdict"] == "out_of_proportion").collect();
    assert!(blamed.is_empty(), "{blamed:?}");
    assert_eq!(grown.len(), 8, "four sizes, set and get");
    let unclear: Vec<&Value> = grown.iter().filter(|one| one["verdict"].is_object()).collect();
    said.exits(if unclear.is_empty() { 0 } else { 6 });
    for one in unclear {
        assert!(one["verdict"]["unclear"].as_str().is_some_and(|why| why.len() > 9), "{one}");
    }
}

/// The file tells all that the command told.
fn shown_again_is_what_it_was(desk: &Desk, target: &str, file: &str, said: &Said) {
    let [page, again] = ["", "again-"].map(|place| format!("{place}{target}.html"));
    said.complains(&format!("page: {page}"));
    let shown = desk.run(&["show", file, "--json", "--html", &again]);
    assert_eq!((shown.out.as_str(), shown.code), (said.out.as_str(), said.code), "{}", shown.err);
    let read = |name: &str| std::fs::read_to_string(desk.home().join(name)).expect(name);
    assert!(read(&page) == read(&again), "{}", read(&again));
    let text = desk.run(&["show", file]);
    assert_eq!(text.code, said.code);
    text.shows("growth: the CPU of client and server as n grows, seed ").shows(target);
}
