//! `kvfair levers`: each lever alone and as the last one on a real server, what is refused, and that a file is shown as
//! the run was.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::desk::{Desk, Said, records_in};

const OUT: &str = "levers.jsonl";

/// A small job in few blocks. What they claim depends on the machine.
fn measured(desk: &Desk, job: &[&str], more: &[&str]) -> Said {
    let said = desk.run(&[&["levers"], job, &["--blocks", "4", "--seed", "1", "--output", OUT], more].concat());
    assert!([0, 6].contains(&said.code), "{}\n{}{}", said.code, said.out, said.err);
    said
}

fn labels(records: &[Value], part: &str) -> BTreeSet<String> {
    let of = records.iter().filter(|record| record["levers"]["part"]["kind"] == part);
    of.map(|record| record["target"]["label"].as_str().expect("a label").to_string()).collect()
}

#[test]
fn a_store_is_measured_with_each_lever_and_the_file_shows_the_same() {
    let desk = Desk::new();
    let job = ["fans", "redis", "--profiles", "150"];
    let said = measured(&desk, &job, &["--levers", "transport,via"]);
    let records = records_in(&desk.home().join(OUT));
    let wrong = records.iter().find(|record| record["verdict"]["kind"] != "right");
    assert!(wrong.is_none(), "{wrong:?}");
    // Of two levers all but one is the other one alone.
    let found = labels(&records, "gains");
    assert_eq!(found.len(), 4, "{found:?}");
    assert!(found.contains("redis") && found.contains("redis with unix") && found.contains("redis with all"));
    let via = found.iter().find(|label| label.starts_with("redis with via ")).expect("the best way");
    let run = &records[0]["run"]["levers"];
    let via_of_the_run = run["levers"].as_array().expect("levers").iter().find(|lever| lever["name"] == "via");
    let via_of_the_run = via_of_the_run.expect("the lever");
    assert_eq!(format!("redis with {}", via_of_the_run["change"].as_str().expect("words")), *via);
    assert!(via_of_the_run["tried"].as_array().expect("values").len() >= 2, "{via_of_the_run}");
    for words in ["alone", "as the last one", "unix", "via ", "Together", "left out: appendonly", "left out: cache"] {
        said.shows(words);
    }
    assert!(said.out.lines().skip(2).all(|line| line.chars().count() <= 100), "{}", said.out);
    // Many ops of one key each against one op of the store's own a profile.
    assert!(said.out.contains(" -> "), "no counters:\n{}", said.out);
    let levels = labels(&records, "durability");
    assert_eq!(levels.into_iter().collect::<Vec<_>>(), ["redis"]);
    said.shows("crash: ").shows("power: ");
    let again = desk.run(&["show", OUT]);
    assert_eq!((again.out.as_str(), again.code), (said.out.as_str(), said.code));
    let json: Value = serde_json::from_str(&desk.run(&["show", OUT, "--json"]).out).expect("JSON");
    assert_eq!(json["levers"].as_array().expect("levers").len(), 2);
    assert_eq!(json["durability"].as_array().expect("levels").len(), 3);
    let csv = desk.run(&["show", OUT, "--csv"]);
    assert_eq!(csv.out.lines().count(), 1 + 4, "a row a target:\n{}", csv.out);
}

/// A cache cannot see what a store counts by itself: the two stand alone, and not together.
#[test]
fn levers_that_cannot_be_combined_are_measured_alone_and_say_why() {
    let desk = Desk::new();
    let said =
        measured(&desk, &["fans", "redis+unix?name=r", "--profiles", "150"], &["--levers", "via,cache", "--json"]);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let levers = found["levers"].as_array().expect("levers");
    assert_eq!(levers.len(), 2);
    let native = levers.iter().any(|lever| lever["change"] == "via native");
    let apart = levers.iter().filter(|lever| !lever["not_in_all"].is_null()).collect::<Vec<_>>();
    if native {
        let [apart] = apart.as_slice() else { panic!("{levers:?}") };
        let reason = apart["not_in_all"].as_str().expect("a reason");
        assert!(reason.contains("a cache cannot see that"), "{reason}");
        assert!(apart["alone"].is_object() && apart["last"].is_null(), "{apart}");
        desk.run(&["show", OUT]).shows("cannot be combined");
    } else {
        assert!(apart.is_empty(), "{levers:?}");
    }
}

