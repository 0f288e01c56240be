//! A job's data as files: opened once more for each reader, decompressed on the way, turned once a run into what the
//! job reads, and made by a recipe where there is none.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::signals::{INTERRUPTED, Interrupt};
use crate::jobs::input::{InputSample, Recognised, Shape};
use crate::jobs::{JobKind, Source};
use crate::model::trial::{Data, JobSettings, file_in_words, is_stdin};

pub mod convert;
mod sorted;
mod spool;

use convert::Errand;

/// Large enough that a system call is nothing beside what it brings.
const BUFFER_BYTES: usize = 256 * 1024;
/// By so much of an input its form is told.
const BEGINNING_BYTES: u64 = 256 * 1024;

/// A file that holds a job's data, plain, `.gz` or `.zst`.
pub struct DataFile {
    /// What messages call it.
    name: String,
    path: PathBuf,
    /// Where the expected state tells what is to be heard.
    expected: Option<PathBuf>,
}

impl DataFile {
    pub fn new(path: &Path, data: &Data) -> DataFile {
        let name = match data {
            Data::File { path } => file_in_words(path),
            Data::Recipe { name, seed } => format!("recipe {name}, seed {seed}"),
            Data::Program { command, .. } => command.clone(),
        };
        DataFile { name, path: path.to_path_buf(), expected: None }
    }

    /// With what clients must hear of it, if that job's expected state tells.
    pub fn with_expected(self, path: PathBuf) -> DataFile {
        DataFile { expected: Some(path), ..self }
    }
}

impl Source for DataFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        let file = File::open(&self.path)?;
        Ok(match packing(&self.path)? {
            Some(Packing::Gzip) => {
                let plain = flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, file));
                Box::new(BufReader::with_capacity(BUFFER_BYTES, plain))
            }
            Some(Packing::Zstd) => Box::new(BufReader::with_capacity(BUFFER_BYTES, zstd::Decoder::new(file)?)),
            None => Box::new(BufReader::with_capacity(BUFFER_BYTES, file)),
        })
    }

    fn expected(&self) -> io::Result<Box<dyn BufRead>> {
        let path = self.expected.as_ref().ok_or_else(|| io::Error::other("the expected answers are missing"))?;
        Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, File::open(path)?)))
    }
}

enum Packing {
    Gzip,
    Zstd,
}

/// By the name's ending, or by the first bytes: standard input has no name. RFC 1952, 2.3.1; RFC 8878, 3.1.1.
fn packing(path: &Path) -> io::Result<Option<Packing>> {
    let mut first = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut first)?;
    Ok(match ending(path) {
        "gz" => Some(Packing::Gzip),
        "zst" => Some(Packing::Zstd),
        _ if first.starts_with(&[0x1f, 0x8b, 8]) => Some(Packing::Gzip),
        _ if first.starts_with(&[0x28, 0xb5, 0x2f, 0xfd]) => Some(Packing::Zstd),
        _ => None,
    })
}

fn ending(path: &Path) -> &str {
    path.extension().and_then(|ending| ending.to_str()).unwrap_or_default()
}

/// Looks at a file that the user named, before anything is started: it must be there, be a file and hold something.
pub fn check(path: &Path) -> Result<()> {
    if is_stdin(path) {
        return Ok(());
    }
    let named = || format!("--input {}", path.display());
    let meta = fs::metadata(path).with_context(named)?;
    if meta.is_dir() {
        bail!("{}: is a directory; name a file", named());
    }
    if meta.is_file() && meta.len() == 0 {
        bail!("{}: is empty", named());
    }
    if meta.is_file() {
        File::open(path).with_context(named)?;
    }
    Ok(())
}

/// Tells the form of a file of the user's by its first lines, and turns it into what the job reads. Says how it is
/// read, in words, or nothing where no file is.
pub fn resolve(kind: &JobKind, job: &mut JobSettings, scratch: &Path, interrupt: &Interrupt) -> Result<Option<String>> {
    let (Data::File { path }, Some(recognise)) = (&job.data, kind.recognise) else { return Ok(None) };
    let source = DataFile::new(&raw(path, scratch, interrupt)?, &job.data);
    let beginning = Beginning::of(&source, path)?;
    let recognised = recognise(&beginning.sample(), &job.read_as.clone().unwrap_or_default());
    let found = recognised.map_err(|what| anyhow!("{}: {what}", source.name()))?;
    job.format = found.becomes.to_string();
    if found.shape == Shape::AsItIs {
        job.read_as = None;
        return Ok(Some(format!("read as {}", found.words)));
    }
    job.read_as.get_or_insert_default().form = found.form.to_string();
    let words = convert(kind, job, (&source, &beginning), (&found, scratch), interrupt)?;
    Ok(Some(format!("read as {}; {words}{}", found.words, found.shape.header_in_words())))
}

/// Turns a file into what the job reads, and says what is in it.
fn convert(
    kind: &JobKind,
    job: &JobSettings,
    (source, beginning): (&DataFile, &Beginning),
    (found, scratch): (&Recognised, &Path),
    interrupt: &Interrupt,
) -> Result<String> {
    let out = converted(job, scratch);
    let errand =
        Errand { source, settings: job, scratch, out: out.clone(), sorted_bytes: convert::SORTED_BYTES, interrupt };
    let explain = |what: &str| beginning.sample().fault(what, kind.expected, "");
    let seen = convert::convert(&errand, &found.shape, &explain)?;
    fs::write(skipped_beside(&out), seen.skipped.to_string())
        .with_context(|| format!("cannot write {}", out.display()))?;
    Ok(seen.in_words(&found.shape))
}

