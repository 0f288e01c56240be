//! Which form recorded traffic has, by its first rows. It must not know what is done about them.

use super::forms::{FORMS, Form};
use crate::input::{InputSample, Recognised, Shape};
use kvfair_core::trial::ReadAs;

/// What a row must be.
pub const EXPECTED: &str = "one of these forms, with an example of a row:
  twitter      timestamp, key, key size, value size, client, operation, TTL    0,key7,4,512,1,get,0
  libcachesim  time, object, size, next access, separated by commas            0, 42, 4096, -1
  arc          start block, count, ignored, request, separated by spaces       42 8 0 1
  oracle       binary records of 24 bytes (oracleGeneral): time, object, size, next access";

/// How recorded traffic is read that begins like this.
pub fn recognise(sample: &InputSample<'_>, read_as: &ReadAs) -> Result<Recognised, String> {
    let typed = [(!read_as.columns.is_empty(), "--columns", "columns"), (read_as.field.is_some(), "--field", "fields")];
    if let Some((_, option, parts)) = typed.iter().find(|(is_typed, ..)| *is_typed) {
        let hint = "hint: trace takes neither --columns nor --field";
        return Err(format!("{option}: recorded traffic has no {parts}\n{hint}"));
    }
    let asked = FORMS.iter().find(|(name, _)| *name == read_as.form);
    if asked.is_none_or(|(_, form)| form.has_lines()) {
        sample.must_not_be_ascii_in_utf16(EXPECTED)?;
    }
    let Some(&(form, _)) = asked.or_else(|| told_by(sample)) else {
        return Err(sample.fault("none of its first lines is a row of recorded traffic", EXPECTED, ""));
    };
    Ok(Recognised { form, becomes: form, shape: Shape::AsItIs, words: format!("recorded traffic in the form {form}") })
}

/// The form that most of the first rows have.
fn told_by(sample: &InputSample<'_>) -> Option<&'static (&'static str, Form)> {
    // No text holds a zero, and the numbers of a record hardly do without.
    if sample.bytes.contains(&0) {
        return FORMS.iter().find(|(_, form)| !form.has_lines());
    }
    let lines = sample.lines();
    let rows = |form: Form| lines.iter().filter(|(_, line)| form.is_meant_by(line)).count();
    let counted = FORMS.iter().map(|known| (rows(known.1), known)).filter(|(count, _)| *count > 0);
    let is_comment = |line: &(u64, &[u8])| line.1.starts_with(b"#");
    let commented =
        || FORMS.iter().find(|(_, form)| *form == Form::LibCacheSim).filter(|_| lines.iter().all(is_comment));
    counted.max_by_key(|(count, _)| *count).map(|(_, known)| known).or_else(commented)
}
