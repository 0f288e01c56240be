//! Counts that do not fit into memory: sorted runs in files, which are read together in their order.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

const BUFFER_BYTES: usize = 1 << 18;

pub struct SortedRuns {
    beside: PathBuf,
    paths: Vec<PathBuf>,
}

/// Takes a key and its count.
pub type Take<'a> = &'a mut dyn FnMut(&[u8], u64) -> io::Result<()>;

impl SortedRuns {
    /// Files that begin with this name.
    pub fn beside(path: &Path) -> SortedRuns {
        SortedRuns { beside: path.to_path_buf(), paths: Vec::new() }
    }

    /// Writes one run, which is sorted.
    pub fn add(&mut self, run: &mut dyn Iterator<Item = (Box<[u8]>, u64)>) -> io::Result<()> {
        let mut name = self.beside.clone().into_os_string();
        name.push(format!(".run-{}", self.paths.len()));
        let path = PathBuf::from(name);
        let mut out = BufWriter::with_capacity(BUFFER_BYTES, File::create(&path)?);
        self.paths.push(path);
        for (key, count) in run {
            out.write_all(&(key.len() as u32).to_le_bytes())?;
            out.write_all(&key)?;
            out.write_all(&count.to_le_bytes())?;
        }
        out.flush()
    }

    /// Gives each key once, in their order, with the sum of its counts in all runs and in `last`, which is sorted.
    pub fn merged(&self, last: &mut dyn Iterator<Item = (&[u8], u64)>, each: Take<'_>) -> io::Result<()> {
        let readers = self.paths.iter().map(|path| RunReader::open(path));
        let mut readers = readers.collect::<io::Result<Vec<RunReader>>>()?;
        let mut next: BinaryHeap<Reverse<(Vec<u8>, usize, u64)>> = BinaryHeap::new();
        for (place, reader) in readers.iter_mut().enumerate() {
            next.extend(reader.read()?.map(|(key, count)| Reverse((key, place, count))));
        }
        let mut last = last.peekable();
        while let Some(Reverse((key, place, count))) = next.pop() {
            next.extend(readers[place].read()?.map(|(key, count)| Reverse((key, place, count))));
            let mut sum = count;
            while let Some((other, count)) = last.next_if(|(other, _)| *other <= key.as_slice()) {
                if other == key.as_slice() {
                    sum += count;
                } else {
                    each(other, count)?;
                }
            }
            while next.peek().is_some_and(|Reverse((other, ..))| *other == key) {
                let Some(Reverse((_, place, count))) = next.pop() else { break };
                next.extend(readers[place].read()?.map(|(key, count)| Reverse((key, place, count))));
                sum += count;
            }
            each(&key, sum)?;
        }
        last.try_for_each(|(key, count)| each(key, count))
    }
}

impl Drop for SortedRuns {
    fn drop(&mut self) {
        self.paths.iter().for_each(|path| drop(std::fs::remove_file(path)));
    }
}

struct RunReader(BufReader<File>);

impl RunReader {
    fn open(path: &Path) -> io::Result<RunReader> {
        Ok(RunReader(BufReader::with_capacity(BUFFER_BYTES, File::open(path)?)))
    }

    /// Nothing at the end.
    fn read(&mut self) -> io::Result<Option<(Vec<u8>, u64)>> {
        if self.0.fill_buf()?.is_empty() {
            return Ok(None);
        }
        let (mut length, mut count) = ([0; 4], [0; 8]);
        self.0.read_exact(&mut length)?;
        let mut key = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read_exact(&mut key)?;
        self.0.read_exact(&mut count)?;
        Ok(Some((key, u64::from_le_bytes(count))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_added_up_in_their_order() {
        let scratch = tempfile::tempdir().expect("a directory");
        let mut runs = SortedRuns::beside(&scratch.path().join("expected"));
        let merged = |runs: &SortedRuns, last: &[(&[u8], u64)]| {
            let mut all = String::new();
            let mut take = |key: &[u8], count: u64| {
                all.push_str(&format!("{} {count}, ", String::from_utf8_lossy(key)));
                Ok(())
            };
            runs.merged(&mut last.iter().copied(), &mut take).expect("they can be read");
            all
        };
        assert_eq!(merged(&runs, &[]), "");
        assert_eq!(merged(&runs, &[(b"a", 1), (b"b", 2)]), "a 1, b 2, ");
        let boxed = |run: &[(&str, u64)]| run.iter().map(|(key, count)| (key.as_bytes().into(), *count)).collect();
        for run in [[("b", 1), ("bb", 7), ("d", 1)], [("a", 5), ("b", 10), ("d", 20)]] {
            let run: Vec<(Box<[u8]>, u64)> = boxed(&run);
            runs.add(&mut run.into_iter()).expect("there is room");
        }
        assert_eq!(merged(&runs, &[]), "a 5, b 11, bb 7, d 21, ");
        let last: &[(&[u8], u64)] = &[(b"", 9), (b"b", 100), (b"c", 3), (b"d", 300), (b"e", 4)];
        assert_eq!(merged(&runs, last), " 9, a 5, b 111, bb 7, c 3, d 321, e 4, ");
        drop(runs);
        assert_eq!(std::fs::read_dir(scratch.path()).expect("it is there").count(), 0, "nothing is left");
    }
}
