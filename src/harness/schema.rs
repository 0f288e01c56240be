//! The schema of a record, made from the types themselves: schema/record.schema.json. Only this test makes it, so the
//! program carries none of it.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::transform_subschemas;

use crate::model::record::Record;

const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/schema/record.schema.json");

/// No record has a field that its schema does not know.
fn close(schema: &mut Schema) {
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_none() {
        schema.insert("additionalProperties".to_string(), false.into());
    }
    transform_subschemas(&mut close, schema);
}

fn generated() -> String {
    let settings = SchemaSettings::draft2020_12().with(|settings| settings.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Record>();
    close(&mut schema);
    schema.insert("title".to_string(), "kvfair record".into());
    format!("{}\n", serde_json::to_string_pretty(&schema).expect("plain data"))
}

/// `KVFAIR_GOLDEN=write cargo test --lib schema` writes it anew.
#[test]
fn the_schema_is_that_of_the_types() {
    let generated = generated();
    if std::env::var_os("KVFAIR_GOLDEN").is_some() {
        std::fs::write(FILE, &generated).expect("the repository can be written");
    }
    let kept = std::fs::read_to_string(FILE).expect("the schema");
    assert!(kept == generated, "{FILE} is stale: KVFAIR_GOLDEN=write cargo test --lib schema");
}
