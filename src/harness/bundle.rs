//! Bundles: a run's files in one archive that can be given away. The same files give the same bytes. An archive that is
//! read may come from anybody: only files of known names and sizes are taken from it.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path};

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tar::EntryType;

use super::save;

/// The form of a bundle's manifest.
pub const FORM: u32 = 1;
pub const MANIFEST: &str = "manifest.json";
pub const RECORDS: &str = "records.jsonl";
pub const PAGE: &str = "page.html";
pub const README: &str = "README.md";
pub const SERVERS: &str = "servers.json";
/// Where a file of the user's lies, if it is small enough.
pub const DATA: &str = "data/";

/// A larger file of the user's is named by its digest alone.
pub const DATA_BYTES_MAX: u64 = 20 << 20;
/// What each file may have, in bytes. No other file is in a bundle.
const FILES: [(&str, u64); 5] =
    [(MANIFEST, 16 << 20), (RECORDS, 1 << 30), (PAGE, 64 << 20), (README, 1 << 20), (SERVERS, 16 << 20)];
/// All of them, and the archive around them.
const BYTES_MAX: u64 = (1 << 30) + (128 << 20);
/// So much of the digest of each record stands in the manifest.
const RECORD_DIGITS: usize = 16;
/// zstd's own middle: a record is mostly text.
const LEVEL: i32 = 9;

/// What tells whether a bundle is whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundleManifest {
    pub form: u32,
    /// The kvfair that made the records.
    pub kvfair: String,
    pub method: u32,
    /// The kvfair that made the bundle, and the sha256 of its program.
    pub bundled_by: BundledBy,
    pub data: BundledData,
    pub files: BTreeMap<String, BundledFile>,
    /// The beginning of each record's sha256, in their order.
    pub records: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledBy {
    pub kvfair: String,
    pub sha256: String,
}

/// Where the job's data is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledData {
    /// sha256 of what the job read.
    pub sha256: String,
    /// "recipe likes10k, seed 797", "likes.csv": what makes it again, or what it was called.
    pub origin: String,
    /// The file in the bundle that holds it, if one does.
    pub file: Option<String>,
    /// Why no file holds it, where it was a file.
    pub why_not: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BundledFile {
    pub bytes: u64,
    pub sha256: String,
}

/// The beginning of a record's sha256, without its line end.
pub fn record_digest(line: &str) -> String {
    let mut digits = sha256(line.as_bytes());
    digits.truncate(RECORD_DIGITS);
    digits
}

fn sha256(bytes: &[u8]) -> String {
    hex::encode(Sha256::digest(bytes))
}

