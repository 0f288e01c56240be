//! A job's data as files: opened once more for each reader, decompressed on the way, and made by a recipe where there
//! is none.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};

use super::signals::{INTERRUPTED, Interrupt};
use crate::jobs::{JobKind, Source};
use crate::words::trial::{Data, JobSettings};

/// Large enough that a system call is nothing beside what it brings.
const BUFFER_BYTES: usize = 256 * 1024;

/// A file that holds a job's data, plain, `.gz` or `.zst`.
pub struct DataFile {
    /// What messages call it.
    name: String,
    path: PathBuf,
}

impl DataFile {
    pub fn new(path: &Path, data: &Data) -> DataFile {
        let name = match data {
            Data::File { path } => path.display().to_string(),
            Data::Recipe { name, seed } => format!("recipe {name}, seed {seed}"),
            Data::Program { command, .. } => command.clone(),
        };
        DataFile { name, path: path.to_path_buf() }
    }
}

impl Source for DataFile {
    fn name(&self) -> &str {
        &self.name
    }

    fn open(&self) -> io::Result<Box<dyn BufRead>> {
        let file = File::open(&self.path)?;
        Ok(match ending(&self.path) {
            Some("gz") => {
                let plain = flate2::bufread::MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, file));
                Box::new(BufReader::with_capacity(BUFFER_BYTES, plain))
            }
            Some("zst") => Box::new(BufReader::with_capacity(BUFFER_BYTES, zstd::Decoder::new(file)?)),
            _ => Box::new(BufReader::with_capacity(BUFFER_BYTES, file)),
        })
    }
}

/// What stands between the dots of a file's name where that is not the form's own name: as those who collect traces
/// call theirs.
const NAMED: &[(&str, &str)] = &[("oracleGeneral", "oracle"), ("lis", "arc")];

fn ending(path: &Path) -> Option<&str> {
    path.extension()?.to_str()
}

/// What stands between the dots of a file's name.
fn parts_of(path: &Path) -> impl Iterator<Item = &str> {
    path.file_name().and_then(|name| name.to_str()).unwrap_or_default().split('.').skip(1)
}

/// Looks at a file that the user named, before anything is started: it must be there, be a file and hold something.
pub fn check(path: &Path) -> Result<()> {
    let named = || format!("--input {}", path.display());
    let meta = fs::metadata(path).with_context(named)?;
    if meta.is_dir() {
        bail!("{}: is a directory; name a file", named());
    }
    if meta.is_file() && meta.len() == 0 {
        bail!("{}: is empty", named());
    }
    File::open(path).with_context(named)?;
    Ok(())
}

/// The form of a file's data: as asked, or by its name's ending, or the job's own form where that tells nothing.
pub fn format(job: &JobKind, path: &Path, asked: Option<&str>) -> Result<String> {
    if let Some(asked) = asked {
        let known = job.formats.contains(&asked);
        let all = job.formats.join(", ");
        return if known { Ok(asked.to_string()) } else { Err(anyhow!("--format {asked}: {} reads {all}", job.name)) };
    }
    let packed = matches!(ending(path), Some("gz" | "zst"));
    let bare = if packed { path.with_extension("") } else { path.to_path_buf() };
    let named =
        NAMED.iter().find(|(part, form)| job.formats.contains(form) && parts_of(&bare).any(|found| found == *part));
    if let Some((_, form)) = named {
        return Ok(form.to_string());
    }
    match ending(&bare) {
        Some(end) if job.formats.contains(&end) => Ok(end.to_string()),
        _ if job.formats.len() == 1 => Ok(job.formats[0].to_string()),
        _ => bail!(
            "--input {}: its name does not tell which form it has\nhint: add `--format {}`",
            path.display(),
            job.formats.join("` or `--format ")
        ),
    }
}

/// Where a trial finds the data: the user's file, or the recipe's, written once into `scratch` for all trials of a run.
pub fn prepare(job: &JobKind, settings: &JobSettings, scratch: &Path, interrupt: &Interrupt) -> Result<PathBuf> {
    match &settings.data {
        Data::File { path } => path.canonicalize().with_context(|| format!("--input {}", path.display())),
        // What it reads is its own affair.
        Data::Program { .. } => Ok(PathBuf::new()),
        // Nothing is read: the clients draw their questions.
        Data::Recipe { .. } if job.formats.is_empty() => Ok(PathBuf::new()),
        Data::Recipe { seed, .. } => {
            let units = settings.units.unwrap_or(job.default_units);
            let path = scratch.join(format!("{}-{seed}-{units}.{}", job.recipe, settings.format));
            if !path.exists() {
                write(job, *seed, units, &path, interrupt)
                    .with_context(|| format!("cannot write the data of recipe {} to {}", job.recipe, path.display()))?;
            }
            Ok(path)
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
