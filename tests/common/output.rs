//! What commands print with `--json`: one object by one schema.

use std::sync::LazyLock;

use jsonschema::Validator;
use serde_json::Value;

static BY_SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = serde_json::from_str(include_str!("../../schema/output.schema.json")).expect("the schema");
    jsonschema::validator_for(&schema).expect("the schema is one")
});

pub fn is_valid(value: &Value) -> bool {
    BY_SCHEMA.is_valid(value)
}

/// The object that a command printed before it ended with that exit code.
#[track_caller]
pub fn object(out: &str, code: i32) -> Value {
    let object: Value = serde_json::from_str(out).unwrap_or_else(|error| panic!("no JSON ({error}): {out}"));
    let faults: Vec<String> = BY_SCHEMA.iter_errors(&object).map(|fault| fault.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?} in {out}");
    assert_eq!(object["verdict"]["exit_code"], code, "{out}");
    object
}
