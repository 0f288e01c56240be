//! A directory that kvfair fills with pages, and fills again. It overwrites and deletes only what it wrote there: a
//! file in the directory has the digest of each.

use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

use super::save;

/// What was written, in the form of `sha256sum`.
pub const MARKER: &str = ".kvfair-site";
/// A longer one is none of ours.
const MARKER_BYTES_MAX: u64 = 4 << 20;

/// Makes the directory hold these files by their names, and no others of an earlier time. Nothing is changed where
/// something else is in the way.
pub fn write(directory: &Path, files: &BTreeMap<String, Vec<u8>>) -> Result<()> {
    let before = written_before(directory)?;
    let marker: String = files.iter().map(|(name, bytes)| format!("{}  {name}\n", digest(bytes))).collect();
    let mut stale = Vec::new();
    for (name, ours) in &before {
        match files.get(name) {
            None if is_ours(directory, name, ours)? => stale.push(name),
            _ => {}
        }
    }
    for (name, bytes) in files {
        let ours = before.get(name).map(String::as_str);
        is_free(directory, name, [ours, Some(digest(bytes).as_str())])?;
    }
    fs::create_dir_all(directory).with_context(|| format!("cannot make the directory {}", directory.display()))?;
    for (name, bytes) in files {
        put(&directory.join(name), bytes)?;
    }
    for name in stale {
        let path = directory.join(name);
        fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
    }
    put(&directory.join(MARKER), marker.as_bytes())
}

/// The names and digests of what lies there from an earlier time; none where the directory is new or empty.
fn written_before(directory: &Path) -> Result<BTreeMap<String, String>> {
    let shown = directory.display();
    let about = || format!("cannot read {}", directory.display());
    if directory.symlink_metadata().is_err() {
        return Ok(BTreeMap::new());
    }
    if !directory.is_dir() {
        bail!("{shown} is no directory\nhint: name one that is new, or that `kvfair site` made");
    }
    let path = directory.join(MARKER);
    if path.symlink_metadata().is_err() {
        if fs::read_dir(directory).with_context(about)?.next().is_some() {
            bail!("{shown} holds files that `kvfair site` did not write\nhint: name a directory that is new or empty");
        }
        return Ok(BTreeMap::new());
    }
    let text = read_at_most(&path, MARKER_BYTES_MAX)?;
    let text = String::from_utf8_lossy(&text);
    let entries = text.lines().map(|line| {
        let (digest, name) = line.split_once("  ")?;
        (is_name(name) && digest.len() == 64).then(|| (name.to_string(), digest.to_string()))
    });
    let entries: Option<BTreeMap<String, String>> = entries.collect();
    entries
        .with_context(|| format!("{}: it is not as `kvfair site` wrote it\nhint: name a new directory", path.display()))
}

/// Whether that may be the name of a file in the directory, and no path out of it.
pub fn is_name(name: &str) -> bool {
    name.ends_with(".html") && !name.contains('/') && !name.chars().any(char::is_control)
}

/// A regular file of at most so many bytes, whole.
pub fn read_at_most(path: &Path, most: u64) -> Result<Vec<u8>> {
    let about = || format!("cannot read {}", path.display());
    // To open a pipe would wait for whoever writes to it.
    if !path.metadata().with_context(about)?.is_file() {
        bail!("{} is no file", path.display());
    }
    let mut bytes = Vec::new();
    fs::File::open(path).with_context(about)?.take(most + 1).read_to_end(&mut bytes).with_context(about)?;
    if bytes.len() as u64 > most {
        bail!("{} has more than {most} bytes", path.display());
    }
    Ok(bytes)
}

