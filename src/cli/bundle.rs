//! `kvfair bundle`: a results file with all that a stranger needs to run it again, as one archive.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::again::{Again, digests};
use super::args::{self, Look};
use super::{Exit, complain, interrupted, paged, shown};
use crate::harness::bundle::{
    self, BundleManifest, BundledBy, BundledData, DATA_BYTES_MAX, PAGE, README, RECORDS, SERVERS, data_name,
    record_digest,
};
use crate::harness::load::{self, Parts};
use crate::harness::signals::Interrupt;
use crate::harness::{save, scratch};
use crate::model::answers;
use crate::model::record::Record;
use crate::model::trial::{Data, is_stdin};
use crate::model::units;
use crate::report::page::Mask;
use crate::report::replicated::{self, PageRun};

pub fn bundle(args: &args::Bundle) -> Result<Exit> {
    let results = &args.results;
    let out = args.output.clone().unwrap_or_else(|| results.with_extension("tar.zst"));
    save::is_to_be_new(&out)?;
    if save::is_being_written(results) {
        return Err(anyhow!("{}: its run is still going on\nhint: wait for its end", results.display()));
    }
    let original = shown::read(results, Parts::All)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let path = scratch.path().join(RECORDS);
    let text = masked(results, &Mask::of(&original))?;
    save::write_new(&[(path.clone(), text.clone())])?;
    let mut records = load::records(&path, Parts::All)?;
    records.retain(|record| !record.discarded);
    records.sort_by_key(|record| record.ahead);
    answers::note(&mut records);
    let page = paged::of_records(&records, &Look::default(), Some(&path))?;
    let run = replicated::parse(&page)
        .map_err(|what| anyhow!("{}: nothing of it can be run again: {what}", results.display()))?;
    let (data, file) = data(&original[0], &run)?;
    if interrupt.is_set() {
        return Ok(interrupted(&interrupt, "no bundle was written"));
    }
    let first = &records[0];
    let mut files = BTreeMap::new();
    files.insert(README.to_string(), readme(&run, &data).into_bytes());
    files.insert(PAGE.to_string(), page.into_bytes());
    files.insert(SERVERS.to_string(), servers(&records)?.into_bytes());
    files.extend(file);
    let digests = text.lines().map(record_digest).collect();
    files.insert(RECORDS.to_string(), text.into_bytes());
    let own = std::env::current_exe().context("kvfair cannot find its own program")?;
    let bundled_by = BundledBy { kvfair: env!("CARGO_PKG_VERSION").to_string(), sha256: save::sha256(&own)? };
    let (kvfair, method) = (first.kvfair.clone(), first.method);
    let manifest = BundleManifest {
        form: bundle::FORM,
        kvfair,
        method,
        bundled_by,
        data,
        files: BTreeMap::new(),
        records: digests,
    };
    if let Some(why) = &manifest.data.why_not {
        complain(&format!("kvfair: the data ({}) is not in the bundle: {why}", manifest.data.origin));
    }
    if run.claimed() == 0 {
        complain("kvfair: these results claim nothing: `kvfair rerun` has nothing to judge in this bundle");
    }
    bundle::write(&out, files, manifest)?;
    complain(&format!("bundle: {}", out.display()));
    Ok(Exit::Ok)
}

/// The lines of a results file without what must not be told. A last line that a crash cut off is left out.
fn masked(results: &Path, mask: &Mask) -> Result<String> {
    let text = fs::read_to_string(results).with_context(|| format!("cannot read {}", results.display()))?;
    let mut said = String::with_capacity(text.len());
    for record in text.lines().map_while(|line| serde_json::from_str::<Value>(line).ok()) {
        said.push_str(&mask.record(record).to_string());
        said.push('\n');
    }
    Ok(said)
}

/// A file's name in the archive, and what it holds.
type NamedBytes = (String, Vec<u8>);

