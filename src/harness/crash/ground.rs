//! The disk under the data directory: whether a sync there can mean anything.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::harness::gates::processor_probe;
use crate::harness::{machine, preload};
use crate::model::crash::DiskFacts;

/// Enough for a p99.
const SYNCS: usize = 100;
const SYNCS_AT_MOST: Duration = Duration::from_secs(10);

/// File systems that are gone with the machine's power, and mount options that make syncs mean nothing.
const IN_MEMORY: &[&str] = &["tmpfs", "ramfs"];
const NO_SYNC: &[&str] = &["volatile", "nobarrier", "barrier=0"];

/// A store that fails with less room than this may fail for want of it: PostgreSQL asks for 16 MiB at once.
const ROOM_BYTES: u64 = 64 << 20;
/// What systems and stores say of a disk that is full.
const FULL: &[&str] = &["No space left on device", "disk is full", "disk full", "Disk quota exceeded"];

/// What went wrong on a disk with so many bytes free, where that may be the disk's doing and not the store's.
pub fn full(why: &str, free_bytes: Option<u64>) -> Option<String> {
    let left = free_bytes.filter(|free| *free < ROOM_BYTES);
    let is_full = left.is_some() || FULL.iter().any(|words| why.contains(words));
    let disk = left.map_or_else(
        || "a full disk".to_string(),
        |left| format!("a disk with little room ({:.1} MB free)", left as f64 / 1e6),
    );
    is_full.then(|| format!("{disk} proves nothing: {why}"))
}

/// Looks at the disk under `directory`: up to ten seconds.
pub fn look(directory: &Path) -> Result<DiskFacts> {
    let times_ns = processor_probe::disk_syncs(directory, SYNCS, SYNCS_AT_MOST)
        .with_context(|| format!("cannot write and sync a file in {}", directory.display()))?;
    let at = |share: usize| times_ns[(times_ns.len() * share / 100).min(times_ns.len() - 1)];
    let filesystem = machine::filesystem(directory).unwrap_or_else(|| "unknown".to_string());
    let untestable = untestable(&filesystem, &machine::mount_options(directory), &preload::names());
    Ok(DiskFacts { filesystem, sync_ns_p50: at(50), sync_ns_p99: at(99), untestable })
}

fn untestable(filesystem: &str, options: &[String], preloaded: &[String]) -> Option<String> {
    let kind = filesystem.split(' ').next().unwrap_or_default();
    if IN_MEMORY.contains(&kind) {
        return Some(format!(
            "cannot be tested here: the data directory is in memory ({kind}), set TMPDIR to one on a disk"
        ));
    }
    if let Some(option) = options.iter().find(|option| NO_SYNC.contains(&option.as_str())) {
        return Some(format!("cannot be tested here: the data directory is mounted with {option}"));
    }
    let is_loaded = preloaded.iter().any(|name| name.contains("eatmydata"));
    is_loaded.then(|| "cannot be tested here: libeatmydata is loaded, unset LD_PRELOAD".to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_gone_with_the_power_is_void() {
        let none: &[String] = &[];
        assert_eq!(untestable("ext4 on /dev/vda", &["rw".to_string(), "relatime".to_string()], none), None);
        assert!(untestable("tmpfs on shm", none, none).is_some_and(|why| why.contains("in memory")));
        assert!(
            untestable("overlay on overlay", &["volatile".to_string()], none)
                .is_some_and(|why| why.contains("volatile"))
        );
        assert!(untestable("ext3 on /dev/sda", &["barrier=0".to_string()], none).is_some());
        assert!(untestable("ext4 on /dev/vda", none, &["/usr/lib/libeatmydata.so".to_string()]).is_some());
    }

    #[test]
    fn a_full_disk_is_told_by_its_words_or_by_its_room() {
        let gone = "client 0: write 7 is gone";
        assert_eq!(full(gone, Some(ROOM_BYTES)), None);
        assert_eq!(full(gone, None), None);
        assert_eq!(
            full(gone, Some(200_000)).as_deref(),
            Some("a disk with little room (0.2 MB free) proves nothing: client 0: write 7 is gone")
        );
        for words in [
            "refused: MISCONF Errors writing to the AOF file: No space left on device",
            "disk full: No space left on device (os error 28)",
            "refused: sqlite: database or disk is full",
        ] {
            assert!(
                full(words, Some(u64::MAX)).is_some_and(|why| why.starts_with("a full disk proves nothing: ")),
                "{words}"
            );
        }
    }

    #[test]
    fn this_disk_is_looked_at() {
        let directory = tempfile::tempdir().expect("a directory");
        let ground = look(directory.path()).expect("a disk");
        assert!(ground.sync_ns_p50 > 0 && ground.sync_ns_p50 <= ground.sync_ns_p99, "{ground:?}");
        assert!(!ground.filesystem.is_empty());
    }
}
