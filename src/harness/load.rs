//! Results files read back, by all processors at once: ten thousand records are read while a user blinks.

use std::borrow::Cow;
use std::fmt;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Seek, SeekFrom};
use std::path::Path;

use anyhow::{Context, Result, anyhow, bail};
use memchr::memchr;
use serde::Deserialize;

use crate::model::finding::Finding;
use crate::model::hist::Packed;
use crate::model::plain;
use crate::model::record::Record;
use crate::model::trial::METHOD;

/// A thread is not started for fewer bytes than these, which take it some milliseconds.
const LEAST_BYTES: u64 = 1 << 20;
/// How much is read at once: it stays in a processor's own cache until it is understood.
const READ_BYTES: usize = 1 << 18;
/// No record is longer than this: a run of 10,000 points takes some megabytes.
const LINE_BYTES_MAX: usize = 64 << 20;
/// Room is made beforehand for so many records at the most, however many a file's length promises: it may be sparse.
const ROOM_MAX: u64 = 1024;

/// How much of each record is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Parts {
    All,
    /// Not the stores' own counters and settings, the commands that started them, and the times of a job whose table
    /// tells none: most of a record's bytes.
    Tables,
}

/// Which line of a results file is none.
#[derive(Debug)]
pub struct BrokenLine {
    /// "out.jsonl:5".
    place: String,
    /// Those that stand before it.
    pub records: Vec<Record>,
}

impl fmt::Display for BrokenLine {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.place)
    }
}

/// A record that another method made, which cannot be read: its fields may be others.
#[derive(Debug)]
pub struct OtherMethod {
    pub method: u32,
    pub job: String,
    pub began: String,
}

impl fmt::Display for OtherMethod {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "measured by method {}, this kvfair is of method {METHOD}\nhint: numbers of different methods are never \
             shown together; measure again, or use the kvfair that wrote it",
            self.method
        )
    }
}

impl std::error::Error for OtherMethod {}

/// Reads a results file back. A last line that was cut off by a crash is left out; any other bad line is an error.
pub fn records(path: &Path, parts: Parts) -> Result<Vec<Record>> {
    let about = || format!("cannot read results from {}", path.display());
    let meta = std::fs::metadata(path).with_context(about)?;
    // What is no file, as a pipe, has no length and is read from its beginning to its end.
    let pieces = match meta.is_file() {
        true => pieces(meta.len(), std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u64)),
        false => vec![(0, u64::MAX)],
    };
    let (first, others) = pieces.split_first().expect("there is a piece");
    let (mut records, mut lines) = (Vec::new(), 0);
    let mut take = |piece: Result<Piece>| -> Result<()> {
        let piece = piece.with_context(about)?;
        lines += piece.records.len();
        // The first ones need not be moved.
        if records.is_empty() {
            records = piece.records
        } else {
            records.extend(piece.records)
        }
        // Pieces come in their order: what stands before this one was whole.
        let place = || format!("{}:{}", path.display(), lines + 1);
        match piece.broken {
            Some(error) => Err(error.context(BrokenLine { place: place(), records: std::mem::take(&mut records) })),
            None => Ok(()),
        }
    };
    std::thread::scope(|scope| {
        let others: Vec<_> = others.iter().map(|&piece| scope.spawn(move || read(path, piece, parts))).collect();
        take(read(path, *first, parts))?;
        others.into_iter().try_for_each(|other| take(other.join().expect("reading does not panic")))
    })?;
    if records.is_empty() {
        bail!("{} holds no records", path.display());
    }
    Ok(records)
}

