//! What `--json` prints: one object for each command, which tells the command, how it ended, and what it found.

use anyhow::Result;
use serde::Serialize;
use serde_json::Value;

use super::csv::Object;
use crate::columns::Column;
use crate::exit::Exit;

/// How the command ended.
#[derive(Serialize)]
pub struct ExitJson {
    exit_code: u8,
    meaning: &'static str,
}

impl From<Exit> for ExitJson {
    fn from(exit: Exit) -> ExitJson {
        ExitJson { exit_code: exit as u8, meaning: exit.meaning() }
    }
}

/// What each command prints with `--json` (schema/output.schema.json).
#[derive(Serialize)]
struct Output<'a, T> {
    run: CommandJson<'a>,
    verdict: ExitJson,
    #[serde(flatten)]
    more: T,
}

#[derive(Serialize)]
struct CommandJson<'a> {
    command: &'a [String],
    kvfair: &'static str,
}

/// The rows of a command that prints nothing else.
#[derive(Serialize)]
pub struct JsonTable<T> {
    pub rows: T,
}

/// The object of a command that is no run, as text: its command, how it ended, and `more`.
pub fn object<T: Serialize>(command: &[String], exit: Exit, more: T) -> Result<String> {
    let run = CommandJson { command, kvfair: env!("CARGO_PKG_VERSION") };
    Ok(format!("{}\n", serde_json::to_string_pretty(&Output { run, verdict: exit.into(), more })?))
}

/// The object of rows that are told by columns.
pub fn of_rows<T>(command: &[String], exit: Exit, columns: &[Column<T>], rows: &[T]) -> Result<String> {
    object(command, exit, JsonTable { rows: objects(columns, rows) })
}

/// Of a column that holds more than one value.
pub fn nested(value: &impl Serialize) -> Value {
    serde_json::to_value(value).unwrap_or_default()
}

pub fn objects<'a, T>(columns: &'a [Column<T>], all: &'a [T]) -> Vec<Object<'a, T>> {
    all.iter().map(|of| Object { columns, of }).collect()
}
