//! What the stores say of themselves: how much those of their own counters grew that tell why a store is slow. Which
//! these are is a table of names; all counters are in the records.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};

use super::render::Block;
use super::standing::Counted;
use kvfair_core::record::{Record, UNREAD};
use kvfair_core::units;
use kvfair_stats::sample::Sample;

/// A counter by its own name, with `*` for any words (all such are added up), and what it counts in plain words.
/// Stores' own documents, of which each adapter names its one, say so; those of Redis are at
/// <https://redis.io/docs/latest/commands/info/>.
const TELLING: &[(&str, &str)] = &[
    // What was dropped, or had to go.
    ("evicted_keys", "records dropped to make room"),
    ("evictions", "records dropped to make room"),
    ("slab_reassign_evictions_nomem", "records dropped with their page"),
    ("expired_keys", "records whose time was over"),
    ("reclaimed", "records whose time was over, overwritten"),
    ("st_ro_evict", "unchanged pages dropped from the cache"),
    ("st_rw_evict", "changed pages dropped from the cache"),
    ("SQLITE_DBSTATUS_CACHE_SPILL", "changed pages written early to make room"),
    ("wiredTiger.cache.pages evicted by application threads", "pages that clients had to drop from the cache"),
    ("Innodb_buffer_pool_wait_free", "waits for a free page"),
    // What was not there.
    ("keyspace_misses", "keys not found"),
    ("get_misses", "keys not found"),
    ("SQLITE_DBSTATUS_CACHE_MISS", "pages not in the cache"),
    ("st_cache_miss", "pages not in the cache"),
    ("Innodb_buffer_pool_reads", "pages not in the cache"),
    ("pg_stat_database.blks_read", "pages not in the cache"),
    ("wiredTiger.cache.pages read into cache", "pages not in the cache"),
    ("extra_info.page_faults", "page faults"),
    // Commits and syncs.
    ("me_last_txnid", "commits"),
    ("aof_current_size", "bytes of log"),
    ("aof_delayed_fsync", "writes that waited for a sync of the log"),
    ("Innodb_data_fsyncs", "syncs of files"),
    ("Innodb_os_log_fsyncs", "syncs of the log"),
    ("pg_stat_wal.wal_sync", "syncs of the log"),
    ("wiredTiger.log.log sync operations", "syncs of the log"),
    ("st_scount", "syncs of the log"),
    ("Cumulative WAL syncs", "syncs of the log"),
    ("cnt_sync", "syncs"),
    ("pg_stat_wal.wal_buffers_full", "times the log's buffer was full"),
    ("pg_stat_wal.wal_fpi", "whole pages written to the log"),
    ("SQLITE_DBSTATUS_CACHE_WRITE", "pages written"),
    ("Innodb_log_waits", "waits for room in the log's buffer"),
    // Merges, forks, checkpoints: what is done beside the requests.
    ("Sum Comp(cnt)", "flushes and merges"),
    ("Sum Comp(sec)", "seconds of flushing and merging"),
    ("Cumulative stall H:M:S", "seconds that writers were held up"),
    ("Level * Time(sec)", "seconds of flushing and merging"),
    ("Level * Write(MB)", "MB flushed and merged"),
    ("compactions_completed", "merges"),
    ("time_compacting, s", "seconds of merging"),
    ("thread_pools.MemtableFlushWriter.completed_tasks", "flushes"),
    ("thread_pools.CompactionExecutor.completed_tasks", "merges and their like"),
    ("total_forks", "forks"),
    ("rdb_saves", "snapshots"),
    ("aof_rewrites", "rewrites of the log"),
    ("pg_stat_bgwriter.checkpoints_timed", "checkpoints by the clock"),
    ("pg_stat_bgwriter.checkpoints_req", "checkpoints because there was much log"),
    ("pg_stat_checkpointer.num_timed", "checkpoints by the clock"),
    ("pg_stat_checkpointer.num_requested", "checkpoints because there was much log"),
    ("pg_stat_bgwriter.buffers_backend", "pages that sessions had to write"),
    ("wiredTiger.transaction.transaction checkpoints", "checkpoints"),
    ("conn_yields", "connections that had to let others go first"),
    ("listen_disabled_num", "times that no connection was taken"),
    ("rejected_connections", "connections refused"),
    ("total_error_replies", "answers that were errors"),
];

