//! The verified durability levels of this machine: a file beside the results, one line for each store, version,
//! durability level and file system that was tried, the newest alone. What stands in it may be anybody's: a line that
//! makes no sense is named and left where it is.

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::harness::save;
use crate::model::crash::Tried;

/// Not `.jsonl`: it is no results file.
const FILE: &str = "durability.ndjson";
/// As long as a record of a results file may be: some ten thousand verdicts.
const BYTES_MAX: u64 = 64 << 20;

/// Where it is.
pub fn path() -> PathBuf {
    Path::new(save::DIRECTORY).join(FILE)
}

/// All that was tried, and what is wrong with the lines that were passed over.
pub fn read(path: &Path) -> (Vec<Tried>, Vec<String>) {
    let (mut all, mut bad) = (Vec::new(), Vec::new());
    for (number, line) in (1..).zip(lines(path).unwrap_or_else(|error| {
        bad.push(format!("{error:#}"));
        Vec::new()
    })) {
        match tried(&line) {
            Ok(tried) => all.push(tried),
            Err(why) => bad.push(format!("{}:{number}: {why}: skipped", path.display())),
        }
    }
    (all, bad)
}

/// Puts one in the place of what was tried of the same before, unless a loss was seen then that was not seen now: that
/// verdict stands, and is returned. What was kept of the same without evidence goes.
pub fn keep(path: &Path, new: &Tried) -> Result<Option<Tried>> {
    let mut text = Vec::new();
    for line in lines(path)? {
        match parsed(&line).ok().filter(|old| old.is_of_the_same(new)) {
            Some(old) if old.has_evidence() && old.stands_against(new) => return Ok(Some(old)),
            Some(_) => {}
            None => push(&mut text, &line),
        }
    }
    push(&mut text, &serde_json::to_vec(new).context("a verdict is plain data")?);
    write(path, &text).map(|()| None)
}

/// Removes all that is kept of the store of that name, and returns it: a verdict, or what is wrong with its line.
/// Without any the file stays as it is.
pub fn forget(path: &Path, store: &str) -> Result<Vec<Result<Tried, &'static str>>> {
    let of_the_store = |line: &[u8]| {
        serde_json::from_slice::<serde_json::Value>(line).is_ok_and(|line| line["store"].as_str() == Some(store))
    };
    let (gone, left): (Vec<_>, Vec<_>) = lines(path)?.into_iter().partition(|line| of_the_store(line));
    if !gone.is_empty() {
        let mut text = Vec::new();
        left.iter().for_each(|line| push(&mut text, line));
        write(path, &text)?;
    }
    Ok(gone.iter().map(|line| tried(line)).collect())
}

fn push(text: &mut Vec<u8>, line: &[u8]) {
    text.extend_from_slice(line);
    text.push(b'\n');
}

/// The file is there as a whole, old or new, at any moment, and on a full disk it stays the old one.
fn write(path: &Path, text: &[u8]) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let wrote = fs::create_dir_all(directory).and_then(|()| {
        let mut beside = save::as_any_file().tempfile_in(directory)?;
        beside.write_all(text)?;
        beside.as_file().sync_all()?;
        beside.persist(path).map_err(|error| error.error)
    });
    wrote.map(|_| ()).with_context(|| format!("cannot write the verified durability levels to {}", path.display()))
}

