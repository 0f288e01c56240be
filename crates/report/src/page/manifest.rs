//! What a page tells other programs, as one line of JSON: what was run, of which versions and seeds, what came out, and
//! the digests of the data and of the results file. Never the data itself.

use std::path::Path;

use anyhow::{Context, Result};
use serde::Serialize;

use super::PageInput;
use crate::cells::Row;
use crate::columns;
use crate::growth::Grown;
use crate::levers::LeverReport;
use crate::replicated::findings::{self, SeenRun};
use crate::replicated::{FORM, PageClaim, PageData, PageJob, PageRun, PageTarget};
use kvfair_core::logins::{self, HIDDEN};
use kvfair_core::record::Record;
use kvfair_core::trial::Data;

#[derive(Serialize)]
struct Manifest<'a> {
    #[serde(flatten)]
    run: PageRun,
    /// As `--json` prints them.
    #[serde(skip_serializing_if = "Option::is_none")]
    levers: Option<&'a LeverReport>,
    sentence: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<&'a [Grown]>,
}

/// As a text that may stand in an element `script`. `growth` is what was found of how costs grow, where that was asked.
pub fn json(input: &PageInput<'_>, growth: Option<&[Grown]>) -> Result<String> {
    let levers = input.levers.as_ref().map(|levers| &levers.report);
    let manifest = Manifest { run: run(input, growth)?, levers, sentence: input.sentences.join(" "), growth };
    as_script(&manifest)
}

/// No text can end the element, nor begin a comment in it.
pub fn as_script(manifest: &impl Serialize) -> Result<String> {
    Ok(serde_json::to_string(manifest)?.replace('<', "\\u003c"))
}

/// What others need to run it again. `grown` is what was found of how costs grow, where that was asked.
pub fn run(input: &PageInput<'_>, grown: Option<&[Grown]>) -> Result<PageRun> {
    let part = input.largest();
    let (first, standings) = (part.report.records.first().context("no trials")?, &part.report.standings);
    let mut sizes: Vec<u64> =
        input.parts.iter().filter_map(|part| Some(part.report.records.first()?.stream.units)).collect();
    sizes.dedup();
    let targets = input.parts.iter().flat_map(|part| {
        let units = part.report.records.first().map_or(0, |record: &Record| record.stream.units);
        part.report.rows.iter().map(move |row| target(row, units))
    });
    let levers = input.levers.as_ref().map(|levers| &levers.report);
    let seen = SeenRun { records: part.report.records, levers, grown };
    let kind = first.run.command.first().and_then(|command| findings::kind_of(command));
    Ok(PageRun {
        form: FORM,
        kvfair: first.kvfair.clone(),
        method: first.method,
        debug_build: first.debug_build,
        began: first.run.began.clone(),
        command: told(&first.run.command),
        seeds: first.run.seeds.clone(),
        blocks: standings.blocks(),
        discarded_blocks: standings.counted.discarded.len(),
        durability: first.durability,
        configuration: first.configuration,
        clients: first.clients,
        job: PageJob {
            name: first.job.name.clone(),
            unit: first.stream.unit.clone(),
            sizes,
            units: first.job.units.filter(|_| first.run.sizes.is_empty()),
            rtts_us: first.run.rtts_us.clone(),
            ops: first.stream.ops,
            via: first.job.via,
            split: first.job.split,
            load: first.job.load.clone(),
        },
        data: data(first),
        machine: (&first.machine).into(),
        results_sha256: input.results.as_ref().map(|results| results.sha256.clone()),
        targets: targets.collect(),
        claims: input.claims.iter().map(PageClaim::from).collect(),
        findings: kind.map_or_else(Vec::new, |kind| (kind.found)(&seen)),
        replications: Vec::new(),
    })
}

fn data(first: &Record) -> PageData {
    let (recipe, seed, file) = match &first.job.data {
        Data::Recipe { name, seed } => (Some(name.clone()), Some(*seed), None),
        Data::File { path } => (None, None, path.file_name()),
        Data::Program { .. } => (None, None, None),
    };
    let file = file.map(|name| Path::new(name).display().to_string());
    PageData { recipe, seed, sha256: first.stream.sha256.clone(), file }
}

/// What was typed, without what follows an option that is named like a secret.
pub fn told(command: &[String]) -> Vec<String> {
    let follows_secret = |place: usize| {
        let before = place.checked_sub(1).map(|before| format!("{} x", command[before]));
        before.is_some_and(|words| words.starts_with('-') && logins::hidden(&words, &[]).ends_with(HIDDEN))
    };
    let word = |(place, word): (usize, &String)| match follows_secret(place) {
        true => HIDDEN.to_string(),
        false => logins::hidden(word, &[]),
    };
    command.iter().enumerate().map(word).collect()
}

fn target(row: &Row, units: u64) -> PageTarget {
    PageTarget {
        target: row.target.clone(),
        store: row.store.clone(),
        transport: row.transport,
        version: row.version.clone(),
        client_library: row.client_library.clone(),
        units,
        rtt_us: row.rtt_us,
        status: columns::kind(&row.status).to_string(),
        trials: row.trials,
        rank: row.rank,
        seconds: row.numbers.as_ref().map(|numbers| numbers.seconds),
        cpu_us: row.numbers.as_ref().map(|numbers| numbers.cpu_us()).filter(|cpu_us| cpu_us.is_finite()),
    }
}
