//! Private directories for what a run needs: servers' files, sockets, the truth. They go away with the run, however it
//! ends.

use std::path::Path;

use anyhow::{Context, Result};
use tempfile::TempDir;

const PREFIX: &str = "kvfair-";

/// A new directory of our own below TMPDIR, readable by nobody else. Directories of runs that were killed are removed
/// first.
pub fn make() -> Result<TempDir> {
    let parent = std::env::temp_dir();
    remove_orphans(&parent);
    let prefix = format!("{PREFIX}{}-", std::process::id());
    let made = tempfile::Builder::new().prefix(&prefix).tempdir_in(&parent);
    made.with_context(|| {
        format!("cannot make a scratch directory in {}\nhint: set TMPDIR to a directory with room", parent.display())
    })
}

/// A run killed with -9 cannot clean up; its directory's name tells which process it belonged to.
fn remove_orphans(parent: &Path) {
    for entry in std::fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split_once('-')?.0.parse::<i32>().ok());
        let Some(pid) = pid else { continue };
        let gone = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None) == Err(nix::errno::Errno::ESRCH);
        if gone {
            // Somebody else's cannot be removed, and need not be.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
