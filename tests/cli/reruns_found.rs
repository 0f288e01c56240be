//! `levers`, `find-max` and `growth` once more: what they found is judged anew, by real stores.

use std::fs;

use serde_json::{Value, json};

use crate::cli::forms::results;
use crate::cli::levers::code_of;
use crate::cli::page::{embedded, lines, says};
use crate::common::desk::{Desk, Said};

fn read(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.home().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn findings(desk: &Desk, page: &str) -> Vec<Value> {
    embedded(&read(desk, page), "manifest")["findings"].as_array().expect("findings").clone()
}

/// A page by that name with these findings and a changed manifest.
fn planted(desk: &Desk, page: &str, name: &str, findings: &[Value], change: impl Fn(&mut Value)) {
    let mut manifest = embedded(&read(desk, page), "manifest");
    manifest["findings"] = findings.into();
    change(&mut manifest);
    let told = manifest.to_string().replace('<', "\\u003c");
    desk.file(name, format!("<script type=\"application/json\" id=\"manifest\">{told}</script>"));
}

/// The line of a claim, and of its judgement.
#[track_caller]
fn line<'a>(said: &'a Said, claim: &str) -> &'a str {
    let (_, claims) =
        said.out.split_once("claims of the first run").unwrap_or_else(|| panic!("{}{}", said.out, said.err));
    claims.lines().find(|line| line.contains(claim)).unwrap_or_else(|| panic!("{claim}:\n{claims}"))
}

/// Many keys in one question need a small part of the CPU: no load hides that. The opposite is planted.
#[test]
fn levers_are_run_again_and_one_that_is_said_to_hurt_is_never_reproduced() {
    let desk = Desk::new();
    // Sixteen requests under way take a small part of the time of one, however busy the machine is. The value is named:
    // the pilot of a rerun may choose another one.
    let run = ["advise", "getset", "redis", "--levers", "depth=16", "--blocks", "4", "--seed", "1"];
    let small = ["--requests", "5000", "--records", "300", "--output", "run.jsonl", "--html", "run.html"];
    let said = desk.run(&[&run[..], &small].concat());
    said.exits(code_of(&desk.json(&["run.jsonl"])));
    let found = findings(&desk, "run.html");
    let depth = found.iter().find(|one| one["about"].as_str().is_some_and(|about| about.starts_with("redis: depth=")));
    let mut helps = depth.unwrap_or_else(|| panic!("{found:?}")).clone();
    assert_eq!(helps["answer"], "helps", "{helps}");
    helps["words"] = "redis: it helps".into();
    let mut hurts = helps.clone();
    (hurts["answer"], hurts["words"]) = ("hurts".into(), "redis: it hurts".into());
    planted(&desk, "run.html", "helps.html", &[helps.clone()], |manifest| manifest["machine"]["cpu"] = "one".into());
    planted(&desk, "run.html", "hurts.html", &[hurts.clone()], |manifest| manifest["machine"]["cpu"] = "two".into());
    let said = desk.run(&["show", "helps.html", "hurts.html", "--html", "joined.html"]);
    said.exits(0).shows("redis: it helps: held on 1 of 2 machines; contradicted on 1");
    says(&read(&desk, "joined.html"), &["contradicted: redis: it hurts, "]);

    // `levers` measures the same alone, and more.
    planted(&desk, "run.html", "both.html", &[helps, hurts], |manifest| manifest["command"][0] = "levers".into());
    let said = desk.run(&["rerun", "both.html"]);
    said.exits(5);
    assert!(line(&said, "it helps").trim_start().starts_with("reproduced"), "{}", said.out);
    assert!(line(&said, "it hurts").trim_start().starts_with("contradicted"), "{}", said.out);
    says(&read(&desk, "both-2.html"), &["redis: it helps", "run 2"]);
}

