//! `--json` of all commands: one object by one schema.

use serde_json::Value;

use crate::cli::comment::two_runs;
use crate::cli::forms::results;
use crate::common::desk::Desk;

/// The object, valid by the schema, with the exit code of the command in it.
fn object(desk: &Desk, typed: &[&str]) -> Value {
    let said = desk.run(&[typed, &["--json"]].concat());
    let object: Value =
        serde_json::from_str(&said.out).unwrap_or_else(|_| panic!("{typed:?}: {}{}", said.out, said.err));
    let schema: Value = serde_json::from_str(include_str!("../../schema/output.schema.json")).expect("the schema");
    let validator = jsonschema::validator_for(&schema).expect("the schema is one");
    let faults: Vec<String> = validator.iter_errors(&object).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{typed:?}: {faults:?}");
    assert_eq!(object["verdict"]["exit_code"], said.code, "{typed:?}");
    assert!(!validator.is_valid(&Value::Array(vec![object.clone()])), "the schema sees an array");
    object
}

#[test]
fn each_command_prints_one_object_by_one_schema() {
    let desk = Desk::with_only(&["redis-server"]);
    two_runs(&desk, &[("redis", 1.6)], |_| {});
    let rows = |typed: &[&str]| object(&desk, typed)["rows"].as_array().map_or(0, Vec::len);
    assert!(rows(&["compare", "base.jsonl", "head.jsonl"]) > 1);
    assert!(rows(&["compare", "base.jsonl", "head.jsonl", "--fail-if", "slower:5%"]) > 1);
    assert!(rows(&["stores"]) > 5);
    assert_eq!(rows(&["stores", "redis"]), 1);
    assert!(rows(&["show", "base.jsonl"]) > 1);
    assert!(object(&desk, &["show", "base.jsonl", "--all"])["trials"].is_array());
    desk.file("growth.jsonl", results("growth"));
    assert_eq!(rows(&["show", "growth.jsonl"]), 16);
    assert!(object(&desk, &["history", "base.jsonl", "head.jsonl"])["setups"].is_array());
    assert_eq!(rows(&["run", "ngrams", "--messages", "5", "--blocks", "1", "ram"]), 1);
    assert_eq!(rows(&["crash", "lmdb", "--durability", "crash", "--kills", "1"]), 1);
    desk.run(&["run", "fans", "--profiles", "50", "--blocks", "1", "--keep", "kept", "lmdb"]).exits(0);
    assert!(object(&desk, &["query", "lmdb:kept/lmdb", "Michael Jackson"])["fans"].is_u64());
}