/// Where the data is, and the file that holds it.
fn data(first: &Record, run: &PageRun) -> Result<(BundledData, Option<NamedBytes>)> {
    let told = |origin: String, file: Option<String>, why_not: Option<String>| BundledData {
        sha256: run.data.sha256.clone(),
        origin,
        file,
        why_not,
    };
    let path = match &first.job.data {
        Data::Recipe { name, seed } => return Ok((told(format!("recipe {name}, seed {seed}"), None, None), None)),
        Data::Program { .. } => return Ok((told("a program of the author's".to_string(), None, None), None)),
        Data::File { path } => path,
    };
    let origin = run.data.file.clone().unwrap_or_else(|| "standard input".to_string());
    match read_data(path, run) {
        Ok(bytes) => {
            let name = data_name(path);
            Ok((told(origin, Some(name.clone()), None), Some((name, bytes))))
        }
        Err(why) => Ok((told(origin, None, Some(format!("{why:#}"))), None)),
    }
}

/// A file that is still what the run has read, and small enough.
fn read_data(path: &Path, run: &PageRun) -> Result<Vec<u8>> {
    if is_stdin(path) {
        return Err(anyhow!("it came from standard input"));
    }
    let bytes = path.metadata().map_err(|error| anyhow!("it cannot be read: {error}"))?.len();
    if bytes > DATA_BYTES_MAX {
        return Err(anyhow!("it has {}, and at most {} are packed", units::bytes(bytes), units::bytes(DATA_BYTES_MAX)));
    }
    let again = Again::of(run, Some(path.to_path_buf()))?;
    if !digests(&again.args)?.contains(&run.data.sha256) {
        return Err(anyhow!("it was changed since the run"));
    }
    fs::read(path).map_err(|error| anyhow!("it cannot be read: {error}"))
}

/// Each target as it was started.
fn servers(records: &[Record]) -> Result<String> {
    let mut targets: BTreeMap<&str, Value> = BTreeMap::new();
    for record in records {
        let Some(store) = &record.store else { continue };
        targets.entry(record.target.label.as_str()).or_insert_with(|| {
            json!({
                "store": record.target.store,
                "version": store.version,
                "client_library": store.client_library,
                "durability_kept_by": record.keeps,
                "command": store.command,
                "program_sha256": store.program_sha256,
                "settings_in_force": store.settings,
                "settings_asked_for": record.target.settings,
            })
        });
    }
    Ok(format!("{}\n", serde_json::to_string_pretty(&targets)?))
}

fn readme(run: &PageRun, data: &BundledData) -> String {
    let command = run.command.join(" ");
    let held = match (&data.file, &data.why_not) {
        (Some(file), _) => format!("`{file}`, {}", data.origin),
        (None, Some(why)) => format!("{}, not in this bundle: {why}", data.origin),
        (None, None) => data.origin.clone(),
    };
    format!(
        "# A run of kvfair\n\n\
         Made by kvfair {}, method {}, on {}.\n\n\
         - Command: `kvfair {command}`\n\
         - Seed of the order: {}\n\
         - Data: {held}; SHA-256 as the job reads it: {}\n\
         - Claims: {}\n\n\
         `kvfair rerun THIS_FILE` runs the same job with the same seeds on your machine, and says of each claim \
         whether it is reproduced, contradicted, or cannot be told.\n\n\
         | file | contents |\n|---|---|\n\
         | `{RECORDS}` | a record of each trial |\n\
         | `{PAGE}` | the report: open it in a browser |\n\
         | `{SERVERS}` | each store: version, command, settings, SHA-256 of its program |\n\
         | `manifest.json` | the SHA-256 of each file, and versions |\n\n\
         Not in it: configuration files that a server reads besides its command, libraries that are opened at run \
         time, and the program of kvfair that made the records. Passwords, home directories and names of hosts are masked.\n",
        run.kvfair,
        run.method,
        run.began,
        run.seeds.order,
        data.sha256,
        run.claimed()
    )
}
