//! `--json` of all commands: one object by one schema.

use serde_json::json;

use crate::cli::comment::two_runs;
use crate::cli::forms::results;
use crate::common::desk::Desk;
use crate::common::output;

#[test]
fn each_command_prints_one_object_by_one_schema() {
    let desk = Desk::with_only(&["redis-server"]);
    two_runs(&desk, &[("redis", 1.6)], |_| {});
    let object = |typed: &[&str]| {
        let said = desk.run(&[typed, &["--json"]].concat());
        output::object(&said.out, said.code)
    };
    let rows = |typed: &[&str]| object(typed)["rows"].as_array().map_or(0, Vec::len);
    assert!(rows(&["compare", "base.jsonl", "head.jsonl"]) > 1);
    assert!(rows(&["compare", "base.jsonl", "head.jsonl", "--fail-if", "slower:5%"]) > 1);
    assert!(rows(&["stores"]) > 5);
    assert_eq!(rows(&["stores", "redis"]), 1);
    assert!(rows(&["show", "base.jsonl"]) > 1);
    assert!(object(&["show", "base.jsonl", "--all"])["trials"].is_array());
    desk.file("growth.jsonl", results("growth"));
    assert_eq!(rows(&["show", "growth.jsonl"]), 16);
    assert!(object(&["history", "base.jsonl", "head.jsonl"])["setups"].is_array());
    assert_eq!(rows(&["run", "ngrams", "--messages", "5", "--blocks", "1", "ram"]), 1);
    assert_eq!(rows(&["crash", "lmdb", "--durability", "crash", "--kills", "1"]), 1);
    desk.run(&["run", "fans", "--profiles", "50", "--blocks", "1", "--keep", "kept", "lmdb"]).exits(0);
    assert!(object(&["query", "lmdb:kept/lmdb", "Michael Jackson"])["fans"].is_u64());
}

#[test]
fn the_schema_refuses_what_is_no_such_object() {
    assert!(!output::is_valid(&json!([])) && !output::is_valid(&json!({})));
}
