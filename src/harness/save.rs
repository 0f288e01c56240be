//! Results files: JSON Lines, one record a line, appended the moment a trial is finished, never overwritten. And files
//! that are made of them.

use std::fs::{File, OpenOptions, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::Serialize;
use sha2::{Digest, Sha256};

/// Where results go unless somebody says otherwise.
pub const DIRECTORY: &str = "kvfair-results";

/// A results file that is being written.
pub struct Results {
    path: PathBuf,
    file: File,
    /// Its name in the directory is on the disk.
    has_name: bool,
    /// Something was saved since it was last synced.
    is_ahead: bool,
}

impl Results {
    /// Creates a file that must not be there yet.
    pub fn create(path: &Path) -> Result<Results> {
        directory_of(path)?;
        let file = OpenOptions::new().append(true).create_new(true).open(path);
        let file = file.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => {
                anyhow!("{} is there already, and results are never overwritten: name another file", path.display())
            }
            _ => anyhow!("cannot write results to {}: {error}", path.display()),
        })?;
        // Until it is closed, whoever reads it knows that more will come. A filesystem without locks cannot tell.
        let _ = file.try_lock();
        Ok(Results { path: path.to_path_buf(), file, has_name: false, is_ahead: false })
    }

    /// Appends one record as one line, in one write.
    pub fn save(&mut self, record: &impl Serialize) -> Result<()> {
        let mut line = serde_json::to_vec(record).context("a record could not be written as JSON")?;
        line.push(b'\n');
        self.is_ahead = true;
        self.file.write_all(&line).with_context(|| format!("cannot write results to {}", self.path.display()))
    }

    /// Returns when all that was saved is on the disk: called where nothing is measured, such as after each block.
    pub fn sync(&mut self) -> Result<()> {
        if !self.is_ahead {
            return Ok(());
        }
        let about = || format!("cannot sync results to {}", self.path.display());
        self.file.sync_all().with_context(about)?;
        if !self.has_name {
            let directory = self.path.parent().filter(|directory| !directory.as_os_str().is_empty());
            File::open(directory.unwrap_or(Path::new("."))).and_then(|it| it.sync_all()).with_context(about)?;
            self.has_name = true;
        }
        self.is_ahead = false;
        Ok(())
    }

    /// An error where the file is no longer there, or is another one: somebody has removed it during the run.
    pub fn is_there(&self) -> Result<()> {
        let identity = |meta: &std::fs::Metadata| (meta.dev(), meta.ino());
        let found = std::fs::metadata(&self.path).map(|meta| identity(&meta));
        if found.is_ok_and(|found| self.file.metadata().is_ok_and(|meta| identity(&meta) == found)) {
            return Ok(());
        }
        Err(anyhow!("the results are lost: {} was removed or replaced during the run", self.path.display()))
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the file away again if nothing was ever saved: an empty one would only be in the way. What somebody has
    /// put in its place meanwhile stays.
    pub fn discard_if_empty(&self) {
        if self.is_there().is_ok() && self.file.metadata().is_ok_and(|meta| meta.len() == 0) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Whether a run still writes to that file.
pub fn is_being_written(path: &Path) -> bool {
    // To open a pipe would wait for whoever writes to it.
    let is_file = path.metadata().is_ok_and(|meta| meta.is_file());
    let lock = || File::open(path).ok().map(|file| file.try_lock_shared());
    is_file && matches!(lock(), Some(Err(TryLockError::WouldBlock)))
}

/// Writes files that must not be there yet. Nothing is written if one of them is there, and each is there as a whole or
/// not at all.
pub fn write_new(files: &[(PathBuf, String)]) -> Result<()> {
    files.iter().try_for_each(|(path, _)| is_to_be_new(path))?;
    for (path, text) in files {
        let directory = directory_of(path)?;
        let beside = as_any_file().tempfile_in(directory);
        let mut beside = beside.with_context(|| format!("cannot write to {}", directory.display()))?;
        beside.write_all(text.as_bytes()).with_context(|| format!("cannot write {}", path.display()))?;
        beside.persist_noclobber(path).map_err(|error| match error.error.kind() {
            ErrorKind::AlreadyExists => is_there(path),
            _ => anyhow!("cannot write {}: {}", path.display(), error.error),
        })?;
    }
    Ok(())
}

/// An error where something has that name, or where no file can be made.
pub fn is_to_be_new(path: &Path) -> Result<()> {
    if path.symlink_metadata().is_ok() {
        return Err(is_there(path));
    }
    as_any_file().tempfile_in(directory_of(path)?).with_context(|| format!("cannot write {}", path.display()))?;
    Ok(())
}

/// The directory of a file that is to be written. It must be there: a name with a mistake in it makes no directories.
/// Only the usual one is made.
fn directory_of(path: &Path) -> Result<&Path> {
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if directory == Path::new(DIRECTORY) {
        std::fs::create_dir_all(directory)
            .with_context(|| format!("cannot make the directory {}", directory.display()))?;
    }
    let why = match directory.metadata() {
        Ok(meta) if meta.is_dir() => return Ok(directory),
        Ok(_) => format!("{} is no directory", directory.display()),
        Err(error) if error.kind() == ErrorKind::NotFound => format!("there is no directory {}", directory.display()),
        Err(error) => format!("{}: {error}", directory.display()),
    };
    Err(anyhow!("cannot write {}: {why}\nhint: make the directory, or name another file", path.display()))
}

fn is_there(path: &Path) -> anyhow::Error {
    anyhow!("{} is there already, and is not overwritten: name another", path.display())
}

/// The digest of a file, which anyone can compute elsewhere.
pub fn sha256(path: &Path) -> Result<String> {
    let about = || format!("cannot read {}", path.display());
    let (mut file, mut hash, mut bytes) = (File::open(path).with_context(about)?, Sha256::new(), vec![0; 1 << 16]);
    loop {
        let count = file.read(&mut bytes).with_context(about)?;
        if count == 0 {
            return Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect());
        }
        hash.update(&bytes[..count]);
    }
}

/// A file that is put in place when it is whole. As open to others as any that a program creates: the umask decides.
pub fn as_any_file() -> tempfile::Builder<'static, 'static> {
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o666));
    builder
}