/// Who waited for whom.
const WAITS: &[(&str, &str)] = &[
    ("Innodb_row_lock_waits", "waits for a row's lock"),
    ("Innodb_row_lock_time", "ms of waiting for rows' locks"),
    ("Table_locks_waited", "waits for a table's lock"),
    ("Innodb_deadlocks", "deadlocks"),
    ("pg_stat_database.deadlocks", "deadlocks"),
    ("metrics.operation.writeConflicts", "writes that had to begin again"),
    ("st_region_wait", "waits for the log's lock"),
    ("thread_pools.*.blocked_tasks_all_time", "tasks that had to wait for a place"),
];

/// What tells besides these why one way to ask a store is faster than another.
const ASKED: &[(&str, &str)] = &[
    ("total_commands_processed", "commands"),
    ("total_net_input_bytes", "bytes received"),
    ("total_net_output_bytes", "bytes sent"),
    ("cmd_get", "gets"),
    ("cmd_set", "sets"),
    ("bytes_read", "bytes received"),
    ("bytes_written", "bytes sent"),
    ("Questions", "statements"),
    ("Bytes_received", "bytes received"),
    ("Bytes_sent", "bytes sent"),
    ("pg_stat_database.xact_commit", "commits"),
    ("st_cache_hit", "pages found in the cache"),
];

/// From so many times as much, or as little, on, a counter has changed.
const CHANGED: f64 = 1.2;

type Counters = BTreeMap<String, [f64; 2]>;

/// What each target says, by name; nothing where no store says anything.
pub fn blocks(records: &[Record]) -> Result<Vec<Block>> {
    let mut targets: BTreeMap<&str, Vec<&Record>> = BTreeMap::new();
    let counted = Counted::of(records).blocks;
    let counts = |record: &&Record| counted.contains(&record.block) && record.took_s().is_some() && record.is_right();
    for record in records.iter().filter(counts) {
        targets.entry(&record.target.label).or_default().push(record);
    }
    let lines = targets.iter().filter_map(|(target, trials)| line(target, trials).transpose());
    let lines: Vec<String> = lines.collect::<Result<_>>()?;
    if lines.is_empty() {
        return Ok(Vec::new());
    }
    let heading = "what the stores say of themselves, from before the first phase that counts to after the final flush \
                   (medians of the trials that count; all of it is in the results file):";
    Ok(vec![Block::Paragraph(heading.to_string()), Block::Remarks(lines)])
}

fn line(target: &str, trials: &[&Record]) -> Result<Option<String>> {
    let unread = trials.iter().find_map(|trial| trial.store.as_ref()?.settings.get(UNREAD));
    let mut said: Vec<Counters> = trials.iter().map(|trial| counters(trial)).collect::<Result<_>>()?;
    said.retain(|said| !said.is_empty());
    let told = match unread {
        Some(why) => format!("could not be asked: {why}"),
        None if said.is_empty() => return Ok(None),
        None => {
            let grown = [grown(TELLING, &said), grown(WAITS, &said)].concat();
            if grown.is_empty() { "nothing of note".to_string() } else { grown.join("; ") }
        }
    };
    Ok(Some(format!("{target}: {told}")))
}

fn counters(record: &Record) -> Result<Counters> {
    record.store_stats.read().map_err(|why| {
        anyhow!("the counters of {} in block {} cannot be read: {why}", record.target.label, record.block)
    })
}

/// What the stores say of clients that waited for each other; nothing where they say nothing, or cannot be read.
pub fn waits(trials: &[&Record]) -> Vec<String> {
    let said: Vec<Counters> = trials.iter().filter_map(|trial| counters(trial).ok()).collect();
    grown(WAITS, &said)
}

/// "records dropped to make room +1,203 (evicted_keys)": the median difference of each of these counters that has one.
fn grown(counters: &[(&str, &str)], trials: &[Counters]) -> Vec<String> {
    let told = counters.iter().filter_map(|(name, words)| {
        let differences = trials.iter().map(|said| difference(said, name)).collect();
        let median = Sample::new(differences)?.median();
        (median != 0.0).then(|| format!("{words} {} ({name})", signed(median)))
    });
    told.collect()
}