/// Writes the archive, which must be new. The manifest is among `files` once this has added their digests.
pub fn write(path: &Path, files: BTreeMap<String, Vec<u8>>, mut manifest: BundleManifest) -> Result<()> {
    save::is_to_be_new(path)?;
    let told = |bytes: &Vec<u8>| BundledFile { bytes: bytes.len() as u64, sha256: sha256(bytes) };
    manifest.files = files.iter().map(|(name, bytes)| (name.clone(), told(bytes))).collect();
    let text = format!("{}\n", serde_json::to_string_pretty(&manifest)?);
    let files: BTreeMap<String, Vec<u8>> =
        files.into_iter().chain([(MANIFEST.to_string(), text.into_bytes())]).collect();
    for (name, bytes) in &files {
        allowed(name, bytes.len() as u64).map_err(|what| anyhow!("{}: {what}", path.display()))?;
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::create_dir_all(directory).with_context(|| format!("cannot make the directory {}", directory.display()))?;
    let about = || format!("cannot write {}", path.display());
    let mut beside = save::as_any_file().tempfile_in(directory).with_context(about)?;
    pack(beside.as_file_mut(), &files).with_context(about)?;
    beside.persist_noclobber(path).map_err(|error| anyhow!("cannot write {}: {}", path.display(), error.error))?;
    Ok(())
}

/// Sorted by name, without owner and time.
fn pack(out: &mut File, files: &BTreeMap<String, Vec<u8>>) -> io::Result<()> {
    let mut builder = tar::Builder::new(zstd::Encoder::new(out, LEVEL)?);
    for (name, bytes) in files {
        let mut header = tar::Header::new_ustar();
        header.set_path(name)?;
        header.set_size(bytes.len() as u64);
        header.set_mode(0o644);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        header.set_entry_type(EntryType::Regular);
        header.set_cksum();
        builder.append(&header, bytes.as_slice())?;
    }
    builder.into_inner()?.finish()?.flush()
}

/// Whether a file begins as a bundle does. RFC 8878, 3.1.1.
pub fn is_one(path: &Path) -> io::Result<bool> {
    let mut first = Vec::new();
    File::open(path)?.take(4).read_to_end(&mut first)?;
    Ok(first == [0x28, 0xb5, 0x2f, 0xfd])
}

/// Takes a bundle apart into an empty directory, and checks every file against the manifest.
pub fn unpack(path: &Path, directory: &Path) -> Result<BundleManifest> {
    let seen = take_apart(path, directory).with_context(|| format!("{} is refused", path.display()))?;
    verified(directory, &seen).with_context(|| path.display().to_string())
}

/// The files that were taken out.
fn take_apart(path: &Path, directory: &Path) -> Result<BTreeMap<String, BundledFile>> {
    let file = File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
    let plain = zstd::Decoder::new(file).context("it is no archive of zstd")?;
    let mut archive = tar::Archive::new(BufReader::new(plain).take(BYTES_MAX));
    let mut seen = BTreeMap::new();
    // Raw: a name that is longer than a header would be read into memory, however long it is.
    for entry in archive.entries()?.raw(true) {
        let mut entry = entry.context("it is no whole tar archive")?;
        let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
        let what = |what: &str| anyhow!("it holds {name:?}: {what}");
        match entry.header().entry_type() {
            EntryType::Regular => {}
            EntryType::Symlink | EntryType::Link => bail!(what("a link, which may lead anywhere")),
            EntryType::Char | EntryType::Block | EntryType::Fifo => bail!(what("a device or pipe, which is no file")),
            _ => bail!(what("no plain file, and nothing else is in a bundle")),
        }
        leads_nowhere_else(&name).map_err(|why| what(&why))?;
        let size = entry.header().size().map_err(|_| what("a size that is no number"))?;
        allowed(&name, size).map_err(|why| what(&why))?;
        if seen.contains_key(&name) {
            bail!(what("it is there twice"));
        }
        let out = directory.join(&name);
        let told = copied(&mut entry, &out, size).with_context(|| format!("it holds {name:?}"))?;
        seen.insert(name, told);
    }
    Ok(seen)
}

/// Why a path may lead out of the directory.
fn leads_nowhere_else(name: &str) -> Result<(), String> {
    let path = Path::new(name);
    match path.components().find(|part| !matches!(part, Component::Normal(_))) {
        Some(Component::ParentDir) => Err("a path with `..`, which leads out of the bundle".to_string()),
        Some(Component::RootDir | Component::Prefix(_)) => {
            Err("an absolute path, which leads out of the bundle".to_string())
        }
        _ => Ok(()),
    }
}

/// Why no bundle of kvfair's own has this file in this size.
fn allowed(name: &str, bytes: u64) -> Result<(), String> {
    let most = match name.strip_prefix(DATA) {
        Some(inner) if is_data_name(inner) => Some(DATA_BYTES_MAX),
        _ => FILES.iter().find(|(known, _)| *known == name).map(|(_, most)| *most),
    };
    match most {
        None => Err("no file of a bundle".to_string()),
        Some(most) if bytes > most => Err(format!("{bytes} bytes, and at most {most} are unpacked of it")),
        Some(_) => Ok(()),
    }
}

fn is_data_name(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || "+-_.".contains(letter);
    !name.is_empty() && name.len() <= 80 && !name.starts_with('.') && name.chars().all(is_plain)
}

/// The name of a file of the user's in a bundle: its ending tells how it is packed.
pub fn data_name(path: &Path) -> String {
    let name: String = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or("data");
    let name = if is_data_name(&name) { name } else { format!("input.{ending}") };
    format!("{DATA}{}", if is_data_name(&name) { &name } else { "input" })
}

/// Writes an entry, and tells what it was.
fn copied(entry: &mut impl Read, out: &Path, size: u64) -> Result<BundledFile> {
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(out)?;
    let (mut hash, mut bytes, mut buffer) = (Sha256::new(), 0, vec![0; 1 << 16]);
    loop {
        let count = entry.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        bytes += count as u64;
        if bytes > size {
            bail!("it is longer than it says");
        }
        hash.update(&buffer[..count]);
        file.write_all(&buffer[..count])?;
    }
    if bytes != size {
        bail!("it is cut off: {bytes} of {size} bytes are there");
    }
    Ok(BundledFile { bytes, sha256: hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect() })
}

#[derive(Deserialize)]
struct AnyForm {
    form: u32,
    #[serde(default)]
    kvfair: String,
}

/// The manifest, once every file is as it says.
fn verified(directory: &Path, seen: &BTreeMap<String, BundledFile>) -> Result<BundleManifest> {
    if !seen.contains_key(MANIFEST) {
        bail!("it has no {MANIFEST}: it is no bundle, or is cut off");
    }
    let text = fs::read_to_string(directory.join(MANIFEST)).context(MANIFEST)?;
    let AnyForm { form, kvfair } = serde_json::from_str(&text).context(MANIFEST)?;
    if form != FORM {
        bail!(
            "{MANIFEST} has form {form} (kvfair {kvfair}), and this kvfair reads form {FORM}\nhint: use a kvfair of \
             that version"
        );
    }
    let manifest: BundleManifest = serde_json::from_str(&text).context(MANIFEST)?;
    if seen.get(RECORDS) != manifest.files.get(RECORDS) && seen.contains_key(RECORDS) {
        changed_record(&directory.join(RECORDS), &manifest.records)?;
    }
    for (name, told) in &manifest.files {
        match seen.get(name) {
            None => bail!("{name} is in the manifest and not in the bundle"),
            Some(found) if found != told => bail!(
                "{name} was changed: it has sha256 {} and {} bytes, and the manifest says {} and {}",
                found.sha256,
                found.bytes,
                told.sha256,
                told.bytes
            ),
            Some(_) => {}
        }
    }
    if let Some(name) = seen.keys().find(|name| *name != MANIFEST && !manifest.files.contains_key(*name)) {
        bail!("{name} is in the bundle and not in the manifest");
    }
    for needed in [RECORDS].into_iter().chain(manifest.data.file.as_deref()) {
        if !seen.contains_key(needed) {
            bail!("{needed} is missing");
        }
    }
    Ok(manifest)
}

/// Names the first record that is another one than the manifest says.
fn changed_record(path: &Path, told: &[String]) -> Result<()> {
    let text = fs::read_to_string(path).context(RECORDS)?;
    let lines: Vec<&str> = text.lines().collect();
    let changed = lines.iter().zip(told).position(|(line, told)| record_digest(line) != *told);
    match changed {
        Some(place) => bail!("{RECORDS}:{}: this record was changed: its sha256 is not the manifest's", place + 1),
        None if lines.len() != told.len() => {
            bail!("{RECORDS} was changed: it has {} records, and the manifest says {}", lines.len(), told.len())
        }
        None => Ok(()),
    }
}
