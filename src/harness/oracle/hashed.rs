//! The digest of a job's data, taken while the data is read.

use std::io::{self, BufRead, Read};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use crate::harness::input::DataFile;
use crate::jobs::Source;

/// A source whose bytes are hashed as they are consumed.
pub struct Hashed {
    source: DataFile,
    hash: Arc<Mutex<Sha256>>,
}

impl Hashed {
    pub fn new(source: DataFile) -> Hashed {
        Hashed { source, hash: Default::default() }
    }

    /// Of what was consumed so far.
    pub fn sha256(&self) -> String {
        hex::encode(self.hash.lock().expect("no reader panics").clone().finalize())
    }
}

impl Source for Hashed {
    fn name(&self) -> &str {
        self.source.name()
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        Ok(Box::new(HashedReader { inner: self.source.open()?, hash: self.hash.clone() }))
    }
}

struct HashedReader {
    inner: Box<dyn BufRead>,
    hash: Arc<Mutex<Sha256>>,
}

impl Read for HashedReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.fill_buf()?.read(out)?;
        self.consume(count);
        Ok(count)
    }
}

impl BufRead for HashedReader {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, count: usize) {
        // What is consumed is still in the buffer.
        if let Ok(buffer) = self.inner.fill_buf() {
            self.hash.lock().expect("no reader panics").update(&buffer[..count]);
        }
        self.inner.consume(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trial::Data;

    #[test]
    fn what_was_read_is_hashed_once_however_it_was_read() {
        let scratch = tempfile::tempdir().expect("a directory");
        let path = scratch.path().join("mine.txt");
        std::fs::write(&path, "one\ntwo\nthree\n").expect("there is room");
        let source = Hashed::new(DataFile::new(&path, &Data::File { path: path.clone() }));
        assert!(source.name().ends_with("mine.txt"), "{}", source.name());
        let mut reader = source.open().expect("it is there");
        let (mut line, mut rest) = (String::new(), Vec::new());
        reader.read_line(&mut line).expect("it can be read");
        assert_eq!(source.sha256(), hex::encode(Sha256::digest("one\n")));
        reader.read_to_end(&mut rest).expect("it can be read");
        assert_eq!((line.as_str(), rest.as_slice()), ("one\n", &b"two\nthree\n"[..]));
        assert_eq!(source.sha256(), hex::encode(Sha256::digest("one\ntwo\nthree\n")));
    }
}
