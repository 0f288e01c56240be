//! What a page folds away: all columns, every block, warnings, answers, versions and settings, the machine, and how to
//! run it again.

use std::collections::BTreeMap;

use anyhow::Result;
use maud::{Markup, html};

use super::blocks::written;
use super::packed::{CELLS_MAX, packed};
use super::{Mask, PageInput, PagePart, badges, tables};
use crate::cells::{self, Row};
use crate::columns;
use crate::disturbed_block::disturbed;
use crate::table::{self, Ranks, TableColumns};
use crate::words;
use kvfair_core::logins;
use kvfair_core::noise::Yardstick;
use kvfair_core::record::{Record, Verdict};
use kvfair_core::trial::{Data, Verify};
use kvfair_core::units;

pub fn details(input: &PageInput<'_>) -> Result<Markup> {
    let records = input.largest().report.records;
    Ok(html! {
        // Of a sweep the tables have all that is known.
        @for part in input.parts.iter().filter(|part| part.report.points.is_empty()) {
            @let lines = table::lines(&part.report.rows, TableColumns::All, Ranks::InAColumn);
            @let title = format!("All columns{}", part.title_behind());
            (folded(&title, tables::table(&title, &lines)))
        }
        @let evidence = input.levers.iter().flat_map(|levers| &levers.evidence);
        @for part in input.parts.iter().chain(evidence) {
            (folded(&format!("Blocks in the order of time{}", part.title_behind()), blocks(part, input.mask)?))
        }
        @if !input.warnings.is_empty() {
            (folded(&format!("Warnings ({})", input.warnings.len()), html! {
                ul {
                    @for warning in &input.warnings {
                        li { b { (warning.id) } ": " (hidden(&warning.evidence)) ". What helps: " (warning.fix) "." }
                    }
                }
            }))
        }
        (folded("Answers", answers(records)))
        (of_run(input))
    })
}

/// What holds of the run, whatever its trials ask.
pub fn of_run(input: &PageInput<'_>) -> Markup {
    html! {
        (folded("Versions and settings", settings(input)))
        (folded("Machine", machine(&input.largest().report.records[0])))
        (folded("Seeds and digests", origin(input)))
    }
}

fn folded(summary: &str, inside: Markup) -> Markup {
    html! { details { summary { (summary) } (inside) } }
}

fn hidden(text: &str) -> String {
    logins::hidden(text, &[])
}

fn entry(name: &str, words: &str) -> Markup {
    html! { @if !words.is_empty() { dt { (name) } dd { (words) } } }
}

/// A row a block: whether it counts, why not, and how long each target took. Of many blocks the rows are packed.
fn blocks(part: &PagePart<'_>, mask: &Mask) -> Result<Markup> {
    let report = part.report;
    let mut blocks: BTreeMap<u32, Vec<&Record>> = BTreeMap::new();
    report.records.iter().for_each(|record| blocks.entry(record.block).or_default().push(record));
    let yardstick = Yardstick::of(report.records.iter().map(|record| &record.noise));
    let rows: Vec<Markup> = blocks.iter().map(|(block, trials)| block_row(part, *block, trials, yardstick)).collect();
    let is_packed = rows.len() * (report.rows.len() + 2) > CELLS_MAX;
    // What is packed here is not seen by who masks the page.
    let packed = match is_packed {
        true => Some(packed(&rows.iter().map(|row| mask.applied(&row.0)).collect::<Vec<_>>())?),
        false => None,
    };
    Ok(html! {
        p.grey { "Seconds of each trial; two of a target that was run twice (A/A control). Hatched blocks do not count." }
        @if is_packed {
            p.packed {
                (units::thousands(rows.len() as u64)) " blocks are more than a page holds as text. "
                code { "kvfair show FILE --all --csv" } " writes all trials."
            }
        }
        div.scroll tabindex="0" role="region" aria-label="Blocks" {
            table data-rows=[packed] {
                thead { tr {
                    th scope="col" { "block" }
                    @for row in &report.rows { th scope="col" { (row.target) } }
                    th scope="col" { "state" }
                } }
                tbody { @if !is_packed { @for row in &rows { (row) } } }
            }
        }
    })
}

fn block_row(part: &PagePart<'_>, block: u32, trials: &[&Record], yardstick: Yardstick) -> Markup {
    html! {
        tr.gone[!part.report.standings.counted.blocks.contains(&block)] {
            th scope="row" { (block) }
            @for row in &part.report.rows { td { (seconds(trials, row)) } }
            td.left { (state(part, block, trials, yardstick)) }
        }
    }
}

