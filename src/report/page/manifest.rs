//! What a page tells other programs, as one line of JSON: what was run, of which versions and seeds, what came out, and
//! the digests of the data and of the results file. Never the data itself.

use anyhow::{Context, Result};
use serde::Serialize;

use super::PageInput;
use crate::model::load::Load;
use crate::model::logins::{self, HIDDEN};
use crate::model::record::Record;
use crate::model::trial::{Configuration, Data, Durability, Seeds, Split, Via};
use crate::report::cells::Row;
use crate::report::columns;
use crate::report::growth::Grown;
use crate::report::json::ClaimJson;
use crate::report::levers::LeverReport;

/// The form of this object.
pub const FORM: u32 = 1;

#[derive(Serialize)]
struct Manifest<'a> {
    form: u32,
    kvfair: &'a str,
    method: u32,
    debug_build: bool,
    began: &'a str,
    command: Vec<String>,
    seeds: &'a Seeds,
    blocks: usize,
    discarded_blocks: usize,
    durability: Durability,
    configuration: Configuration,
    clients: u32,
    job: ManifestJob<'a>,
    data: ManifestData<'a>,
    results_sha256: Option<&'a str>,
    targets: Vec<ManifestTarget<'a>>,
    claims: &'a [ClaimJson<'a>],
    /// As `--json` prints them.
    #[serde(skip_serializing_if = "Option::is_none")]
    levers: Option<&'a LeverReport>,
    sentence: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    growth: Option<&'a [Grown]>,
}

#[derive(Serialize)]
struct ManifestJob<'a> {
    name: &'a str,
    unit: &'a str,
    sizes: Vec<u64>,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    rtts_us: &'a [u64],
    ops: u64,
    via: Via,
    split: Split,
    load: &'a Option<Load>,
}

/// Where the data came from: what makes it again, or its digest alone.
#[derive(Serialize)]
struct ManifestData<'a> {
    recipe: Option<&'a str>,
    seed: Option<u64>,
    sha256: &'a str,
}

#[derive(Serialize)]
struct ManifestTarget<'a> {
    target: &'a str,
    store: &'a str,
    version: &'a str,
    client_library: &'a str,
    units: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_us: Option<u64>,
    status: &'static str,
    trials: usize,
    rank: Option<(usize, usize)>,
    seconds: Option<f64>,
}

/// As a text that may stand in an element `script`. `growth` is what was found of how costs grow, where that was asked.
pub fn json(input: &PageInput<'_>, growth: Option<&[Grown]>) -> Result<String> {
    let part = input.largest();
    let (first, standings) = (part.seen.records.first().context("no trials")?, part.seen.standings);
    let (recipe, seed) = match &first.job.data {
        Data::Recipe { name, seed } => (Some(name.as_str()), Some(*seed)),
        Data::File { .. } | Data::Program { .. } => (None, None),
    };
    let mut sizes: Vec<u64> =
        input.parts.iter().filter_map(|part| Some(part.seen.records.first()?.stream.units)).collect();
    sizes.dedup();
    let targets = input.parts.iter().flat_map(|part| {
        let units = part.seen.records.first().map_or(0, |record: &Record| record.stream.units);
        part.seen.rows.iter().map(move |row| target(row, units))
    });
    let manifest = Manifest {
        form: FORM,
        kvfair: &first.kvfair,
        method: first.method,
        debug_build: first.debug_build,
        began: &first.run.began,
        command: told(&first.run.command),
        seeds: &first.run.seeds,
        blocks: standings.blocks(),
        discarded_blocks: standings.counted.discarded.len(),
        durability: first.durability,
        configuration: first.configuration,
        clients: first.clients,
        job: ManifestJob {
            name: &first.job.name,
            unit: &first.stream.unit,
            sizes,
            rtts_us: &first.run.rtts_us,
            ops: first.stream.ops,
            via: first.job.via,
            split: first.job.split,
            load: &first.job.load,
        },
        data: ManifestData { recipe, seed, sha256: &first.stream.sha256 },
        results_sha256: input.results.as_ref().map(|results| results.sha256.as_str()),
        targets: targets.collect(),
        claims: &input.claims,
        levers: input.levers.as_ref().map(|levers| &levers.report),
        sentence: &input.sentence,
        growth,
    };
    // No text can end the element, nor begin a comment in it.
    Ok(serde_json::to_string(&manifest)?.replace('<', "\\u003c"))
}

/// What was typed, without what follows an option that is named like a secret.
fn told(command: &[String]) -> Vec<String> {
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

fn target(row: &Row, units: u64) -> ManifestTarget<'_> {
    ManifestTarget {
        target: &row.target,
        store: &row.store,
        version: &row.version,
        client_library: &row.client_library,
        units,
        rtt_us: row.rtt_us,
        status: columns::kind(&row.status),
        trials: row.trials,
        rank: row.rank,
        seconds: row.numbers.as_ref().map(|numbers| numbers.seconds),
    }
}
