//! Keys of a store that is not ours, drawn to be read, for a trial that writes nothing.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::{Early, Event, TrialTask, tell};
use crate::jobs::JobKind;
use crate::jobs::keyed::existing::Existing;
use crate::model::load::Load;
use crate::model::op::{Fault, KeyList};
use crate::model::record::KEYS_DRAWN;
use crate::stores::Store;

/// The job on the keys that the store holds; none where the trial brings keys of its own.
pub fn job(trial: &TrialTask, kind: &JobKind, store: &dyn Store) -> Result<Option<Existing>, Early> {
    let Some(Load { records, read_only: true, .. }) = trial.job.load else { return Ok(None) };
    let reach = |fault: Fault| super::reach(&trial.launch.place, &fault);
    store.leave_no_trace().map_err(reach)?;
    let noted = noted(&trial.drawn).map_err(|error| unnoted(&trial.drawn, &error))?;
    let keys = match noted {
        Some(keys) => Some(keys),
        None => store.existing(records as usize).map_err(reach)?,
    };
    let refused = |what: String| Err(Early::Refused(what));
    let Some(keys) = keys else {
        return refused(format!("{} cannot list its keys, so --read-only has none to read", trial.store));
    };
    let count = keys.lend().len();
    if count == 0 {
        return refused(format!("{} holds no keys of strings, so --read-only has none to read", trial.launch.place));
    }
    note(&trial.drawn, &keys).map_err(|error| unnoted(&trial.drawn, &error))?;
    tell(&Event::Counters(BTreeMap::from([(KEYS_DRAWN.to_string(), count as u64)])));
    let parts = (kind.open)(&trial.job).parts();
    Ok(Some(Existing::new(&trial.job, parts, keys)))
}

fn unnoted(path: &Path, error: &io::Error) -> Early {
    Early::Failed(format!("cannot keep the drawn keys in {}: {error}", path.display()))
}

/// The keys that an earlier trial of this run drew: a server lists all its keys once a run, not once a trial.
fn noted(path: &Path) -> io::Result<Option<KeyList>> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => BufReader::new(file?),
    };
    let (mut keys, mut length, mut key) = (KeyList::default(), [0; 4], Vec::new());
    loop {
        match file.read_exact(&mut length) {
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => return Ok(Some(keys)),
            read => read?,
        }
        key.resize(u32::from_le_bytes(length) as usize, 0);
        file.read_exact(&mut key)?;
        keys.push(&key);
    }
}

/// Notes them for the trials that follow. A trial that is killed meanwhile leaves no half of them under that name.
fn note(path: &Path, keys: &KeyList) -> io::Result<()> {
    if path.exists() {
        return Ok(());
    }
    let half = path.with_extension("new");
    let mut file = BufWriter::new(OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&half)?);
    for key in keys.lend().iter() {
        let length = u32::try_from(key.len()).map_err(io::Error::other)?;
        file.write_all(&length.to_le_bytes())?;
        file.write_all(key)?;
    }
    file.flush()?;
    fs::rename(half, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noted_keys_are_read_again_byte_by_byte() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("drawn");
        assert_eq!(noted(&path).expect("no file is no error").map(|keys| keys.lend().len()), None);
        let keys: KeyList = [&b"a"[..], b"", b"\n\0\xff", &[7; 70_000]].into_iter().collect();
        note(&path, &keys).expect("noted");
        let read = noted(&path).expect("read").expect("keys");
        assert!(read.lend().iter().eq(keys.lend().iter()));
        assert_eq!(fs::read_dir(directory.path()).expect("a directory").count(), 1);
    }
}