fn seconds(trials: &[&Record], row: &Row) -> String {
    let of_row = trials.iter().filter(|record| record.target.label == row.target);
    let each = of_row.map(|record| match record.took_s().filter(|_| record.is_right() && !record.run.answers_only) {
        Some(took_s) => units::seconds(took_s),
        None => columns::kind(&cells::status(&[*record])).to_string(),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn state(part: &PagePart<'_>, block: u32, trials: &[&Record], yardstick: Yardstick) -> String {
    let counted = &part.report.standings.counted;
    let counts = counted.blocks.contains(&block);
    if !counted.discarded.contains(&block) {
        return if counts { "counts" } else { "warm-up: not counted" }.to_string();
    }
    let why = disturbed(trials, yardstick).map_or_else(String::new, |why| format!(": {why}"));
    format!("{}{why}", if counts { "noisy, but used" } else { "discarded" })
}

/// Digests and counts; of data of the user's own nothing that is data.
fn answers(records: &[Record]) -> Markup {
    let right = records.iter().find_map(|record| match &record.verdict {
        Verdict::Right(checked) if checked.how == Verify::Full && !checked.answer.is_empty() => Some((record, checked)),
        _ => None,
    });
    let Some((record, checked)) = right else {
        return written(&words::answer(records, true));
    };
    let is_made = matches!(record.job.data, Data::Recipe { .. });
    let is_count = |value: &str| value.chars().all(|letter| letter.is_ascii_digit());
    let is_digest = |value: &str| value.len() == 64 && value.chars().all(|letter| letter.is_ascii_hexdigit());
    let may_be_told = |value: &str| is_made || is_count(value) || is_digest(value);
    html! {
        p {
            "The same from every target that is right"
            @if !record.run.seeds.data.is_empty() { ", to the data of seed " (record.job.seed()) }
            ": " (units::thousands(checked.keys)) " of " (units::thousands(checked.keys_expected)) " keys were compared."
        }
        dl {
            @for (name, value) in checked.answer.iter().filter(|(_, value)| may_be_told(value)) {
                dt { (name) } dd { code { (value) } }
            }
        }
    }
}

fn settings(input: &PageInput<'_>) -> Markup {
    let records = input.largest().report.records;
    html! {
        @for row in &input.largest().report.rows {
            @let trials = || records.iter().filter(|record| record.target.label == row.target);
            h3 { (row.target) }
            dl {
                (entry("version", &row.version))
                (entry("client library", &row.client_library))
                @if let Some(record) = trials().find(|record| record.store.is_some()).or_else(|| trials().next()) {
                    (entry("durability", &format!("{}: {}", record.durability, record.keeps)))
                    (entry("typed", &listed(record.target.settings.iter())))
                    @if let Some(facts) = &record.store {
                        (entry("increment", &facts.increment))
                        (entry("started by", &hidden(&started_by(&facts.command))))
                        (entry("in force", &listed(facts.settings.iter())))
                    }
                }
            }
        }
    }
}

/// A server's command line. Ports are the kernel's choice, and other ones in each run.
fn started_by(command: &[String]) -> String {
    let is_port = |text: &str| text.chars().all(|letter| letter.is_ascii_digit()) && text.len() >= 4;
    let names_port = |text: &str| text.ends_with("port") || text == "-p";
    let word = |(place, word): (usize, &String)| {
        let before = place.checked_sub(1).map_or("", |before| command[before].as_str());
        match word.rsplit_once(['=', ':']) {
            _ if is_port(word) && names_port(before) => "PORT".to_string(),
            Some((name, port)) if is_port(port) && (names_port(name) || name.starts_with("127.")) => {
                format!("{}PORT", &word[..word.len() - port.len()])
            }
            _ => word.clone(),
        }
    };
    command.iter().enumerate().map(word).collect::<Vec<_>>().join(" ")
}

/// "appendonly no, save ''": without the values of what is named like a secret, and without names of hosts.
fn listed<'a>(settings: impl Iterator<Item = (&'a String, &'a String)>) -> String {
    let told = settings.filter(|(name, _)| !name.to_ascii_lowercase().contains("host"));
    let each = told.map(|(name, value)| match logins::hidden_word(&format!("{}={value}", name.replace('.', "_"))) {
        word if word.ends_with(logins::HIDDEN) => format!("{name} {}", logins::HIDDEN),
        _ if value.is_empty() => format!("{name} ''"),
        _ => format!("{name} {}", hidden(value)),
    });
    each.collect::<Vec<_>>().join(", ")
}

fn machine(record: &Record) -> Markup {
    let machine = &record.machine;
    html! {
        dl {
            (entry("machine", &badges::machine(machine)))
            (entry("processor", &machine.cpu))
            (entry("processors", &machine.cpus.to_string()))
            (entry("memory", &units::bytes(machine.memory_bytes)))
            (entry("system", &machine.os))
            (entry("kernel", &machine.kernel))
            (entry("filesystem", &machine.filesystem))
            (entry("virtualisation", &machine.virtualisation))
            (entry("frequency governor", &machine.governor))
            (entry("clock source", &machine.clock_source))
            (entry("transparent huge pages", &machine.transparent_huge_pages))
            (entry("pinning", &record.run.pinned.as_ref().map_or_else(|| "none".to_string(), ToString::to_string)))
        }
    }
}

fn origin(input: &PageInput<'_>) -> Markup {
    let records = input.largest().report.records;
    let first = &records[0];
    html! {
        dl {
            (entry("began", &badges::date(&first.run.began)))
            (entry("kvfair", &format!("{}, method {}", first.kvfair, first.method)))
            (entry("seed of the order", &first.run.seeds.order.to_string()))
            (entry("data", words::stream(records).trim_start_matches("data: ")))
            @if let Some(results) = &input.results {
                dt { "results file" } dd { (results.name) ", sha256 " code { (results.sha256) } }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_has_no_port_that_chance_chose() {
        let told = |command: &str| started_by(&command.split(' ').map(str::to_string).collect::<Vec<_>>());
        let command =
            "redis-server --bind 127.0.0.1 --port 32899 --maxmemory 64000 -p 11311 --port=3307 127.0.0.1:4000";
        let same = "redis-server --bind 127.0.0.1 --port PORT --maxmemory 64000 -p PORT --port=PORT 127.0.0.1:PORT";
        assert_eq!(told(command), same);
        assert_eq!(told("redis-server --port 0 --unixsocketperm 700"), "redis-server --port 0 --unixsocketperm 700");
    }
}
