//! Private directories for what a run needs: servers' files, sockets, expected states. They go away with the run,
//! however it ends.

use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result};
use nix::fcntl::{FcntlArg, FdFlag, OFlag, fcntl};
use nix::unistd::geteuid;
use tempfile::TempDir;

const PREFIX: &str = "kvfair-";
/// Locked for as long as any process of the run lives.
const LOCK: &str = "kvfair.lock";
/// Names the directory that it was made for. It is there only where locks work.
const MARKER: &str = "kvfair.scratch";

/// All that this process has made.
static MADE: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// A directory of this run alone.
pub struct Scratch {
    directory: TempDir,
    /// Dropped after the directory is gone.
    _lock: File,
}

impl Scratch {
    pub fn path(&self) -> &Path {
        self.directory.path()
    }
}

/// A new directory of our own below TMPDIR, closed to other users. Directories of runs that were killed are removed
/// first.
pub fn make() -> Result<Scratch> {
    let parent = parent();
    remove_orphans(&parent);
    let scratch = make_in(&parent).with_context(|| {
        format!("cannot make a scratch directory in {}\nhint: set TMPDIR to a directory with room", parent.display())
    })?;
    MADE.lock().unwrap_or_else(PoisonError::into_inner).push(scratch.path().to_path_buf());
    Ok(scratch)
}

/// Removes the directories of this process that are still there, for who ends without letting go of them.
pub fn remove_all() {
    for directory in MADE.lock().unwrap_or_else(PoisonError::into_inner).drain(..) {
        let _ = fs::remove_dir_all(directory);
    }
}

/// Where scratch directories are made.
pub fn parent() -> PathBuf {
    let named = std::env::var_os("TMPDIR").filter(|named| !named.is_empty());
    let named = named.map_or_else(|| PathBuf::from("/tmp"), PathBuf::from);
    std::path::absolute(&named).unwrap_or(named)
}

/// From `path` up to the scratch directory of a run; none where it does not lie in one.
pub fn up_from(path: &Path) -> Vec<&Path> {
    let is_scratch =
        |directory: &Path| has_our_name(directory) && is_ours(&directory.join(LOCK), fs::Metadata::is_file);
    let height = path.ancestors().position(is_scratch);
    path.ancestors().take(height.map_or(0, |height| height + 1)).collect()
}

fn make_in(parent: &Path) -> io::Result<Scratch> {
    let mut builder = tempfile::Builder::new();
    let directory = builder.prefix(PREFIX).permissions(Permissions::from_mode(0o700)).tempdir_in(parent)?;
    let path = directory.path().join(LOCK);
    let lock = File::create_new(&path)?;
    // All that we start holds the lock as well, and keeps it should we be killed: flock(2).
    fcntl(&lock, FcntlArg::F_SETFD(FdFlag::empty()))?;
    // A filesystem without locks, or one that grants the same lock twice, cannot tell whether a run still lives.
    if lock.try_lock().is_ok() && File::open(&path)?.try_lock().is_err() {
        fs::write(directory.path().join(MARKER), mark(directory.path())?)?;
    }
    Ok(Scratch { directory, _lock: lock })
}

/// Differs for a copy of the directory and for one that was moved.
fn mark(directory: &Path) -> io::Result<String> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("scratch directory of kvfair: {name} {}\n", fs::symlink_metadata(directory)?.ino()))
}

/// A run killed with -9 cannot clean up: the next one does, once all processes of the first are gone.
fn remove_orphans(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let directory = entry.path();
        if let Some(lock) = orphan(&directory) {
            // What cannot be removed now is not in our way.
            let _ = fs::remove_dir_all(&directory);
            drop(lock);
        }
    }
}

/// The lock of a directory that marker, owner and lock agree upon: ours, and of no process that lives. Other users may
/// have put anything there: nothing is opened before name, type and owner of the directory are known.
fn orphan(directory: &Path) -> Option<File> {
    if !has_our_name(directory) || !is_ours(directory, fs::Metadata::is_dir) {
        return None;
    }
    let marker = io::read_to_string(open_ours(&directory.join(MARKER))?).ok()?;
    let lock = open_ours(&directory.join(LOCK)).filter(|_| mark(directory).is_ok_and(|mark| mark == marker))?;
    lock.try_lock().ok().map(|()| lock)
}

