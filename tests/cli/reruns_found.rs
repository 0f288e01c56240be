//! `levers`, `find-max` and `growth` once more: what they found is judged anew, by real stores.

use std::fs;

use serde_json::Value;

use crate::cli::forms::results;
use crate::cli::page::{embedded, lines, says};
use crate::common::desk::{Desk, Said};

fn read(desk: &Desk, name: &str) -> String {
    fs::read_to_string(desk.home().join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn findings(desk: &Desk, page: &str) -> Vec<Value> {
    embedded(&read(desk, page), "manifest")["findings"].as_array().expect("findings").clone()
}

/// A page by that name with the same manifest but for its findings.
fn planted(desk: &Desk, page: &str, name: &str, findings: Vec<Value>, processor: &str) {
    let mut manifest = embedded(&read(desk, page), "manifest");
    if !processor.is_empty() {
        manifest["machine"]["cpu"] = processor.into();
    }
    manifest["findings"] = findings.into();
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

/// What is claimed depends on the machine, so that claims are planted in the page: of the same finding both answers.
#[test]
fn levers_are_run_again_and_one_that_is_said_to_hurt_is_never_reproduced() {
    let desk = Desk::new();
    let run = ["levers", "fans", "redis", "--profiles", "150", "--levers", "via", "--blocks", "6", "--seed", "1"];
    let said = desk.run(&[&run[..], &["--output", "run.jsonl", "--html", "run.html"]].concat());
    assert!([0, 6].contains(&said.code), "{}{}", said.out, said.err);
    let found = findings(&desk, "run.html");
    let via = found.iter().find(|one| one["about"].as_str().is_some_and(|about| about.starts_with("redis: via ")));
    let mut helps = via.unwrap_or_else(|| panic!("{found:?}")).clone();
    assert_ne!(helps["answer"], "hurts", "many ops of one key are never faster");
    (helps["answer"], helps["words"]) = ("helps".into(), "redis: it helps".into());
    let mut hurts = helps.clone();
    (hurts["answer"], hurts["words"]) = ("hurts".into(), "redis: it hurts".into());
    planted(&desk, "run.html", "helps.html", vec![helps.clone()], "one");
    planted(&desk, "run.html", "hurts.html", vec![hurts.clone()], "another");
    let said = desk.run(&["show", "helps.html", "hurts.html", "--html", "joined.html"]);
    said.exits(0).shows("redis: it helps: held on 1 of 2 machines; contradicted on 1");
    says(&read(&desk, "joined.html"), &["contradicted: redis: it hurts, "]);

    planted(&desk, "run.html", "both.html", vec![helps, hurts], "one");
    let said = desk.run(&["rerun", "both.html"]);
    let told = ["it helps", "it hurts"].map(|words| line(&said, words).trim_start().to_string());
    assert!(!told[0].starts_with("contradicted") && !told[1].starts_with("reproduced"), "{told:?}");
    // Either both are told or none: the answer is one.
    let code = if told[1].starts_with("contradicted") { 5 } else { 6 };
    assert_eq!(told[0].starts_with("reproduced"), code == 5, "{told:?}");
    said.exits(code);
    says(&read(&desk, "both-2.html"), &["redis: it helps", "run 2"]);
}

#[test]
fn the_highest_rate_is_searched_again_and_one_tenfold_is_contradicted() {
    let desk = Desk::new();
    let find = ["find-max", "mixed", "lmdb", "--records", "300", "--step", "1", "--slo", "p50:400ms", "--seed", "1"];
    desk.run(&[&find[..], &["--output", "run.jsonl", "--html", "run.html"]].concat()).exits(0);
    let found = findings(&desk, "run.html");
    assert_eq!(found.len(), 1, "{found:?}");
    let kept = found[0]["rate"]["kept"].as_u64().expect("a rate");
    // As the search itself has said it.
    let rate = kvfair::model::units::thousands(kept);
    says(&read(&desk, "run.html"), &[&format!("<h1>With p50 at most 400 ms: lmdb {rate}/s")]);
    let mut tenfold = found[0].clone();
    tenfold["words"] = "lmdb: ten times as much".into();
    tenfold["rate"]["kept"] = (kept * 10).into();
    tenfold["rate"]["fails_at"] = (kept * 11).into();
    planted(&desk, "run.html", "both.html", vec![found[0].clone(), tenfold], "");
    let said = desk.run(&["rerun", "both.html"]);
    said.exits(5).shows(", 1 contradicted, ");
    assert!(line(&said, "lmdb: ten times as much").contains("contradicted"), "{}", said.out);
    assert!(!line(&said, "lmdb: the highest rate with p50").contains("contradicted"), "{}", said.out);
    says(&read(&desk, "both-2.html"), &["lmdb: ten times as much", "lmdb: the highest rate with p50 at most 400 ms"]);
}

/// The golden run of a store with a fault, whose target is another store by the same name.
#[test]
fn growth_is_run_again_and_a_fault_that_is_gone_is_never_reproduced() {
    let desk = Desk::new();
    let golden = results("growth");
    let records = golden.lines().map(|line| serde_json::from_str::<Value>(line).expect("a record"));
    let mut records: Vec<Value> = records.filter(|record| record["target"]["label"] == "bad").collect();
    for record in &mut records {
        record["run"]["command"] = serde_json::json!(["growth", "lmdb?name=bad", "--budget", "12s", "--seed", "1"]);
    }
    desk.file("run.jsonl", lines(&records));
    desk.run(&["show", "run.jsonl", "--html", "run.html"]);
    let claim = "bad: the CPU of a get-many of n keys grows out of proportion";
    says(&read(&desk, "run.html"), &[claim]);
    desk.run(&["bundle", "run.jsonl"]).exits(0);
    let said = desk.run(&["rerun", "run.tar.zst", "--html", "again.html"]);
    let line = line(&said, claim).trim_start().to_string();
    // On a busy machine few repetitions fit into the time.
    match said.code {
        5 => assert!(line.starts_with("contradicted") && line.contains("in proportion, n^"), "{}", said.out),
        _ => assert!(line.starts_with("cannot be told"), "{}", said.out),
    }
    assert!([5, 6].contains(&said.code), "{}{}", said.out, said.err);
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
    records.iter_mut().for_each(|record| record["run"]["command"] = serde_json::json!(["history", "fans", "redis"]));
    desk.file("other.jsonl", lines(&records));
    desk.run(&["show", "other.jsonl", "--html", "other.html"]);
    let said = desk.run(&["rerun", "other.html"]);
    said.exits(1).complains("cannot judge another run of that command").complains("levers, advise, growth, find-max");
}
