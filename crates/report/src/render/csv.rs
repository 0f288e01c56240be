//! Rows as CSV for spreadsheets, and as the objects of JSON.

use serde::ser::{Serialize, Serializer};
use serde_json::Value;

use crate::columns::Column;

/// One line as a JSON object, its fields in the order of the columns.
pub struct Object<'a, T> {
    pub columns: &'a [Column<T>],
    pub of: &'a T,
}

impl<T> Serialize for Object<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(in_export(self.columns).map(|column| (column.name, (column.value)(self.of))))
    }
}

/// A cell of CSV: a number as it is, without rounding.
fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        // JSON has a point in every number that may have one.
        Value::Number(number) if number.is_f64() => number.as_f64().map_or_else(String::new, |one| one.to_string()),
        other => other.to_string(),
    }
}

fn in_export<T>(columns: &[Column<T>]) -> impl Iterator<Item = &Column<T>> {
    columns.iter().filter(|column| column.is_exported)
}

/// A line of names, and a line for each; lines end as on Unix (RFC 4180 but for that). `wide` has all columns.
pub fn csv<T>(columns: &[Column<T>], all: &[T], wide: bool) -> String {
    let columns: Vec<&Column<T>> = in_export(columns).filter(|column| wide || !column.is_wide).collect();
    let mut lines = csv::Writer::from_writer(Vec::new());
    let mut write = |cells: Vec<String>| lines.write_record(cells).expect("memory takes lines of one length");
    write(columns.iter().map(|column| column.name.to_string()).collect());
    all.iter().for_each(|one| write(columns.iter().map(|column| cell(&(column.value)(one))).collect()));
    String::from_utf8(lines.into_inner().expect("memory takes all")).expect("cells are text")
}

/// A spreadsheet takes text that begins with one of these for a formula: an apostrophe before it prevents that. No
/// number of ours begins so.
const OF_FORMULAS: [char; 4] = ['=', '+', '@', '\t'];

fn cell(value: &Value) -> String {
    let text = plain(value);
    if text.starts_with(OF_FORMULAS) { format!("'{text}") } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::columns::{composed, exported, exported_wide};

    #[test]
    fn cells_are_quoted_where_they_must_be() {
        const COLUMNS: &[Column<&str>] = &[
            exported("plain", |_| (0.1 + 0.2).into()),
            composed("words", "for people", |text| text.to_string().into()),
            exported("text", |text| text.to_string().into()),
            exported("nothing", |_| Value::Null),
        ];
        let text = csv(COLUMNS, &["a", "a,b", "say \"a\"", "two\nlines", " blank", "\r"], false);
        let third = "0.30000000000000004";
        let expected = ["a", "\"a,b\"", "\"say \"\"a\"\"\"", "\"two\nlines\"", " blank", "\"\r\""];
        let lines: String = expected.iter().map(|cell| format!("{third},{cell},\n")).collect();
        assert_eq!(text, format!("plain,text,nothing\n{lines}"));
    }

    #[test]
    fn wide_columns_stand_in_csv_only_where_all_are_asked_for() {
        const COLUMNS: &[Column<u64>] = &[exported("a", |of| (*of).into()), exported_wide("b", |of| (*of).into())];
        assert_eq!(csv(COLUMNS, &[1], false), "a\n1\n");
        assert_eq!(csv(COLUMNS, &[1], true), "a,b\n1,1\n");
    }

    #[test]
    fn no_text_is_a_formula_and_empty_cells_stay_empty() {
        const COLUMNS: &[Column<&str>] = &[exported("a", |text| text.to_string().into())];
        let cells = ["", "=1+1", "+1", "@SUM(A1)", "\t=1", "=a,b", "-1", "a=1"];
        let text = csv(COLUMNS, &cells, false);
        assert_eq!(text, "a\n\"\"\n'=1+1\n'+1\n'@SUM(A1)\n'\t=1\n\"'=a,b\"\n-1\na=1\n");
    }
}