/// What a command wrote that runs no job; nothing where a file holds records. A last line that was cut off by a crash
/// is left out; any other bad line is an error. What comes through a pipe cannot be read twice, and holds records.
pub fn findings(path: &Path) -> Result<Option<Vec<Finding>>> {
    let about = || format!("cannot read results from {}", path.display());
    if !std::fs::metadata(path).with_context(about)?.is_file() {
        return Ok(None);
    }
    let mut file = BufReader::with_capacity(READ_BYTES, File::open(path).with_context(about)?);
    let (mut findings, mut rest): (Vec<Finding>, _) = (Vec::new(), Vec::new());
    loop {
        let line =
            next_line(&mut file, &mut rest, |line| serde_json::from_slice::<Finding>(line)).with_context(about)?;
        let place = || format!("{}:{}", path.display(), findings.len() + 1);
        match line {
            Line::End => return Ok((!findings.is_empty()).then_some(findings)),
            Line::Whole(_, Ok(mut finding)) => {
                if findings.first().is_some_and(|first| !first.is_of_the_same(&finding)) {
                    bail!("{}: found by another command: it is not shown together with line 1", place());
                }
                let target = finding.target_mut();
                *target = plain::line(target).into_owned();
                findings.push(finding);
            }
            Line::Whole(..) | Line::TooLong if findings.is_empty() => return Ok(None),
            Line::Whole(_, Err(error)) => return Err(anyhow!(error).context(place())),
            Line::TooLong => return Err(too_long().context(place())),
        }
    }
}

/// Results that are no run's.
#[derive(Debug)]
pub struct NoRun {
    /// The command that found them, and what it was.
    command: String,
}

impl fmt::Display for NoRun {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "found by `kvfair {}`, which runs no job\nhint: `kvfair show` prints it", self.command)
    }
}

impl std::error::Error for NoRun {}

/// Where each of so many threads begins and ends, in bytes.
fn pieces(length: u64, most: u64) -> Vec<(u64, u64)> {
    let count = (length / LEAST_BYTES).clamp(1, most);
    (0..count).map(|piece| (length * piece / count, length * (piece + 1) / count)).collect()
}

/// What one thread has read: the records up to the first bad line of its piece.
#[derive(Default)]
struct Piece {
    records: Vec<Record>,
    broken: Option<anyhow::Error>,
}

/// The lines that begin in this piece; the one that goes on from the piece before is the other thread's.
fn read(path: &Path, (begin, end): (u64, u64), parts: Parts) -> Result<Piece> {
    let mut file = File::open(path)?;
    let (mut piece, mut line, mut at) = (Piece::default(), Vec::new(), begin);
    if begin > 0 {
        // Whether a line begins right here, the byte before tells.
        at = file.seek(SeekFrom::Start(begin - 1))?;
    }
    let mut file = BufReader::with_capacity(READ_BYTES, file);
    if begin > 0 {
        match next_line(&mut file, &mut line, |_| ())? {
            Line::End => return Ok(piece),
            Line::TooLong => return Ok(Piece { broken: Some(too_long()), ..piece }),
            Line::Whole(length, ()) => at += length,
        }
    }
    while at < end {
        let (length, record) = match next_line(&mut file, &mut line, record)? {
            Line::End => break,
            Line::TooLong => return Ok(Piece { broken: Some(too_long()), ..piece }),
            Line::Whole(length, record) => (length, record),
        };
        if piece.records.is_empty() {
            // One line tells how many there may be; where memory is cheap, moving records is not.
            piece.records.reserve(((end - begin) / length).min(ROOM_MAX) as usize);
        }
        at += length;
        match record {
            Ok(mut record) => {
                // At once, so that the next record has the same memory: to ask the kernel for more is what takes time.
                // Of levers the counters are told in any case.
                if parts == Parts::Tables && record.levers.is_none() {
                    forget(&mut record);
                }
                piece.records.push(record);
            }
            Err(error) => {
                piece.broken = Some(error);
                break;
            }
        }
    }
    Ok(piece)
}

fn forget(record: &mut Record) {
    record.store_stats = Default::default();
    if let Some(store) = &mut record.store {
        (store.settings, store.command) = Default::default();
    }
    // A table tells them of requests, lookups and queries.
    let are_told = record.job.load.is_some() || record.stream.model.is_some() || record.asked().is_some();
    if !are_told {
        record.phases.iter_mut().for_each(|phase| phase.times_ns = Packed::forgotten());
    }
}

fn too_long() -> anyhow::Error {
    anyhow!("the line has more than {} MiB: not a record of kvfair", LINE_BYTES_MAX >> 20)
}

enum Line<T> {
    /// Its length, and what was made of it.
    Whole(u64, T),
    TooLong,
    /// There is no further whole line.
    End,
}

