//! The schemas of the lines of results files, made from the types themselves: schema/record.schema.json of a trial, and
//! schema/finding.schema.json of what is found without a job. Only this test makes them, so the program carries none.

use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;
use schemars::{JsonSchema, Schema};

use serde_json::{Value, json};

use crate::finding::Finding;
use crate::record::Record;
use crate::trial::METHOD;

/// No record has a field that its schema does not know.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_string(), false.into());
    }
    transform_subschemas(&mut close, schema);
}

/// What types do not say: a field, a keyword of JSON Schema and its value. `[]` stands for the items of a list.
fn bounds() -> Vec<(&'static str, &'static str, Value)> {
    let least = |field, least: u32| (field, "minimum", json!(least));
    let share = |field| (field, "maximum", json!(1));
    let pattern = |field, pattern: &'static str| (field, "pattern", json!(pattern));
    vec![
        ("method", "const", json!(METHOD)),
        pattern("run/began", "^[0-9]{8}T[0-9]{6}Z$"),
        ("run/plus_minus", "exclusiveMinimum", json!(0)),
        least("run/sizes/[]", 1),
        least("job/replay_percent", 1),
        least("job/ngrams/order", 1),
        ("job/ngrams/order", "maximum", json!(5)),
        least("job/lookup/readers", 1),
        least("job/load/batches/[]", 1),
        least("job/load/clients/[]", 1),
        least("job/load/depth", 1),
        least("job/load/rated_s", 1),
        least("job/load/rates/[]", 1),
        least("job/load/records", 1),
        least("job/load/sizes/[]", 1),
        ("job/load/compressible_percent", "maximum", json!(100)),
        pattern("job/load/keys", "^(uniform|sequential|latest|ycsb-zipfian|zipf:[0-9.]+|hotspot:[0-9]+/[0-9]+)$"),
        pattern("job/load/spread", "^(etc|[0-9]+-[0-9]+)$"),
        least("target/cache/items", 1),
        least("target/cache/merge", 1),
        least("target/cache/memory_bytes", 1),
        least("phases/[]/clients", 1),
        least("phases/[]/threads", 1),
        least("phases/[]/open/rate", 1),
        share("phases/[]/cut_off/done_share"),
        share("noise/foreign_share"),
        share("noise/kernel_share"),
        share("noise/steal_share"),
        share("noise/unclaimed_share"),
        share("phases/[]/noise/foreign_share"),
        share("phases/[]/noise/kernel_share"),
        share("phases/[]/noise/steal_share"),
        share("phases/[]/noise/unclaimed_share"),
        share("machine/preflight/foreign_share"),
        share("machine/preflight/steal_share"),
        pattern("stream/sha256", "^([0-9a-f]{64})?$"),
        pattern("verdict/sha256", "^[0-9a-f]{64}$"),
    ]
}

/// Puts a bound at a field, in every variant that has the field. How many have it.
fn bind(schema: &mut Value, field: &[&str], keyword: &str, bound: &Value) -> usize {
    let Some((name, rest)) = field.split_first() else {
        schema[keyword] = bound.clone();
        return 1;
    };
    let variants = ["oneOf", "anyOf"].map(|variants| schema[variants].as_array().map_or(0, Vec::len));
    let mut found = 0;
    for (variants, count) in ["oneOf", "anyOf"].into_iter().zip(variants) {
        found += (0..count).map(|place| bind(&mut schema[variants][place], field, keyword, bound)).sum::<usize>();
    }
    let inner = if *name == "[]" {
        schema.get_mut("items")
    } else {
        schema.get_mut("properties").and_then(|all| all.get_mut(*name))
    };
    found + inner.map_or(0, |inner| bind(inner, rest, keyword, bound))
}

fn schema_of<T: JsonSchema>(title: &str) -> Schema {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.insert("title".to_string(), title.into());
    schema
}

fn of_records() -> Schema {
    let mut schema = schema_of::<Record>("kvfair record");
    close(&mut schema);
    let mut schema = schema.to_value();
    for (field, keyword, bound) in bounds() {
        let found = bind(&mut schema, &field.split('/').collect::<Vec<_>>(), keyword, &bound);
        assert!(found > 0, "no record has the field {field}");
    }
    // A Schema writes its keywords in the usual order.
    Schema::try_from(schema).expect("a schema still")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `./test golden` writes them anew. That run is never green: it would compare the files with themselves.
    #[test]
    fn golden_schemas_are_those_of_the_types() {
        let is_rewritten = std::env::var_os("KVFAIR_GOLDEN").is_some();
        for (name, schema) in [("record", of_records()), ("finding", schema_of::<Finding>("kvfair finding"))] {
            let generated = format!("{}\n", serde_json::to_string_pretty(&schema).expect("plain data"));
            let file = format!("{}/../../schema/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
            if is_rewritten {
                std::fs::write(&file, &generated).expect("the repository can be written");
                continue;
            }
            let kept = std::fs::read_to_string(&file).expect("the schema");
            assert!(kept == generated, "{file} is stale: `./test golden` writes it anew");
        }
        assert!(!is_rewritten, "KVFAIR_GOLDEN is set: the schemas were written anew");
    }
}
