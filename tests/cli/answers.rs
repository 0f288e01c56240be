//! The answers themselves: on every store that this machine should have, and against what others computed.

use serde_json::Value;

use crate::common::desk::{Desk, Said};
use crate::common::needs::{self, Need, needs};

/// The answer that a target's record holds.
fn answer(desk: &Desk, target: &str) -> Value {
    // The stand-in for a server that is packaged nowhere says so in its label.
    let labels = [target.to_string(), target.replacen("tokyotyrant", "tokyotyrant-test", 1)];
    let record =
        desk.records().into_iter().rfind(|record| labels.iter().any(|label| record["target"]["label"] == *label));
    record.unwrap_or_else(|| panic!("no record of {target}"))["verdict"]["answer"].clone()
}

/// The targets that tests/expected-stores names for this system.
pub fn expected() -> Vec<String> {
    let lines = include_str!("../expected-stores").lines().filter(|line| !line.starts_with('#'));
    let mine = lines.filter_map(|line| line.strip_prefix(std::env::consts::OS)).next();
    let names = mine.unwrap_or_else(|| panic!("tests/expected-stores knows no {}", std::env::consts::OS));
    names.split_whitespace().map(str::to_string).collect()
}

fn run(desk: &Desk, arguments: &[&str], targets: &[String]) -> Said {
    let targets = targets.iter().map(String::as_str);
    desk.run(&["run", "--blocks", "1"].into_iter().chain(arguments.iter().copied()).chain(targets).collect::<Vec<_>>())
}

/// These take some milliseconds for each of the hundred thousands of ops: they answer small jobs only.
fn is_slow(target: &str) -> bool {
    target.starts_with("ferretdb") || target.starts_with("cassandra")
}

#[test]
fn every_store_that_this_machine_should_have_does_both_jobs() {
    let desk = Desk::new();
    let targets = expected();
    let (slow, quick): (Vec<String>, Vec<String>) = targets.iter().cloned().partition(|target| is_slow(target));
    for (targets, units) in [(slow, "40"), (quick, "200")] {
        run(&desk, &["fans", "--profiles", units], &targets).exits(0);
        run(&desk, &["ngrams", "--messages", units], &targets).exits(0);
    }
    let records = desk.records();
    assert_eq!(records.len(), 2 * targets.len());
    for record in &records {
        assert_eq!(record["verdict"]["kind"], "right", "{}", record["target"]["label"]);
    }
}

/// Groceries of the R package arules: the digests of an independent program.
#[test]
fn the_groceries_have_the_digests_that_others_computed_on_every_store() {
    needs!(Need::published("groceries.tsv"), Need::published("groceries.answers.json"));
    let file = needs::published("groceries.tsv");
    let published = std::fs::read_to_string(needs::published("groceries.answers.json")).expect("the published answers");
    let published: Value = serde_json::from_str(&published).expect("JSON");
    let published = &published["by an independent program"];
    let desk = Desk::new();
    let targets: Vec<String> = expected().into_iter().filter(|target| !is_slow(target)).collect();
    let said = run(&desk, &["fans", "--input", file.to_str().expect("UTF-8")], &targets);
    said.exits(0).shows("whole milk: 2513 fans, 736 of them also of other vegetables");
    for target in &targets {
        let answer = answer(&desk, target);
        for digest in ["sha256 fans", "sha256 also"] {
            assert_eq!(answer[digest], published[digest], "{target}: {digest}");
        }
    }
}

#[test]
fn the_default_data_gives_the_known_answers() {
    let desk = Desk::new();
    let ram = ["ram".to_string()];
    run(&desk, &["fans"], &ram).exits(0).shows("Michael Jackson: 406 fans, 22 of them also of Green Bay Packers");
    let golden: Value = serde_json::from_str(include_str!("../golden/digests.json")).expect("JSON");
    let lines = golden["likes10k"]["answer"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let fans = lines.filter_map(|line| line.strip_prefix("fans ")).next().expect("the golden digest of fans");
    assert_eq!(answer(&desk, "ram")["sha256 fans"], fans);
    run(&desk, &["ngrams"], &ram).exits(0);
    let answer = answer(&desk, "ram");
    let near = |name: &str, expected: f64| {
        let found: f64 = answer[name].as_str().and_then(|text| text.parse().ok()).expect("a number");
        assert!((found / expected - 1.0).abs() < 0.01, "{name}: {found}, {expected} expected");
    };
    near("increments", 750_128.0);
    near("terms", 400_365.0);
}
