//! Messages, in whatever form somebody has them: told by the first lines. It must not know what is counted of them.

use super::fields::{self, Wanted};
use super::table::{columns_of, is_named, names_numbers, recurs, rows_of, separator_of};
use super::{InputSample, Recognised, Shape, TableForm, has_no_columns, has_no_field, path_of};
use kvfair_core::trial::ReadAs;

/// The forms in which messages come, as `--format` takes them; the first one is the recipe's.
pub const FORMATS: &[&str] = &["text", "csv", "tsv", "jsonl"];

/// What a line must be.
pub const EXPECTED: &str = "one of these forms, with an example of a line:
  text, a message a line               Tea in the rain
  CSV or TSV with --columns text       7,\"Tea, in the rain\"
  JSON Lines with --field text         {\"id\": 7, \"text\": \"Tea in the rain\"}";

/// What a field of a message holds.
pub static TEXT: Wanted = Wanted { line: "a message", one: "a text", list: None };

/// The field of JSON Lines, where no other is named.
const FIELD: &str = "text";
/// What headers call a message.
const TEXTS: &[&str] =
    &["text", "message", "tweet", "body", "content", "comment", "review", "sentence", "msg", "post", "description"];
/// So many lines with the same number of commas are a table; fewer may be verse.
const TABLE_ROWS: usize = 20;

/// How messages are read out of an input that begins like this.
pub fn recognise(sample: &InputSample<'_>, read_as: &ReadAs) -> Result<Recognised, String> {
    sample.must_be_text(EXPECTED)?;
    let lines = sample.lines();
    if lines.is_empty() {
        return Err(sample.fault("no line in it", EXPECTED, ""));
    }
    let asked = read_as.form.as_str();
    if asked.is_empty() && sample.begins_an_array() {
        return Err(sample.is_an_array(EXPECTED, "ngrams", ["-r '.[]'", "-r '.[][]'"]));
    }
    if asked == "jsonl" || (asked.is_empty() && (read_as.field.is_some() || sample.is_json_lines())) {
        has_no_columns(read_as, "JSON Lines")?;
        let name = read_as.field.as_deref().unwrap_or(FIELD);
        let field = path_of(name);
        fields::must_be_in(sample, &field, &TEXT, EXPECTED, |_| None)?;
        let words = format!("JSON Lines: message = field {name}");
        return Ok(Recognised { form: "jsonl", becomes: "text", shape: Shape::Texts { field }, words });
    }
    has_no_field(read_as, if asked.is_empty() { "this input" } else { asked })?;
    if asked == "text" {
        has_no_columns(read_as, "text")?;
        return Ok(text());
    }
    let separators: &[u8] = match asked {
        "csv" => b",;",
        "tsv" => b"\t",
        _ => b"\t,;",
    };
    let separator = separator_of(sample, separators);
    let rows = separator.map_or_else(Vec::new, |separator| rows_of(sample, separator));
    let is_table = !asked.is_empty() || !read_as.columns.is_empty() || matches!(sample.ending, "csv" | "tsv");
    match is_table || is_plainly_a_table(&rows) {
        true => column(sample, read_as, separator.unwrap_or(separators[0])),
        false => Ok(text()),
    }
}

fn text() -> Recognised {
    let words = "text: a message is a line".to_string();
    Recognised { form: "text", becomes: "text", shape: Shape::AsItIs, words }
}

fn is_plainly_a_table(rows: &[Vec<String>]) -> bool {
    let Some(first) = rows.first() else { return false };
    let is_even = first.len() > 1 && rows.iter().all(|row| row.len() == first.len());
    is_even && (rows.len() >= TABLE_ROWS || (rows.len() > 1 && first.iter().any(|cell| is_named(cell, TEXTS))))
}

fn column(sample: &InputSample<'_>, read_as: &ReadAs, separator: u8) -> Result<Recognised, String> {
    let rows = rows_of(sample, separator);
    let Some(first) = rows.first() else { return Err(sample.fault("no row in it", EXPECTED, "")) };
    let in_header = first.iter().position(|cell| is_named(cell, TEXTS));
    let (column, named) = match (read_as.columns.as_slice(), in_header) {
        ([], Some(column)) => (column, true),
        ([], None) if rows.iter().all(|row| row.len() == 1) => (0, false),
        ([], None) => {
            let hint = "--columns 2 where it is the second; --format text where each line is a message";
            return Err(sample.fault("several columns: which one is the message?", EXPECTED, hint));
        }
        (typed @ [_], _) => {
            let (columns, named) = columns_of(typed, &rows)?;
            (columns[0], named)
        }
        _ => return Err("--columns takes one column here: that of the message".to_string()),
    };
    let has_text = rows.iter().filter(|row| row.get(column).is_some_and(|cell| !cell.is_empty())).count();
    if has_text * 2 < rows.len() {
        let what = format!("{} of its first {} lines have no column {}", rows.len() - has_text, rows.len(), column + 1);
        return Err(sample.fault(&what, EXPECTED, ""));
    }
    // A message may be the word "text".
    let header = named || (in_header == Some(column) && !recurs(&rows, column)) || names_numbers(&rows, 0..first.len());
    let table = TableForm { separator, header, width: None };
    let form = if separator == b'\t' { "tsv" } else { "csv" };
    let words = format!("{}: message = column {}", table.name(), column + 1);
    Ok(Recognised { form, becomes: "text", shape: Shape::Column { table, column }, words })
}
