//! Stores that were named and are not installed.

use crate::common::desk::Desk;

/// Each command that takes a store by name.
const NAMED: &[&[&str]] = &[
    &["run", "ngrams", "--messages", "20", "redis"],
    &["run", "ngrams", "--messages", "20", "--budget", "60s", "redis", "lmdb"],
    &["run", "mixed", "--rate", "20%", "redis+unix", "lmdb"],
    &["run", "--exec", "true", "redis"],
    &["find-max", "mixed", "redis"],
    &["compare", "fans", "--base", "lmdb", "--head", "redis"],
    &["growth", "redis"],
    &["levers", "fans", "redis"],
    &["advise", "fans", "redis"],
    &["history", "fans", "redis", "redis?appendonly=yes"],
    &["check", "redis"],
    &["crash", "redis"],
    &["crash", "--failover", "redis?replicas=2"],
    &["query", "redis:./kept", "page"],
    &["lookup", "redis:./kept", "word"],
];

#[test]
fn a_store_that_is_not_installed_is_an_error_before_anything_is_measured() {
    let desk = Desk::with_only(&[]);
    for typed in NAMED {
        let said = desk.run(typed);
        said.exits(3).complains("there is no redis-server on PATH").complains("get it: apt install redis-server");
        assert_eq!(said.out, "", "{typed:?}");
    }
    assert!(desk.records().is_empty(), "nothing was run");
    let said = desk.run(&["run", "fans", "redis", "lmdb"]);
    said.exits(3).complains("hint: --skip-missing runs the other targets");
}

#[test]
fn the_others_are_measured_where_missing_stores_are_to_be_skipped() {
    let desk = Desk::with_only(&["memcached"]);
    let run =
        ["run", "ngrams", "--messages", "20", "--blocks", "1", "--skip-missing", "ram", "redis", "memcached+unix"];
    let said = desk.run(&run);
    said.exits(0).complains("kvfair: left out: redis: there is no redis-server on PATH");
    assert!(!said.out.contains("redis"), "{}", said.out);
    for target in ["ram", "memcached+unix"] {
        assert_eq!(desk.record(target)["verdict"]["kind"], "right", "{target}");
    }
    let said = desk.run(&["check", "--skip-missing", "redis", "lmdb"]);
    said.exits(0).complains("left out: redis: ");
    let said = desk.run(&["run", "fans", "--skip-missing", "redis", "null"]);
    said.exits(3).complains("there is no redis-server on PATH");
    assert!(!said.err.contains("hint: --skip-missing"), "{}", said.err);
    desk.run(&["compare", "fans", "--base", "redis", "--head", "lmdb", "--skip-missing"])
        .exits(2)
        .complains("--skip-missing is no option of compare: it needs both targets");
}
