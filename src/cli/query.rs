//! `kvfair query`: one page's fans, and the pages that share the most of them, out of a store.

use anyhow::{Context, Result, anyhow};

use super::absent::{IfMissing, without_missing};
use super::args::Query;
use super::{Exit, print, target, typed};
use crate::harness::plan::Chosen;
use crate::harness::signals::Interrupt;
use crate::harness::{kept_data, scratch};
use crate::jobs::merge;
use crate::model::op::readable;
use crate::model::plain;
use crate::model::shell;
use crate::report::render::json;

/// So many pages are named in a sentence.
const NAMED: usize = 10;

/// The only target of a command, whose store is installed.
pub fn store_of(typed: &String) -> Result<Chosen> {
    Ok(without_missing(target::parse_all([typed])?, |_| true, IfMissing::Refuse)?.remove(0))
}

pub fn query(args: &Query) -> Result<Exit> {
    let chosen = store_of(&args.target)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let value = kept_data::get(&chosen, args.page.as_bytes(), scratch.path(), &interrupt)?;
    let Some(value) = value else {
        return Err(anyhow!("{} holds no page \"{}\"", chosen.target.label, args.page));
    };
    let record = Record::read(&value);
    let is_count = str::from_utf8(&value).is_ok_and(|text| text.parse::<i64>().is_ok());
    let label = shell::shown(super::as_typed(&chosen.target.label));
    let hint = if is_count { format!("\nhint: kvfair lookup {label} WORD") } else { String::new() };
    let record = record.map_err(|broken| {
        anyhow!("\"{}\" holds no fans record: {broken}: {}{hint}", args.page, readable(&value, 80))
    })?;
    print(&if args.json { as_json(&args.page, &record)? } else { in_words(&record) })?;
    Ok(Exit::Ok)
}

/// A fans record, its names as text.
struct Record {
    fans: u64,
    also: Vec<(String, u64)>,
}

impl Record {
    fn read(value: &[u8]) -> Result<Record, merge::Broken> {
        let (fans, entries) = merge::read(value)?;
        let named =
            entries.map(|entry| entry.map(|(name, count)| (String::from_utf8_lossy(&name).into_owned(), count)));
        Ok(Record { fans, also: named.collect::<Result<_, _>>()? })
    }
}

/// "406 fans; also fans of: Green Bay Packers 22, Madonna 17".
fn in_words(record: &Record) -> String {
    let mut also: Vec<(&str, u64)> = record.also.iter().map(|(name, count)| (name.as_str(), *count)).collect();
    also.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(other.0)));
    let named: Vec<String> =
        also.iter().take(NAMED).map(|(name, count)| format!("{} {count}", plain::line(name))).collect();
    let more = also.len().saturating_sub(NAMED);
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    let fans = if record.fans == 1 { "fan" } else { "fans" };
    match named.as_slice() {
        [] => format!("{} {fans}, of no other page\n", record.fans),
        _ => format!("{} {fans}; also fans of: {}{rest}\n", record.fans, named.join(", ")),
    }
}

fn as_json(page: &str, record: &Record) -> Result<String> {
    let also: serde_json::Map<_, _> = record.also.iter().map(|(name, count)| (name.clone(), (*count).into())).collect();
    let whole = serde_json::json!({ "page": page, "fans": record.fans, "also": also });
    json::object(&typed(), Exit::Ok, whole)
}