/// The next line, and what is made of it where it lies. `rest` is for a line that does not lie in one place.
fn next_line<T>(file: &mut BufReader<File>, rest: &mut Vec<u8>, make: impl FnOnce(&[u8]) -> T) -> io::Result<Line<T>> {
    rest.clear();
    loop {
        let here = file.fill_buf()?;
        let Some(end) = memchr(b'\n', here) else {
            if here.is_empty() {
                return Ok(Line::End);
            }
            if rest.len() + here.len() > LINE_BYTES_MAX {
                return Ok(Line::TooLong);
            }
            rest.extend_from_slice(here);
            let length = here.len();
            file.consume(length);
            continue;
        };
        if rest.len() + end > LINE_BYTES_MAX {
            return Ok(Line::TooLong);
        }
        let line = &here[..=end];
        let (length, made) = if rest.is_empty() {
            (line.len(), make(line))
        } else {
            rest.extend_from_slice(line);
            (rest.len(), make(rest))
        };
        file.consume(end + 1);
        return Ok(Line::Whole(length as u64, made));
    }
}

/// One line's record. Of another method not even the fields need be the same.
fn record(line: &[u8]) -> Result<Record> {
    #[derive(Default, Deserialize)]
    struct Written {
        method: u32,
        kvfair: String,
        #[serde(default)]
        job: WrittenJob,
        #[serde(default)]
        run: WrittenRun,
    }
    #[derive(Default, Deserialize)]
    struct WrittenJob {
        #[serde(default)]
        name: String,
    }
    #[derive(Default, Deserialize)]
    struct WrittenRun {
        #[serde(default)]
        began: String,
    }
    // Looked at as a whole: string by string takes three times as long.
    let line = std::str::from_utf8(line).context("not a record of kvfair")?;
    let record = serde_json::from_str(line);
    let written = match &record {
        Ok(Record { method, job, run, .. }) if *method != METHOD => Some(Written {
            method: *method,
            kvfair: String::new(),
            job: WrittenJob { name: job.name.clone() },
            run: WrittenRun { began: run.began.clone() },
        }),
        Ok(_) => None,
        Err(_) => serde_json::from_str(line).ok(),
    };
    match written {
        Some(Written { method, job, run, .. }) if method != METHOD => {
            let (job, began) = (plain::line(&job.name).into_owned(), plain::line(&run.began).into_owned());
            Err(anyhow!(OtherMethod { method, job, began }))
        }
        Some(Written { kvfair, .. }) if record.is_err() && kvfair != env!("CARGO_PKG_VERSION") => {
            let (ours, its) = (env!("CARGO_PKG_VERSION"), plain::line(&kvfair));
            bail!(
                "written by kvfair {its}; this is kvfair {ours}, whose records have other fields\nhint: use the kvfair \
                 that wrote it, or measure again"
            )
        }
        _ => record.map(plain).map_err(|error| match serde_json::from_str::<Finding>(line) {
            Ok(finding) => anyhow!(NoRun { command: plain::line(finding.name()).into_owned() }),
            Err(_) => anyhow!(error).context("not a record of kvfair"),
        }),
    }
}

/// Names from somebody else's file stay in their line, and in their column of a table.
fn plain(mut record: Record) -> Record {
    let Record { target, job, store, kvfair, keeps, .. } = &mut record;
    let facts =
        store.iter_mut().flat_map(|facts| [&mut facts.version, &mut facts.client_library, &mut facts.increment]);
    let names = [&mut target.label, &mut target.store, &mut job.name, kvfair, keeps].into_iter().chain(facts);
    for name in names {
        if let Cow::Owned(line) = plain::line(name) {
            *name = line;
        }
    }
    record
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_the_whole_file() {
        assert_eq!(pieces(0, 8), [(0, 0)]);
        assert_eq!(pieces(LEAST_BYTES * 2 - 1, 8), [(0, LEAST_BYTES * 2 - 1)]);
        for (length, most) in [(LEAST_BYTES * 2, 2), (LEAST_BYTES * 7 + 3, 5), (u64::from(u32::MAX), 64)] {
            let pieces = pieces(length, most);
            assert!(pieces.len() > 1 && pieces[0].0 == 0 && pieces[pieces.len() - 1].1 == length);
            assert!(pieces.windows(2).all(|pair| pair[0].1 == pair[1].0));
        }
    }
}
