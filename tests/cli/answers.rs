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
    for (targets, units) in [(slow, "15"), (quick, "60")] {
        run(&desk, &["fans", "--profiles", units], &targets).exits(0);
        run(&desk, &["ngrams", "--messages", units], &targets).exits(0);
    }
    let records = desk.records();
    assert_eq!(records.len(), 2 * targets.len());
    for record in &records {
        assert_eq!(record["verdict"]["kind"], "right", "{}", record["target"]["label"]);
    }
}

/// One of each kind: in memory, embedded, of RESP, of memcached's protocol, of SQL. The test above has every store give
/// the answer of `ram`.
const OF_EACH_KIND: [&str; 5] = ["ram", "lmdb", "redis+unix", "memcached+unix", "postgres+unix"];

/// Groceries of the R package arules: the digests of an independent program.
#[test]
fn the_groceries_have_the_digests_that_others_computed_on_a_store_of_each_kind() {
    needs!(Need::published("groceries.tsv"), Need::published("groceries.answers.json"));
    let file = needs::published("groceries.tsv");
    let published = std::fs::read_to_string(needs::published("groceries.answers.json")).expect("the published answers");
    let published: Value = serde_json::from_str(&published).expect("JSON");
    let published = &published["by an independent program"];
    let desk = Desk::new();
    let targets = OF_EACH_KIND.map(str::to_string);
    let said = run(&desk, &["fans", "--input", file.to_str().expect("UTF-8")], &targets);
    said.exits(0).shows("whole milk: 2513 fans, 736 of them also of other vegetables");
    for target in &targets {
        let answer = answer(&desk, target);
        for digest in ["sha256 fans", "sha256 also"] {
            assert_eq!(answer[digest], published[digest], "{target}: {digest}");
        }
    }
}

/// What the programs in tests/golden computed of the default data of a recipe.
fn computed(recipe: &str, name: &str) -> String {
    let golden: Value = serde_json::from_str(include_str!("../golden/digests.json")).expect("JSON");
    let lines = golden[recipe]["answer"].as_array().expect("a list").iter().filter_map(Value::as_str);
    let mut found = lines.filter_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    found.next().unwrap_or_else(|| panic!("no {name} of {recipe}")).to_string()
}

#[test]
fn the_default_data_gives_the_known_answers() {
    let desk = Desk::new();
    let ram = ["ram".to_string()];
    run(&desk, &["fans", "--wide"], &ram)
        .exits(0)
        .shows("Michael Jackson: 406 fans, 22 of them also of Green Bay Packers");
    let found = answer(&desk, "ram");
    for (name, golden) in [("sha256 fans", "fans"), ("sha256 also", "also"), ("pages", "pages"), ("pairs", "pairs")] {
        assert_eq!(found[name], computed("likes10k", golden), "{name}");
    }
    run(&desk, &["ngrams"], &ram).exits(0);
    let found = answer(&desk, "ram");
    for (name, golden) in [("sha256 terms", "digest"), ("terms", "terms"), ("increments", "sum")] {
        assert_eq!(found[name], computed("tweets2", golden), "{name}");
    }
}