/// What is wrong with a file as a whole, with its first line and what it should have been.
pub fn explained(
    kind: &JobKind,
    job: &JobSettings,
    scratch: &Path,
    interrupt: &Interrupt,
    what: &str,
) -> anyhow::Error {
    let Data::File { path } = &job.data else { return anyhow!("{what}") };
    let beginning = raw(path, scratch, interrupt).and_then(|raw| Beginning::of(&DataFile::new(&raw, &job.data), path));
    let told = beginning.map_or_else(|_| what.to_string(), |found| found.sample().fault(what, kind.expected, ""));
    anyhow!("{}: {told}", file_in_words(path))
}

/// Where a file lies once it is turned into what the job reads: pairs as a whole, since a user's may stand anywhere,
/// and lines as many as are asked for.
fn converted(job: &JobSettings, scratch: &Path) -> PathBuf {
    let form = job.read_as.as_ref().map_or("", |read_as| read_as.form.as_str());
    let units = job.units.filter(|_| !form.ends_with("-pairs"));
    scratch.join(format!("{}-{}.{}", job.name, units.map_or("all".to_string(), |units| units.to_string()), job.format))
}

fn skipped_beside(converted: &Path) -> PathBuf {
    converted.with_extension("skipped")
}

/// The user's file itself, or what came from standard input or a pipe.
fn raw(path: &Path, scratch: &Path, interrupt: &Interrupt) -> Result<PathBuf> {
    let named = || format!("--input {}", path.display());
    match is_stdin(path) || !fs::metadata(path).with_context(named)?.is_file() {
        true => spool::keep(path, scratch, interrupt),
        false => path.canonicalize().with_context(named),
    }
}

/// The first bytes of an input.
struct Beginning {
    bytes: Vec<u8>,
    whole: bool,
    ending: String,
}

impl Beginning {
    fn of(source: &DataFile, named: &Path) -> Result<Beginning> {
        let mut bytes = Vec::new();
        let read = source.open().and_then(|reader| reader.take(BEGINNING_BYTES).read_to_end(&mut bytes));
        read.map_err(|error| anyhow!("{}:1: cannot read on: {error}", source.name()))?;
        let bare = if matches!(ending(named), "gz" | "zst") { named.with_extension("") } else { named.to_path_buf() };
        Ok(Beginning { whole: (bytes.len() as u64) < BEGINNING_BYTES, bytes, ending: ending(&bare).to_string() })
    }

    fn sample(&self) -> InputSample<'_> {
        InputSample { bytes: &self.bytes, whole: self.whole, ending: &self.ending }
    }
}

/// A job's data as its trials read it.
pub struct PreparedInput {
    pub path: PathBuf,
    /// Lines of the user's file that could not be used.
    pub skipped: u64,
}

/// Where a trial finds the data: the user's file, or what it was turned into, or the recipe's; the latter two are
/// written once into `scratch` for all trials of a run.
pub fn prepare(kind: &JobKind, settings: &JobSettings, scratch: &Path, interrupt: &Interrupt) -> Result<PreparedInput> {
    let as_it_is = |path| Ok(PreparedInput { path, skipped: 0 });
    match &settings.data {
        Data::File { path } if settings.read_as.is_none() => as_it_is(raw(path, scratch, interrupt)?),
        Data::File { .. } => {
            let path = converted(settings, scratch);
            if !path.exists() {
                resolve(kind, &mut settings.clone(), scratch, interrupt)?;
            }
            let skipped = fs::read_to_string(skipped_beside(&path)).ok().and_then(|text| text.parse().ok());
            Ok(PreparedInput { path, skipped: skipped.unwrap_or(0) })
        }
        // What it reads is its own affair.
        Data::Program { .. } => as_it_is(PathBuf::new()),
        // Nothing is read: the clients draw their questions.
        Data::Recipe { .. } if kind.formats.is_empty() => as_it_is(PathBuf::new()),
        Data::Recipe { seed, .. } => {
            let units = settings.units.unwrap_or(kind.default_units);
            let path = scratch.join(format!("{}-{seed}-{units}.{}", kind.recipe, settings.format));
            if !path.exists() {
                write(kind, *seed, units, &path, interrupt).with_context(|| {
                    format!("cannot write the data of recipe {} to {}", kind.recipe, path.display())
                })?;
            }
            as_it_is(path)
        }
    }
}

fn write(job: &JobKind, seed: u64, units: u64, path: &Path, interrupt: &Interrupt) -> io::Result<()> {
    let file = Interruptible { file: File::create_new(path)?, interrupt };
    let mut out = BufWriter::with_capacity(BUFFER_BYTES, file);
    (job.data)(seed, units, &mut out)?;
    out.flush()
}

/// A file that takes no more once somebody wants us to stop: a recipe may have hours to go.
struct Interruptible<'a> {
    file: File,
    interrupt: &'a Interrupt,
}

impl Write for Interruptible<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.interrupt.is_set() { Err(io::Error::other(INTERRUPTED)) } else { self.file.write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