/// A search that ends at once has a page. By its manifest a search that finds a rate is run. The store waits in each
/// op: it is overloaded without much CPU.
#[test]
fn the_highest_rate_is_searched_again_and_one_tenfold_is_contradicted() {
    let desk = Desk::new();
    const SLOW: &str = "faulty?fault=wait&name=slow";
    let find = ["find-max", "mixed", SLOW, "--clients", "4", "--records", "300", "--step", "1", "--seed", "1", "--slo"];
    let at_once = ["p50:1us", "--output", "run.jsonl", "--html", "run.html"];
    let said = desk.run(&[&find[..], &at_once].concat());
    said.exits(0).shows("breaks the promise at ");
    let heading = "<h1>No target that was tried keeps p50 at most 1 us at any of its rates.</h1>";
    says(&read(&desk, "run.html"), &[heading]);
    let about = "slow: the highest rate with p50 at most 400 ms";
    let rate = json!({"kept": 9_000_000, "fails_at": 9_100_000});
    let words = "slow: more than any machine keeps";
    let tenfold = json!({"about": about, "rate": rate, "words": words, "evidence": "9,000,000/s"});
    planted(&desk, "run.html", "high.html", &[tenfold], |manifest| {
        manifest["command"] = json!([&find[..], &["p50:400ms"]].concat());
    });
    let said = desk.run(&["rerun", "high.html"]);
    said.exits(5).shows("0 of 1 claim reproduced, 1 contradicted, ");
    assert!(line(&said, words).trim_start().starts_with("contradicted"), "{}", said.out);
    says(&read(&desk, "high-2.html"), &[words, about]);

    // What the search found is the same found once more.
    let found = embedded(&read(&desk, "high-2.html"), "manifest")["replications"][0]["findings"].clone();
    let [found] = found.as_array().expect("findings").as_slice() else { panic!("{found}") };
    assert!(found["about"] == about && found["rate"]["kept"].as_u64() > Some(0), "{found}");
    let mut again = found.clone();
    again["words"] = "slow: as found".into();
    for (name, finding, began) in [("one.html", found.clone(), "1"), ("two.html", again, "2")] {
        planted(&desk, "high.html", name, &[finding], |manifest| {
            manifest["began"] = format!("2026110{began}T000000Z").into();
        });
    }
    let said = desk.run(&["show", "one.html", "two.html", "--html", "joined.html"]);
    said.exits(0).shows("held in 2 of 2 runs");
}

/// The golden run of a store with a fault, whose target is another store by the same name.
#[test]
fn growth_is_run_again_and_a_fault_that_is_gone_is_never_reproduced() {
    let desk = Desk::new();
    let golden = results("growth");
    let records = golden.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let mut records: Vec<Value> = records.filter(|record| record["target"]["label"] == "bad").collect();
    for record in &mut records {
        record["run"]["command"] = json!(["growth", "lmdb?name=bad", "--budget", "6s", "--seed", "1"]);
    }
    desk.file("run.jsonl", lines(&records));
    desk.run(&["show", "run.jsonl", "--html", "run.html"]);
    let claim = "bad: the CPU of a get-many of n keys grows out of proportion";
    says(&read(&desk, "run.html"), &[claim]);
    desk.run(&["bundle", "run.jsonl"]).exits(0);
    let said = desk.run(&["rerun", "run.tar.zst", "--html", "again.html", "--output", "again.jsonl"]);
    let line = line(&said, claim).trim_start().to_string();
    // On a busy machine few repetitions fit into the time.
    let grown = desk.json(&["again.jsonl"])["rows"].clone();
    let is_get_many = |one: &&Value| one["part"] == "get" && one["over"] == "batch";
    let verdict = &grown.as_array().expect("growths").iter().find(is_get_many).expect("of a get-many")["verdict"];
    if verdict == "in_proportion" {
        said.exits(5);
        assert!(line.starts_with("contradicted") && line.contains("in proportion, n^"), "{}", said.out);
    } else {
        assert!(verdict["unclear"].is_string(), "{verdict}");
        said.exits(6);
        assert!(line.starts_with("cannot be told"), "{}", said.out);
    }
    says(&read(&desk, "again.html"), &[claim, "run 2"]);
}

#[test]
fn what_claims_nothing_or_cannot_be_judged_says_so() {
    let desk = Desk::with_only(&[]);
    let mut records: Vec<Value> =
        results("growth").lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    records.truncate(2);
    desk.file("few.jsonl", lines(&records));
    let said = desk.run(&["bundle", "few.jsonl"]);
    said.exits(0).complains("these results claim nothing");
    desk.run(&["rerun", "few.tar.zst"]).exits(1).complains("it claims nothing").complains("more time (--budget)");
    // Another command than the table has.
    let mut records: Vec<Value> =
        results("fans").lines().map(|line| serde_json::from_str(line).expect("a record")).collect();
    records.iter_mut().for_each(|record| record["run"]["command"] = json!(["history", "fans", "redis"]));
    desk.file("other.jsonl", lines(&records));
    desk.run(&["show", "other.jsonl", "--html", "other.html"]);
    let said = desk.run(&["rerun", "other.html"]);
    said.exits(1).complains("cannot judge another run of that command").complains("levers, advise, growth, find-max");
}
