//! Pairs in the order of their bytes, in bounded memory: what does not fit is sorted piece by piece into files, which
//! are then merged. It must not know what the pairs are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

/// Files that are read at once.
const MERGED_AT_ONCE: usize = 64;
/// Of each of them so much is in memory.
const BUFFER_BYTES: usize = 64 * 1024;

/// Takes pairs in any order.
pub struct Sorter {
    /// Where files go; each is removed when it is merged.
    directory: PathBuf,
    /// Bytes that are held before they are put into a file.
    limit_bytes: usize,
    bytes: Vec<u8>,
    /// Where each pair begins in `bytes`, and how long its two parts are.
    spans: Vec<(usize, u32, u32)>,
    files: Vec<PathBuf>,
    made: usize,
}

impl Sorter {
    pub fn new(directory: &Path, limit_bytes: usize) -> Sorter {
        let directory = directory.to_path_buf();
        Sorter { directory, limit_bytes, bytes: Vec::new(), spans: Vec::new(), files: Vec::new(), made: 0 }
    }

    pub fn push(&mut self, first: &[u8], second: &[u8]) -> io::Result<()> {
        let held = self.bytes.len() + self.spans.len() * size_of::<(usize, u32, u32)>();
        if held + first.len() + second.len() > self.limit_bytes && !self.spans.is_empty() {
            self.put_away()?;
        }
        self.spans.push((self.bytes.len(), first.len() as u32, second.len() as u32));
        self.bytes.extend_from_slice(first);
        self.bytes.extend_from_slice(second);
        Ok(())
    }

    /// Gives all pairs in their order, each once.
    pub fn finish(mut self, mut each: impl FnMut(&[u8], &[u8]) -> io::Result<()>) -> io::Result<()> {
        if self.files.is_empty() {
            self.sort();
            return self.spans.iter().try_for_each(|span| {
                let (first, second) = parts(&self.bytes, *span);
                each(first, second)
            });
        }
        self.put_away()?;
        (self.bytes, self.spans) = (Vec::new(), Vec::new());
        while self.files.len() > MERGED_AT_ONCE {
            let some: Vec<PathBuf> = self.files.drain(..MERGED_AT_ONCE).collect();
            let mut out = self.create()?;
            merge(&some, |first, second| write_pair(&mut out, first, second))?;
            out.flush()?;
        }
        merge(&self.files, each)
    }

    fn sort(&mut self) {
        let bytes = &self.bytes;
        self.spans.sort_unstable_by(|one, other| parts(bytes, *one).cmp(&parts(bytes, *other)));
        self.spans.dedup_by(|one, other| parts(bytes, *one) == parts(bytes, *other));
    }

    fn put_away(&mut self) -> io::Result<()> {
        self.sort();
        let mut out = self.create()?;
        for span in &self.spans {
            let (first, second) = parts(&self.bytes, *span);
            write_pair(&mut out, first, second)?;
        }
        out.flush()?;
        self.bytes.clear();
        self.spans.clear();
        Ok(())
    }

    fn create(&mut self) -> io::Result<BufWriter<File>> {
        let path = self.directory.join(format!("sorted-{}", self.made));
        self.made += 1;
        let file = File::create_new(&path)?;
        self.files.push(path);
        Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
    }
}

fn parts(bytes: &[u8], (start, first, second): (usize, u32, u32)) -> (&[u8], &[u8]) {
    bytes[start..start + first as usize + second as usize].split_at(first as usize)
}

fn write_pair(out: &mut impl Write, first: &[u8], second: &[u8]) -> io::Result<()> {
    for part in [first, second] {
        out.write_all(&(part.len() as u32).to_le_bytes())?;
        out.write_all(part)?;
    }
    Ok(())
}

/// The pair that a file is at, and the file's place: the smallest is the next one.
type Head = Reverse<(Vec<u8>, Vec<u8>, usize)>;

/// Gives the pairs of all files in their order, each once, and removes the files.
fn merge(files: &[PathBuf], mut each: impl FnMut(&[u8], &[u8]) -> io::Result<()>) -> io::Result<()> {
    let open = |path: &PathBuf| Ok(BufReader::with_capacity(BUFFER_BYTES, File::open(path)?));
    let mut readers = files.iter().map(open).collect::<io::Result<Vec<_>>>()?;
    let mut heads: BinaryHeap<Head> = BinaryHeap::new();
    for (place, reader) in readers.iter_mut().enumerate() {
        heads.extend(read_pair(reader)?.map(|(first, second)| Reverse((first, second, place))));
    }
    let mut last: Option<(Vec<u8>, Vec<u8>)> = None;
    while let Some(Reverse((first, second, place))) = heads.pop() {
        heads.extend(read_pair(&mut readers[place])?.map(|(first, second)| Reverse((first, second, place))));
        if last.as_ref().is_none_or(|last| last.0 != first || last.1 != second) {
            each(&first, &second)?;
            last = Some((first, second));
        }
    }
    files.iter().try_for_each(fs::remove_file)
}

fn read_pair(reader: &mut impl BufRead) -> io::Result<Option<(Vec<u8>, Vec<u8>)>> {
    if reader.fill_buf()?.is_empty() {
        return Ok(None);
    }
    Ok(Some((read_part(reader)?, read_part(reader)?)))
}

fn read_part(reader: &mut impl Read) -> io::Result<Vec<u8>> {
    let mut length = [0; 4];
    reader.read_exact(&mut length)?;
    let mut part = vec![0; u32::from_le_bytes(length) as usize];
    reader.read_exact(&mut part)?;
    Ok(part)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// All pairs in the order in which they come, and how many files that took.
    fn sorted(pairs: &[(String, String)], limit_bytes: usize) -> (Vec<(String, String)>, usize) {
        let directory = tempfile::tempdir().unwrap();
        let mut sorter = Sorter::new(directory.path(), limit_bytes);
        for (first, second) in pairs {
            sorter.push(first.as_bytes(), second.as_bytes()).unwrap();
            assert!(sorter.bytes.len() <= limit_bytes.max(first.len() + second.len()), "what is held is bounded");
        }
        let (mut found, files) = (Vec::new(), sorter.files.len());
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        sorter
            .finish(|first, second| {
                found.push((text(first), text(second)));
                Ok(())
            })
            .unwrap();
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0, "nothing is left behind");
        (found, files)
    }

    #[test]
    fn what_does_not_fit_comes_in_the_same_order() {
        let pair = |number: u64| {
            let drawn = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
            (format!("user {}", drawn % 97), format!("page {}", "x".repeat((drawn % 7) as usize)))
        };
        let pairs: Vec<_> =
            (0..3_000).map(pair).chain([("a".into(), "bc".into()), ("ab".into(), "c".into())]).collect();
        let expected: Vec<_> = pairs.iter().cloned().collect::<BTreeSet<_>>().into_iter().collect();
        // In memory, in a few files, and in more than are merged at once.
        for (limit_bytes, least) in [(1 << 20, 0), (20_000, 2), (300, MERGED_AT_ONCE * 3), (1, 3_000)] {
            let (found, files) = sorted(&pairs, limit_bytes);
            assert_eq!(found, expected, "{limit_bytes}");
            assert!(files >= least && (least > 0 || files == 0), "{limit_bytes}: {files} files");
        }
        assert!(sorted(&[], 10).0.is_empty());
    }
}