/// Values that are open name those worth trying, and a list of values is a lever by itself.
#[test]
fn a_setting_of_an_adapter_is_a_lever() {
    let desk = Desk::new();
    let said = measured(&desk, &["ngrams", "memcached", "--messages", "300"], &["--levers", "protocol"]);
    said.shows("protocol=").shows("best in a pilot: protocol=");
    let records = records_in(&desk.home().join(OUT));
    let settings: BTreeSet<String> =
        records.iter().map(|record| record["target"]["settings"]["protocol"].to_string()).collect();
    assert_eq!(settings.len(), 2, "base has none, the lever has the best one: {settings:?}");
}

#[test]
fn what_is_no_lever_or_cannot_be_changed_is_refused_by_name() {
    let desk = Desk::new();
    let levers = |more: &[&str]| desk.run(&[&["levers"], more].concat());
    let unknown = levers(&["fans", "redis", "--levers", "colour"]);
    unknown.exits(2).complains("redis has no such lever for the job fans").complains("transport, via, cache");
    levers(&["fans", "redis", "--levers", "appendfsync"]).exits(2).complains("changes what survives a crash");
    levers(&["fans", "redis://localhost:1"]).exits(2).complains("only stores that are started here are changed");
    levers(&["fans", "ram"]).exits(2).complains("ram is a baseline");
    levers(&["fans", "reddis"]).exits(2).complains("did you mean `redis`?");
    levers(&["fan", "redis"]).exits(2).complains("did you mean `fans`?");
    levers(&["fans"]).exits(2).complains("<STORE>");
    levers(&["getset", "redis", "--clients", "1,5"]).exits(2).complains("levers are compared at one point");
    levers(&["fans", "redis", "--profiles", "10,20"]).exits(2).complains("levers are compared at one point");
    levers(&["fans", "redis", "--via", "batch,native"]).exits(2).complains("the others are levers");
    levers(&["mixed", "redis", "--rate", "5k"]).exits(2).complains("--rate is no option of levers");
    levers(&["fans", "redis", "--csv"]).exits(2).complains("`kvfair show` has it");
    assert!(desk.records().is_empty(), "nothing was run");
    let help = desk.run(&["levers", "--help"]);
    help.exits(0).shows("--levers").shows("--budget").shows("kvfair levers fans redis");
}

#[test]
fn a_store_that_is_not_here_says_so() {
    let desk = Desk::with_only(&[]);
    let said = desk.run(&["levers", "fans", "redis", "--profiles", "50", "--blocks", "4"]);
    said.exits(3).shows("too little was measured");
}

/// The short form: each lever alone, at most five lines, and no set.
#[test]
fn an_advice_is_a_few_lines_with_gain_price_and_command() {
    let desk = Desk::new();
    let advise = ["advise", "fans", "redis", "--profiles", "150", "--blocks", "6", "--output", OUT];
    let said = desk.run(&advise);
    assert!([0, 6].contains(&said.code), "{}\n{}{}", said.code, said.out, said.err);
    let records = records_in(&desk.home().join(OUT));
    let found = labels(&records, "gains");
    assert!(found.len() >= 3 && !found.iter().any(|label| label.contains(" all")), "{found:?}");
    assert!(records.iter().all(|record| record["levers"]["part"]["kind"] == "gains"), "nothing else is measured");
    let advice = said.out.lines().filter(|line| line.starts_with("1. ") || line.starts_with("2. ")).count();
    // Many keys in one question help, but on the busiest machine nothing can be told.
    match advice {
        0 => said.shows("redis: ").shows("via "),
        _ => said.shows("1. via ").shows("; costs ").shows("kvfair levers fans redis --levers via"),
    };
    assert!(!said.out.contains("6. "), "{}", said.out);
    assert_eq!(desk.run(&["show", OUT]).out, said.out);
    desk.run(&["advise", "fans", "redis", "--csv"]).exits(2).complains("`kvfair show` has it");
}
