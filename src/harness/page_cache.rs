//! The kernel's page cache: has it drop the files of a store, and finds out what it kept all the same.

use std::fs::{self, File};
use std::path::Path;

use crate::model::record::COLD_SHARE;

/// Pages of files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Pages {
    all: u64,
    cached: u64,
}

impl Pages {
    fn cached_share(self) -> f64 {
        self.cached as f64 / self.all.max(1) as f64
    }
}

/// Has the kernel drop all pages of the files below `place` from its page cache. Only what is on a disk can be dropped.
/// Says which share of the pages stayed; nothing where the kernel does not tell.
pub fn drop_pages(place: &Path) -> Result<Option<f64>, String> {
    lies_on_a_disk(place)?;
    drop_each(place)?;
    let share = cached_share(place)?;
    // What was being written or read just then may be dropped the second time.
    if share.is_some_and(|share| share > COLD_SHARE) {
        drop_each(place)?;
        return cached_share(place);
    }
    Ok(share)
}

fn drop_each(place: &Path) -> Result<(), String> {
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

fn cached_share(place: &Path) -> Result<Option<f64>, String> {
    let mut sum = Some(Pages::default());
    each_file(place, &mut |path| {
        let pages = File::open(path).and_then(|file| cached(&file)).ok();
        sum = sum.zip(pages).map(|(sum, pages)| Pages { all: sum.all + pages.all, cached: sum.cached + pages.cached });
        Ok(())
    })?;
    Ok(sum.map(Pages::cached_share))
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

#[cfg(target_os = "linux")]
use linux::{cached, dropped, lies_on_a_disk};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::path::Path;

    use nix::errno::Errno;
    use nix::fcntl::{PosixFadviseAdvice, posix_fadvise};
    use nix::sys::statfs::{FsType, TMPFS_MAGIC, statfs};

    use super::Pages;

    /// Pages that are asked about at once.
    const AT_ONCE: usize = 1 << 16;

    /// posix_fadvise(2): a length of 0 is all of the file. Pages that are not written yet stay, so it is synced before.
    pub fn dropped(file: &File) -> io::Result<()> {
        Ok(posix_fadvise(file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?)
    }

    /// How many pages a file has, and how many of them are in the page cache: mincore(2). Its owner and
    /// those who may write it are told; to others it says that all are there.
    pub fn cached(file: &File) -> io::Result<Pages> {
        let mut pages = Pages::default();
        if file.metadata()?.len() == 0 {
            return Ok(pages);
        }
        // Nobody reads or writes through it.
        let mapping = memmap2::MmapOptions::new().map_raw_read_only(file)?;
        let page_bytes = usize::try_from(procfs::page_size()).map_err(io::Error::other)?;
        let mut told = vec![0_u8; AT_ONCE.min(mapping.len().div_ceil(page_bytes))];
        for begin in (0..mapping.len()).step_by(AT_ONCE * page_bytes) {
            let length = (mapping.len() - begin).min(AT_ONCE * page_bytes);
            let count = length.div_ceil(page_bytes);
            // SAFETY: the address is a page's, since a mapping begins at one and `begin` is a number of whole pages;
            // all of `length` bytes are mapped; and there is room for a byte for each of their pages. The kernel looks
            // at no byte of the file. Tested below.
            let code =
                unsafe { nix::libc::mincore(mapping.as_ptr().add(begin).cast_mut().cast(), length, told.as_mut_ptr()) };
            Errno::result(code)?;
            pages.all += count as u64;
            // The lowest bit says whether it is there; the others are kept for later.
            pages.cached += told[..count].iter().filter(|page| **page & 1 == 1).count() as u64;
        }
        Ok(pages)
    }

    /// The files of tmpfs and ramfs are the page cache.
    pub fn lies_on_a_disk(place: &Path) -> Result<(), String> {
        /// magic.h of Linux; nix does not name it.
        const RAMFS_MAGIC: FsType = FsType(0x8584_58f6_u32 as _);
        let kind = statfs(place).map_err(|error| format!("{}: {error}", place.display()))?.filesystem_type();
        match kind == TMPFS_MAGIC || kind == RAMFS_MAGIC {
            true => Err(format!(
                "{} lies in memory (tmpfs or ramfs), and nothing can be dropped: set TMPDIR to a directory on a disk, \
                 or leave --cold out",
                place.display()
            )),
            false => Ok(()),
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn dropped(_: &File) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn cached(_: &File) -> std::io::Result<Pages> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(not(target_os = "linux"))]
fn lies_on_a_disk(_: &Path) -> Result<(), String> {
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::hint::black_box;

    use super::*;

    /// A file of so many pages below a directory of its own.
    fn store(pages: usize) -> Option<(tempfile::TempDir, File)> {
        let directory = tempfile::tempdir().expect("a directory");
        // Where temporary files are in memory there is nothing to be seen.
        lies_on_a_disk(directory.path()).ok()?;
        let path = directory.path().join("below").join("data");
        fs::create_dir(directory.path().join("below")).expect("a directory");
        fs::write(&path, vec![7; pages * 4096]).expect("written");
        File::open(&path).ok().map(|file| (directory, file))
    }

    #[test]
    fn what_was_written_is_cached_and_dropped() {
        let Some((directory, file)) = store(300) else { return };
        assert_eq!(cached(&file).expect("it tells"), Pages { all: 300, cached: 300 });
        assert_eq!(drop_pages(directory.path()), Ok(Some(0.0)));
        assert_eq!(cached(&file).expect("it tells"), Pages { all: 300, cached: 0 });
        let empty = tempfile::tempfile().expect("a file");
        assert_eq!(cached(&empty).expect("it tells"), Pages::default());
    }

    /// More pages than are asked about at once, and a last one that is not whole: a file with holes has none cached.
    #[test]
    fn a_long_file_is_counted_to_its_end() {
        let file = tempfile::tempfile().expect("a file");
        let pages = (1 << 17) + 1;
        file.set_len(pages * 4096 - 5).expect("a long file");
        assert_eq!(cached(&file).expect("it tells"), Pages { all: pages, cached: 0 });
    }

    /// What somebody else has mapped and read stays.
    #[test]
    fn what_is_mapped_stays_and_is_told() {
        let Some((directory, file)) = store(100) else { return };
        // SAFETY: the file is this test's alone, and nobody changes it.
        let mapping = unsafe { memmap2::Mmap::map(&file).expect("mapped") };
        let read =
            |pages: usize| black_box(mapping.chunks(4096).take(pages).map(|page| u64::from(page[0])).sum::<u64>());
        assert_eq!(read(40), 280);
        let share = drop_pages(directory.path()).expect("dropped").expect("told");
        assert!((0.4..1.0).contains(&share), "{share}");
    }
}
