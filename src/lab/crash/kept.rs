//! The verified classes of this machine: a file beside the results, one line for each store, version, class and file
//! system that was tried, the newest alone. What stands in it may be anybody's: a line that makes no sense is named and
//! left where it is.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::lab::save;
use crate::words::crash::Tried;
use crate::words::trial::Durability;

/// Not `.jsonl`: it is no results file.
const FILE: &str = "durability.ndjson";

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
            Err(why) => bad.push(format!("{}:{number}: {why}: passed over", path.display())),
        }
    }
    (all, bad)
}

/// Puts one in the place of what was tried of the same before, unless a loss was seen then that was not seen now: that
/// verdict stands, and is returned. The file is there as a whole, old or new, at any moment.
pub fn keep(path: &Path, new: &Tried) -> Result<Option<Tried>> {
    let mut text = Vec::new();
    for line in lines(path)? {
        match tried(&line).ok().filter(|old| old.is_of_the_same(new)) {
            Some(old) if old.stands_against(new) => return Ok(Some(old)),
            Some(_) => {}
            None => {
                text.extend_from_slice(&line);
                text.push(b'\n');
            }
        }
    }
    text.extend(serde_json::to_vec(new).context("a verdict is plain data")?);
    text.push(b'\n');
    let directory = path.parent().unwrap_or(Path::new("."));
    let wrote = fs::create_dir_all(directory).and_then(|()| {
        let mut beside = save::as_any_file().tempfile_in(directory)?;
        beside.write_all(&text)?;
        beside.as_file().sync_all()?;
        beside.persist(path).map_err(|error| error.error)
    });
    wrote.map(|_| None).with_context(|| format!("cannot write the verified classes to {}", path.display()))
}

/// Lines as they are, without those that are empty.
fn lines(path: &Path) -> Result<Vec<Vec<u8>>> {
    match fs::read(path) {
        Ok(bytes) => {
            Ok(bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).map(<[u8]>::to_vec).collect())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error).with_context(|| format!("cannot read the verified classes of {}", path.display())),
    }
}

/// A verdict is worth nothing without kills, nor of a class that promises nothing.
fn tried(line: &[u8]) -> Result<Tried, &'static str> {
    let tried: Tried = serde_json::from_slice(line).map_err(|_| "not a verified class of kvfair")?;
    if tried.kills.is_empty() || tried.class == Durability::None {
        return Err("a verdict without kills");
    }
    Ok(tried)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::crash::{Audit, Ground, Kill};

    fn tried(version: &str, tried: &str) -> Tried {
        Tried {
            store: "some".to_string(),
            version: version.to_string(),
            settings: Default::default(),
            class: Durability::Crash,
            tried: tried.to_string(),
            kvfair: "0".to_string(),
            ground: Ground { filesystem: "ext4 on /dev/vda".to_string(), ..Ground::default() },
            kills: vec![Kill::default()],
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
            outages: crate::words::crash::Outages::Emulated(vec![Kill {
                wrong: wrong.map(str::to_string),
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
        assert!(bad[2].contains(":4: a verdict without kills"), "{bad:?}");
        assert_eq!(
            fs::read_dir(path.parent().expect("a parent")).expect("it is there").count(),
            1,
            "nothing beside it"
        );
    }
}