/// Whether a file is there as it was written.
fn is_ours(directory: &Path, name: &str, ours: &str) -> Result<bool> {
    let path = directory.join(name);
    match path.symlink_metadata() {
        Ok(meta) => Ok(meta.is_file() && save::sha256(&path)? == ours),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// An error where something of that name is there that is neither what was written before nor what will be.
fn is_free(directory: &Path, name: &str, known: [Option<&str>; 2]) -> Result<()> {
    let path = directory.join(name);
    if path.symlink_metadata().is_err() {
        return Ok(());
    }
    for digest in known.into_iter().flatten() {
        if is_ours(directory, name, digest)? {
            return Ok(());
        }
    }
    bail!(
        "{} is not as `kvfair site` wrote it, and is not overwritten\nhint: move it away, or name a new directory",
        path.display()
    )
}

fn put(path: &Path, bytes: &[u8]) -> Result<()> {
    let about = || format!("cannot write {}", path.display());
    let directory = path.parent().expect("a file lies in a directory");
    let mut beside = save::as_any_file().tempfile_in(directory).with_context(about)?;
    beside.write_all(bytes).with_context(about)?;
    beside.persist(path).with_context(about)?;
    Ok(())
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(all: &[(&str, &str)]) -> BTreeMap<String, Vec<u8>> {
        all.iter().map(|(name, text)| (name.to_string(), text.as_bytes().to_vec())).collect()
    }

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry").file_name());
        let mut names: Vec<String> = entries.map(|name| name.to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_directory_holds_what_was_written_last() {
        let place = tempfile::tempdir().expect("a directory");
        let site = place.path().join("new/site");
        write(&site, &files(&[("a.html", "one"), ("b.html", "two")])).expect("written");
        write(&site, &files(&[("a.html", "three"), ("c.html", "four")])).expect("written again");
        assert_eq!(names(&site), [MARKER, "a.html", "c.html"]);
        assert_eq!(fs::read_to_string(site.join("a.html")).expect("a file"), "three");
        write(place.path().join("empty").as_path(), &files(&[])).expect("written");
    }

    #[test]
    fn what_others_wrote_stays() {
        let place = tempfile::tempdir().expect("a directory");
        let site = place.path().join("site");
        let said = |files: &[(&str, &str)]| format!("{:#}", write(&site, &self::files(files)).expect_err("refused"));
        fs::write(&site, "a file").expect("written");
        assert!(said(&[]).contains("is no directory"));
        fs::remove_file(&site).expect("ours");
        fs::create_dir(&site).expect("ours");
        fs::write(site.join("mine.txt"), "mine").expect("written");
        assert!(said(&[]).contains("did not write"));
        fs::remove_file(site.join("mine.txt")).expect("ours");

        write(&site, &self::files(&[("a.html", "one"), ("b.html", "two")])).expect("written");
        fs::write(site.join("b.html"), "changed").expect("written");
        fs::write(site.join("mine.txt"), "mine").expect("written");
        fs::write(site.join("c.html"), "mine").expect("written");
        assert!(said(&[("b.html", "new")]).contains("b.html is not as"));
        assert!(said(&[("a.html", "new"), ("c.html", "new")]).contains("c.html is not as"));
        assert_eq!(fs::read_to_string(site.join("a.html")).expect("a file"), "one", "nothing was changed");
        // A page that somebody changed is no longer ours to delete.
        write(&site, &self::files(&[])).expect("written");
        assert_eq!(names(&site), [MARKER, "b.html", "c.html", "mine.txt"]);
    }

    #[test]
    fn a_marker_leads_nowhere_else() {
        let place = tempfile::tempdir().expect("a directory");
        let (site, other) = (place.path().join("site"), place.path().join("other.html"));
        fs::write(&other, "one").expect("written");
        for name in ["../other.html", "/other.html", "other.txt", "", MARKER] {
            write(&site, &files(&[])).expect("written");
            fs::write(site.join(MARKER), format!("{}  {name}\n", digest(b"one"))).expect("written");
            let said = format!("{:#}", write(&site, &files(&[])).expect_err("refused"));
            assert!(said.contains("not as `kvfair site` wrote it"), "{name}: {said}");
            fs::remove_file(site.join(MARKER)).expect("ours");
        }
        std::os::unix::fs::symlink(&other, site.join("link.html")).expect("a link");
        fs::write(site.join(MARKER), format!("{}  link.html\n", digest(b"one"))).expect("written");
        assert!(write(&site, &files(&[("link.html", "two")])).is_err(), "a link is none of ours");
        assert_eq!(fs::read_to_string(&other).expect("it is there"), "one");
    }
}
