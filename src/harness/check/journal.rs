//! The keys that a check may have written, on disk before they are written: whoever has to clean up after a check that
//! died or hangs reads them there.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Mutex, MutexGuard};

/// Keys that may be in the store, and have not been deleted since.
pub struct Journal(Mutex<Inside>);

struct Inside {
    file: File,
    keys: HashSet<Vec<u8>>,
}

impl Journal {
    pub fn create(path: &Path) -> io::Result<Journal> {
        Ok(Journal(Mutex::new(Inside { file: File::create(path)?, keys: HashSet::new() })))
    }

    /// Notes a key that is about to be written. Whether it is new.
    pub fn note(&self, key: &[u8]) -> io::Result<bool> {
        let mut inside = self.inside();
        if inside.keys.contains(key) {
            return Ok(false);
        }
        let length = u32::try_from(key.len()).expect("keys are shorter than 4 GiB");
        inside.file.write_all(&[&length.to_le_bytes(), key].concat())?;
        inside.keys.insert(key.to_vec());
        Ok(true)
    }

    /// What has to be deleted now.
    pub fn take(&self) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.inside().keys).into_iter().collect()
    }

    /// What could not be deleted after all.
    pub fn keep(&self, keys: Vec<Vec<u8>>) {
        self.inside().keys.extend(keys);
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().expect("no thread panics with the journal in hand")
    }
}

/// Every key that a journal holds, each once; a last one that was cut off was never written to the store.
pub fn read(path: &Path) -> io::Result<Vec<Vec<u8>>> {
    let bytes = fs::read(path)?;
    let (mut rest, mut keys) = (bytes.as_slice(), Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<4>()
        && let Some((key, after)) = after.split_at_checked(u32::from_le_bytes(*length) as usize)
    {
        keys.push(key.to_vec());
        rest = after;
    }
    keys.sort();
    keys.dedup();
    Ok(keys)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_on_disk_before_they_are_written_and_a_torn_end_is_passed_over() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("keys");
        let journal = Journal::create(&path).unwrap();
        assert!(journal.note(b"b\n\x00").unwrap() && journal.note(b"a").unwrap());
        assert!(!journal.note(b"a").unwrap(), "noted once");
        assert_eq!(journal.take().len(), 2);
        assert!(journal.note(b"a").unwrap(), "it was deleted in between");
        let mut file = fs::OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(&[9, 0, 0, 0, b'x']).unwrap();
        assert_eq!(read(&path).unwrap(), [b"a".to_vec(), b"b\n\x00".to_vec()]);
    }
}
