//! What a trial cost, and what it may be compared with.

use super::times::times;
use super::verified;
use kvfair_core::fans::Encoding;
use kvfair_core::part::Part;
use kvfair_core::record::{Phase, Record};
use kvfair_core::trial::Via;

/// So many that looking at each takes longer than starting a thread.
pub fn is_many(records: &[Record]) -> bool {
    records.len() >= 1_000
}

/// What batch engines are called, which are ranked with none.
pub(super) const BATCH_ENGINES: &str = "batch engines";

/// "via batch", "binary records", "behind a cache": what is asked or written in another way, answered from memory or by
/// a server that may be behind, or keeps less, is no rival of the rest.
pub(super) fn group(trial: &Record) -> String {
    if trial.target.batch {
        return BATCH_ENGINES.to_string();
    }
    let via = (trial.job.via != Via::Portable).then(|| format!("via {}", trial.job.via));
    let packed = (trial.job.fans.encoding != Encoding::Json).then(|| format!("{} records", trial.job.fans.encoding));
    let warm = trial.is_warm.then(|| "in memory only, so it stays warm".to_string());
    let cached = trial.target.cache.map(|_| "behind a cache in the client".to_string());
    let replicas = trial.reads_replicas().then(|| "reads from replicas may be old".to_string());
    via.into_iter()
        .chain(packed)
        .chain(replicas)
        .chain(warm)
        .chain(cached)
        .chain(verified::demoted(trial))
        .collect::<Vec<_>>()
        .join(", ")
}

/// CPU of client and server of a whole trial, in seconds; none where its clock is too coarse to tell.
pub(super) fn cpu_s(trial: &Record) -> Option<f64> {
    let used = |phase: &Phase| phase.client.cpu_s() + phase.servers().map_or(0.0, |servers| servers.cpu_s());
    Some(trial.measured().map(used).sum()).filter(|cpu_s| *cpu_s > 0.0)
}

/// CPU of client and server for each op of the job ([`Record::ops_of_job`]), in microseconds; none where its clock is
/// too coarse to tell.
pub(super) fn cpu_us_per_op(trial: &Record) -> Option<f64> {
    Some(cpu_s(trial)? * 1e6 / trial.ops_of_job() as f64)
}

/// The p99 of a trial's requests, in seconds; none where it has too few.
pub(super) fn latency_p99_s(trial: &Record) -> Option<f64> {
    let run = trial.phase(Part::Run)?;
    let p99_ns = times(trial, run, &run.times_ns).ok()?.quantile_ns(0.99)?;
    Some(p99_ns as f64 / 1e9).filter(|p99_s| *p99_s > 0.0)
}

/// Memory of the store that the kernel cannot take back, at its peak; none where nothing is known.
pub(super) fn memory_bytes(trial: &Record) -> Option<f64> {
    let memory = trial.store_memory()?;
    some_bytes((memory.anonymous_bytes + memory.shared_bytes) as f64)
}

/// What the store's files take on disk.
pub(super) fn disk_bytes(trial: &Record) -> Option<f64> {
    some_bytes(trial.disk_bytes()? as f64)
}

/// What the store wrote towards disks.
pub(super) fn written_bytes(trial: &Record) -> Option<f64> {
    some_bytes(bytes_written(trial)?)
}

/// As `written_bytes`, where none are a number too.
pub(super) fn bytes_written(trial: &Record) -> Option<f64> {
    let usages = trial.measured().map(|phase| phase.servers().unwrap_or(phase.client).bytes_written);
    usages.sum::<Option<u64>>().map(|bytes| bytes as f64)
}

/// No bytes are as good as unknown, as in tables.
fn some_bytes(bytes: f64) -> Option<f64> {
    Some(bytes).filter(|bytes| *bytes > 0.0)
}
