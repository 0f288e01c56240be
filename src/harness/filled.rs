//! A store that one child fills and another one reads: the steps of such a trial, and how the store becomes cold in
//! between.

use std::fs::{self, File};
use std::path::Path;

use super::plan::Chosen;
use super::serve::Served;
use super::task::TrialStep;
use super::trial::Bench;
use crate::jobs::lookup::LOOKUP;
use crate::model::record::{Outcome, Record};
use crate::stores::{Launch, Role};

impl Bench<'_> {
    /// What the children of a trial do, one after another. What is only in a process's memory has one child.
    pub(super) fn steps(&self, chosen: &Chosen) -> &'static [TrialStep] {
        let is_filled = self.plan.kind.is_some_and(|kind| kind.name == LOOKUP.name);
        let is_ours = matches!(chosen.adapter.role, Role::Store | Role::ReadOnly) && chosen.place.is_none();
        match (is_filled && is_ours, &chosen.kept) {
            (false, _) => &[TrialStep::Whole],
            (true, None) => &[TrialStep::Fill, TrialStep::Read],
            (true, Some(_)) => &[TrialStep::Read],
        }
    }

    /// Restarts the server, and has the kernel drop the store's files. What is gone with its server stays as it is, and
    /// the record says so.
    pub(super) fn make_cold(
        &self,
        chosen: &Chosen,
        launch: &Launch,
        served: &mut Option<Served>,
        (data, directory): (&Path, &Path),
        record: &mut Record,
    ) -> Result<(), Outcome> {
        if !(chosen.adapter.stays)(self.plan.durability) {
            record.is_warm = true;
            return Ok(());
        }
        let server = served.take();
        let is_served = server.is_some();
        server.map_or(Ok(()), Served::stop).map_err(|reason| Outcome::Failed { reason })?;
        drop_pages(data).map_err(|what| Outcome::Refused { reason: format!("--cold: {what}") })?;
        if is_served {
            *served = Some(self.serve(chosen, launch, data, directory)?);
        }
        Ok(())
    }
}

/// Has the kernel drop all pages of the files below `place` from its page cache. Only what is on a disk can be dropped.
fn drop_pages(place: &Path) -> Result<(), String> {
    lies_on_a_disk(place)?;
    each_file(place, &mut |path| {
        let dropped = File::open(path).and_then(|file| {
            file.sync_all()?;
            dropped(&file)
        });
        dropped.map_err(|error| {
            let path = path.display();
            format!(
                "{path} cannot be dropped from the page cache: {error}; run kvfair as its owner, or leave --cold out"
            )
        })
    })
}

fn each_file(place: &Path, each: &mut dyn FnMut(&Path) -> Result<(), String>) -> Result<(), String> {
    let unread = |error: std::io::Error| format!("{} cannot be read: {error}", place.display());
    let meta = fs::symlink_metadata(place).map_err(unread)?;
    if meta.is_file() {
        return each(place);
    }
    if meta.is_dir() {
        for entry in fs::read_dir(place).map_err(unread)? {
            each_file(&entry.map_err(unread)?.path(), each)?;
        }
    }
    Ok(())
}

/// posix_fadvise(2): a length of 0 is all of the file. Pages that are not written yet stay, so it is synced before.
#[cfg(target_os = "linux")]
fn dropped(file: &File) -> std::io::Result<()> {
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    Ok(posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
}

#[cfg(not(target_os = "linux"))]
fn dropped(_: &File) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// The files of tmpfs and ramfs are the page cache.
#[cfg(target_os = "linux")]
fn lies_on_a_disk(place: &Path) -> Result<(), String> {
    use nix::sys::statfs::{FsType, TMPFS_MAGIC, statfs};
    /// magic.h of Linux; nix does not name it.
    const RAMFS_MAGIC: FsType = FsType(0x8584_58f6_u32 as _);
    let kind = statfs(place).map_err(|error| format!("{}: {error}", place.display()))?.filesystem_type();
    match kind == TMPFS_MAGIC || kind == RAMFS_MAGIC {
        true => Err(format!(
            "{} lies in memory (tmpfs or ramfs), and nothing can be dropped: set TMPDIR to a directory on a disk, or \
             leave --cold out",
            place.display()
        )),
        false => Ok(()),
    }
}

#[cfg(not(target_os = "linux"))]
fn lies_on_a_disk(_: &Path) -> Result<(), String> {
    Ok(())
}