/// How much the counters of that name grew, all together.
fn difference(said: &Counters, name: &str) -> f64 {
    match name.split_once('*') {
        None => said.get(name).map_or(0.0, |[before, after]| after - before),
        Some((begin, end)) => {
            let is_one = |found: &str| found.strip_prefix(begin).is_some_and(|rest| rest.ends_with(end));
            said.iter().filter(|(found, _)| is_one(found)).map(|(_, [before, after])| after - before).sum()
        }
    }
}

/// "commands 1,474,142 -> 33": of trials before a change and after it, the counters that changed most, at most so many,
/// by the medians of how much they grew.
pub fn changed(before: &[&Record], after: &[&Record], most: usize) -> Result<Vec<String>> {
    let read = |trials: &[&Record]| -> Result<Vec<Counters>> {
        let right = trials.iter().filter(|record| record.took_s().is_some() && record.is_right());
        right.map(|record| counters(record)).collect()
    };
    let (before, after) = (read(before)?, read(after)?);
    let median = |trials: &[Counters], name: &str| {
        let grown = Sample::new(trials.iter().map(|said| difference(said, name)).collect())?.median();
        Some(grown.max(0.0))
    };
    let mut found: Vec<(f64, String)> = Vec::new();
    for (name, words) in TELLING.iter().chain(WAITS).chain(ASKED) {
        let Some((one, other)) = median(&before, name).zip(median(&after, name)) else { continue };
        // One more of each: what was never counted has no ratio.
        let times = (one + 1.0).max(other + 1.0) / (one + 1.0).min(other + 1.0);
        if times >= CHANGED {
            found.push((times, format!("{words} {} -> {}", plain(one), plain(other))));
        }
    }
    found.sort_by(|one, other| other.0.total_cmp(&one.0));
    found.dedup_by(|one, other| one.1 == other.1);
    Ok(found.into_iter().take(most).map(|(_, words)| words).collect())
}

fn plain(number: f64) -> String {
    signed(number)[1..].to_string()
}

fn signed(number: f64) -> String {
    let sign = if number < 0.0 { '-' } else { '+' };
    let size = number.abs();
    if size < 10.0 && size.fract() != 0.0 {
        return format!("{sign}{}", units::digits(size));
    }
    format!("{sign}{}", units::thousands(size.round() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters(pairs: &[(&str, [f64; 2])]) -> Counters {
        pairs.iter().map(|(name, numbers)| (name.to_string(), *numbers)).collect()
    }

    #[test]
    fn what_grew_and_tells_something_is_named_with_its_median() {
        let first =
            counters(&[("evicted_keys", [5.0, 1208.0]), ("used_memory", [1.0, 9.0]), ("total_forks", [1.0, 1.0])]);
        let second = counters(&[("evicted_keys", [0.0, 5000.0])]);
        let third = counters(&[("evicted_keys", [0.0, 9.0])]);
        assert_eq!(grown(TELLING, &[first, second, third]), ["records dropped to make room +1,203 (evicted_keys)"]);
        assert_eq!(grown(TELLING, &[counters(&[("used_memory", [1.0, 9.0])])]), [""; 0]);
    }

    #[test]
    fn counters_of_one_kind_are_added_up() {
        let levels = counters(&[
            ("Level 0 Time(sec)", [1.0, 2.25]),
            ("Level 1 Time(sec)", [0.0, 1.5]),
            ("Level 1 Files", [0.0, 9.0]),
        ]);
        assert_eq!(grown(TELLING, &[levels]), ["seconds of flushing and merging +2.75 (Level * Time(sec))"]);
    }

    #[test]
    fn numbers_have_their_sign() {
        let shown = [0.25, 12.5, 1234.0, -3.0].map(signed);
        assert_eq!(shown, ["+0.25", "+13", "+1,234", "-3"]);
    }

    #[test]
    fn no_name_stands_twice() {
        let names: std::collections::BTreeSet<_> = TELLING.iter().chain(WAITS).map(|(name, _)| name).collect();
        assert_eq!(names.len(), TELLING.len() + WAITS.len());
    }
}