/// Lines as they are, without those that are empty. What is too long was not written by us, and is not read to its end.
fn lines(path: &Path) -> Result<Vec<Vec<u8>>> {
    let read = || {
        let mut bytes = Vec::new();
        fs::File::open(path)?.take(BYTES_MAX + 1).read_to_end(&mut bytes).map(|_| bytes)
    };
    match read() {
        Ok(bytes) if bytes.len() as u64 > BYTES_MAX => {
            let (path, mib) = (path.display(), BYTES_MAX >> 20);
            bail!(
                "{path} has more than {mib} MiB: these are no verified durability levels of kvfair\nhint: move it away"
            )
        }
        Ok(bytes) => {
            Ok(bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => {
            Err(error).with_context(|| format!("cannot read the verified durability levels of {}", path.display()))
        }
    }
}

fn parsed(line: &[u8]) -> Result<Tried, &'static str> {
    serde_json::from_slice(line).map_err(|_| "not a verified durability level of kvfair")
}

fn tried(line: &[u8]) -> Result<Tried, &'static str> {
    let tried = parsed(line)?;
    let why = "a verdict without evidence: no kill, or one without an acknowledged write before it";
    if tried.has_evidence() { Ok(tried) } else { Err(why) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::crash::{Audit, DiskFacts, Kill};
    use crate::model::trial::Durability;

    fn tried(version: &str, tried: &str) -> Tried {
        Tried {
            store: "some".to_string(),
            version: version.to_string(),
            settings: Default::default(),
            level: Durability::Crash,
            tried: tried.to_string(),
            kvfair: "0".to_string(),
            ground: DiskFacts { filesystem: "ext4 on /dev/vda".to_string(), ..DiskFacts::default() },
            preloaded: Vec::new(),
            kills: vec![Kill { acknowledged: 10, ..Kill::default() }],
            audit: Audit::Unknown("no strace".to_string()),
            outages: Default::default(),
        }
    }

    #[test]
    fn a_loss_once_seen_stands_until_kvfair_or_the_store_is_another() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(FILE);
        let gone = |mut tried: Tried| {
            tried.kills[0].wrong = Some("gone".to_string());
            tried
        };
        let kept = |new: &Tried| {
            let stands = keep(&path, new).expect("kept").map(|old| old.tried);
            (stands, read(&path).0.last().expect("one").tried.clone())
        };
        let days = ["monday", "tuesday", "wednesday", "thursday"].map(str::to_string);
        assert_eq!(kept(&tried("1", "monday")), (None, days[0].clone()));
        assert_eq!(kept(&gone(tried("1", "tuesday"))), (None, days[1].clone()));
        assert_eq!(kept(&tried("1", "wednesday")), (Some(days[1].clone()), days[1].clone()));
        assert_eq!(kept(&gone(tried("1", "thursday"))), (None, days[3].clone()));
        assert_eq!(kept(&Tried { kvfair: "1".to_string(), ..tried("1", "monday") }), (None, days[0].clone()));
        let outage = |wrong: Option<&str>| Tried {
            outages: crate::model::crash::Outages::Emulated(vec![Kill {
                wrong: wrong.map(str::to_string),
                acknowledged: 10,
                ..Kill::default()
            }]),
            ..tried("2", wrong.unwrap_or("wednesday"))
        };
        assert_eq!(kept(&outage(Some("gone"))).1, "gone");
        assert_eq!(kept(&outage(None)).1, "gone");
        assert_eq!(kept(&gone(tried("2", "thursday"))).1, "thursday", "a kill counts more");
        assert_eq!(kept(&outage(Some("gone"))).1, "thursday");
    }

    #[test]
    fn the_newest_of_each_is_kept_and_bad_lines_are_named_and_left() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("results").join(FILE);
        assert_eq!(read(&path), (Vec::new(), Vec::new()), "nothing was tried yet");
        keep(&path, &tried("1", "monday")).expect("kept");
        keep(&path, &tried("2", "monday")).expect("kept");
        let none = Tried { kills: Vec::new(), ..tried("3", "never") };
        let mut text = fs::read(&path).expect("the file");
        text.extend_from_slice(b"\xff\xfe{\n{\"store\":1}\n");
        text.extend(serde_json::to_vec(&none).expect("plain data"));
        fs::write(&path, text).expect("written");
        keep(&path, &tried("1", "tuesday")).expect("kept");
        let (all, bad) = read(&path);
        let seen: Vec<_> = all.iter().map(|tried| (tried.version.as_str(), tried.tried.as_str())).collect();
        assert_eq!(seen, [("2", "monday"), ("1", "tuesday")]);
        assert_eq!(bad.len(), 3, "{bad:?}");
        assert!(bad[2].contains(":4: a verdict without evidence"), "{bad:?}");
        assert_eq!(
            fs::read_dir(path.parent().expect("a parent")).expect("it is there").count(),
            1,
            "nothing beside it"
        );
    }

    /// A file without an end of its own, or one that is only long.
    #[test]
    fn a_file_that_is_too_long_is_not_read_to_its_end() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(FILE);
        fs::File::create(&path).and_then(|file| file.set_len(1 << 33)).expect("a sparse file");
        let (all, bad) = read(&path);
        assert!(all.is_empty() && bad.len() == 1 && bad[0].contains("has more than 64 MiB"), "{bad:?}");
        assert!(keep(&path, &tried("1", "monday")).is_err(), "it is not overwritten");
    }

    #[test]
    fn what_has_no_evidence_stands_against_nothing_and_what_is_forgotten_is_gone() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join(FILE);
        assert_eq!(forget(&path, "some").expect("nothing to forget"), []);
        assert!(!path.exists());
        let refused = Kill { wrong: Some("disk full: No space left on device".to_string()), ..Kill::default() };
        let old = Tried { kills: vec![refused], ..tried("1", "monday") };
        let other = Tried { store: "other".to_string(), ..tried("1", "monday") };
        let lines = [&old, &other].map(|tried| serde_json::to_string(tried).expect("plain data")).join("\n");
        fs::write(&path, format!("no JSON\n{{\"store\":\"some\"}}\n{lines}\n")).expect("written");
        let (all, bad) = read(&path);
        assert_eq!((all.len(), bad.len()), (1, 3));
        assert!(bad[2].contains(":3: a verdict without evidence"), "{bad:?}");
        assert_eq!(keep(&path, &tried("1", "tuesday")).expect("kept"), None);
        assert_eq!((read(&path).0.len(), read(&path).1.len()), (2, 2), "the line without evidence is gone");
        assert_eq!(forget(&path, "som").expect("read"), [], "names are whole");
        let gone = forget(&path, "some").expect("forgotten");
        assert_eq!(gone, [Err("not a verified durability level of kvfair"), Ok(tried("1", "tuesday"))]);
        let left = serde_json::to_string(&other).expect("plain data");
        assert_eq!(fs::read_to_string(&path).expect("the file"), format!("no JSON\n{left}\n"));
    }
}