/// A plain file of ours. The path is opened in a way that waits for nothing and follows no link; what was opened is
/// looked at, not what the path names.
fn open_ours(path: &Path) -> Option<File> {
    let flags = OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK;
    let file = File::options().read(true).custom_flags(flags.bits()).open(path).ok()?;
    let meta = file.metadata().ok()?;
    (meta.is_file() && meta.uid() == geteuid().as_raw()).then_some(file)
}

fn has_our_name(directory: &Path) -> bool {
    directory.file_name().and_then(|name| name.to_str()).is_some_and(|name| name.starts_with(PREFIX))
}

/// It is of that kind itself, no link to such a thing, and belongs to the user that we are.
fn is_ours(path: &Path, is: fn(&fs::Metadata) -> bool) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| is(&meta) && meta.uid() == geteuid().as_raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A directory as a killed run leaves it.
    fn left_in(parent: &Path) -> PathBuf {
        let Scratch { directory, _lock } = make_in(parent).unwrap();
        directory.keep()
    }

    #[test]
    fn only_what_marker_owner_and_lock_agree_upon_is_removed() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let left = left_in(parent);
        let living = make_in(parent).unwrap();
        let users = parent.join("kvfair-2024-results");
        fs::create_dir(&users).unwrap();
        let unmarked = left_in(parent);
        fs::remove_file(unmarked.join(MARKER)).unwrap();
        let unlocked = left_in(parent);
        fs::remove_file(unlocked.join(LOCK)).unwrap();
        let moved = parent.join("kvfair-moved");
        fs::rename(left_in(parent), &moved).unwrap();
        let linked = parent.join("kvfair-link");
        let elsewhere = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink(left_in(elsewhere.path()), &linked).unwrap();
        let renamed = parent.join("mine");
        fs::rename(left_in(parent), &renamed).unwrap();
        remove_orphans(parent);
        assert!(!left.exists());
        for kept in [living.path(), &users, &unmarked, &unlocked, &moved, &linked, &renamed] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn what_another_user_owns_is_left() {
        if !geteuid().is_root() {
            return eprintln!("!! not root: directories of other users are NOT tested");
        }
        let parent = tempfile::tempdir().unwrap();
        for part in ["", LOCK, MARKER] {
            let left = left_in(parent.path());
            std::os::unix::fs::chown(left.join(part), Some(65534), None).unwrap();
            remove_orphans(parent.path());
            assert!(left.exists(), "{part}");
        }
    }

    /// The same name, owner and marker: only the lock is no plain file.
    #[test]
    fn a_lock_that_is_no_plain_file_is_neither_waited_for_nor_followed() {
        let parent = tempfile::tempdir().unwrap();
        let of_living = parent.path().join("elsewhere");
        File::create_new(&of_living).unwrap();
        let mut left = Vec::new();
        for kind in ["fifo", "socket", "link", "directory"] {
            let directory = left_in(parent.path());
            let lock = directory.join(LOCK);
            fs::remove_file(&lock).unwrap();
            match kind {
                "fifo" => nix::unistd::mkfifo(&lock, nix::sys::stat::Mode::S_IRWXU).unwrap(),
                "socket" => drop(std::os::unix::net::UnixListener::bind(&lock).unwrap()),
                "link" => std::os::unix::fs::symlink(&of_living, &lock).unwrap(),
                _ => fs::create_dir(&lock).unwrap(),
            }
            left.push(directory);
        }
        let (ended, waits) = std::sync::mpsc::channel();
        let directory = parent.path().to_path_buf();
        std::thread::spawn(move || {
            remove_orphans(&directory);
            ended.send(())
        });
        waits.recv_timeout(std::time::Duration::from_secs(60)).expect("no lock is waited for");
        left.iter().for_each(|directory| assert!(directory.exists(), "{}", directory.display()));
    }

    #[test]
    fn nothing_above_the_scratch_directory_is_named() {
        let parent = tempfile::tempdir().unwrap();
        let scratch = make_in(parent.path()).unwrap();
        let inner = scratch.path().join("0-1/data");
        let found = up_from(&inner);
        assert_eq!(found, [inner.as_path(), inner.parent().unwrap(), scratch.path()]);
        assert!(up_from(parent.path()).is_empty());
    }
}