/// The path of a run's results: `kvfair-results/20261121T020000Z-fans.jsonl`, or `...-fans-2.jsonl` if that is there.
pub fn default_path(began: &str, job: &str) -> PathBuf {
    let named = |suffix: &str| Path::new(DIRECTORY).join(format!("{began}-{job}{suffix}.jsonl"));
    let numbered = (2..).map(|number| named(&format!("-{number}")));
    std::iter::once(named("")).chain(numbered).find(|path| !path.exists()).expect("numbers do not run out")
}

/// The results files in the usual place, the newest first; at least one.
/// `with_files` is the command with files named.
pub fn newest_first(with_files: &str) -> Result<Vec<PathBuf>> {
    let hint = format!("hint: `kvfair run fans` makes some, or name files: `{with_files}`");
    let entries = match std::fs::read_dir(DIRECTORY) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            return Err(anyhow!("no results yet: there is no ./{DIRECTORY} here\n{hint}"));
        }
        entries => entries.with_context(|| format!("cannot read ./{DIRECTORY}"))?,
    };
    let files = entries.flatten().map(|entry| entry.path());
    let mut files: Vec<PathBuf> = files.filter(|path| path.extension().is_some_and(|end| end == "jsonl")).collect();
    // Names begin with the time of the run, so their order is its order; the time of writing orders equal ones.
    files.sort_by_cached_key(|path| (path.metadata().and_then(|meta| meta.modified()).ok(), path.clone()));
    files.reverse();
    if files.is_empty() {
        return Err(anyhow!("no results yet in ./{DIRECTORY}\n{hint}"));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_taken_the_place_of_an_empty_file_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("out.jsonl");
        let results = Results::create(&path).expect("a file");
        std::fs::remove_file(&path).expect("it is there");
        std::fs::write(&path, "mine").expect("written");
        results.discard_if_empty();
        assert_eq!(std::fs::read_to_string(&path).expect("it stays"), "mine");
        std::fs::remove_file(&path).expect("it is there");
        Results::create(&path).expect("a file").discard_if_empty();
        assert!(!path.exists(), "our own goes");
    }
}
