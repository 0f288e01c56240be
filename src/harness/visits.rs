//! What a run may leave in stores that are not ours: written down beside its results before the first key is written,
//! and struck out once all is taken back. A run that is killed (`kill -9`) leaves the line to `kvfair clean`.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use serde::{Deserialize, Serialize};

use super::save;
use crate::model::record::Record;
use crate::model::trial::{JobSettings, Target};
use crate::stores::Place;

/// All that is needed to say which keys and values a trial may have written into a store that is not ours. Nothing of
/// it is secret.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Visit {
    pub target: Target,
    /// Where the store is. Records do not know it.
    pub place: Option<Place>,
    /// The database's number or name.
    pub database: Option<String>,
    /// With seed, size and points.
    pub job: JobSettings,
    pub clients: u32,
    /// Of the job's data, as a record's stream has it.
    pub sha256: String,
}

impl Visit {
    /// What a trial may have written, by its record. None where it wrote nothing of ours into a store that is not ours.
    pub fn of_record(record: &Record) -> Option<Visit> {
        let Record { target, job, clients, stream, .. } = record;
        let reads = job.load.as_ref().is_some_and(|load| load.read_only);
        let wrote = !target.managed && !reads && job.program().is_none();
        wrote.then(|| Visit {
            target: target.clone(),
            place: None,
            database: None,
            job: job.clone(),
            clients: *clients,
            sha256: stream.sha256.clone(),
        })
    }
}

/// The file of visits that belongs to a results file: `out.jsonl.guest`.
pub fn beside(results: &Path) -> PathBuf {
    let mut name = results.as_os_str().to_owned();
    name.push(".guest");
    PathBuf::from(name)
}

/// A visit that is written down, to be struck out once all is taken back.
pub struct VisitEntry {
    path: PathBuf,
    /// Bytes of the file before it.
    before: u64,
}

impl VisitEntry {
    /// Appends a visit as one line, in one write.
    pub fn write(path: &Path, visit: &Visit) -> Result<VisitEntry> {
        let about = || format!("cannot write down in {} what is to be removed afterwards", path.display());
        let mut line = serde_json::to_vec(visit).with_context(about)?;
        line.push(b'\n');
        let mut file = OpenOptions::new().append(true).create(true).open(path).with_context(about)?;
        let before = file.metadata().with_context(about)?.len();
        file.write_all(&line).with_context(about)?;
        Ok(VisitEntry { path: path.to_path_buf(), before })
    }

    /// Takes the line back. Trials come one after another, so it is the last one. A line too many does no harm.
    pub fn strike(self) {
        let _ = match self.before {
            0 => fs::remove_file(&self.path),
            before => OpenOptions::new().write(true).open(&self.path).and_then(|file| file.set_len(before)),
        };
    }
}

/// The visits that were not struck out. None where there is no file. A last line without its end was never acted upon.
pub fn left(path: &Path) -> Result<Vec<Visit>> {
    let text = match fs::read_to_string(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
        text => text.with_context(|| format!("cannot read {}", path.display()))?,
    };
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let parsed = whole.lines().enumerate().map(|(place, line)| {
        let line = serde_json::from_str(line);
        line.map_err(|error| anyhow!("{}:{}: not what a run wrote down: {error}", path.display(), place + 1))
    });
    parsed.collect()
}

/// Strikes out these visits: nothing of theirs is left. The file goes with its last line.
pub fn strike_out(path: &Path, done: &[Visit]) -> Result<()> {
    let about = || format!("cannot write {}", path.display());
    let all = left(path)?;
    let rest: Vec<&Visit> = all.iter().filter(|visit| !done.contains(visit)).collect();
    if rest.len() == all.len() {
        return Ok(());
    }
    if rest.is_empty() {
        return fs::remove_file(path).with_context(about);
    }
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = save::as_any_file().tempfile_in(directory).with_context(about)?;
    for visit in rest {
        serde_json::to_writer(&mut file, visit).with_context(about)?;
        file.write_all(b"\n").with_context(about)?;
    }
    file.persist(path).with_context(about)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::harness::plan::tests::plan;
    use crate::model::trial::Transport;

    fn visit(seconds: &str) -> Visit {
        let target = Target {
            label: "redis://host".to_string(),
            store: "some".to_string(),
            baseline: false,
            batch: false,
            transport: Transport::Tcp,
            managed: false,
            cache: None,
            settings: Default::default(),
        };
        let (job, sha256) = (plan(None).job, seconds.to_string());
        Visit { target, place: None, database: None, job, clients: 1, sha256 }
    }

    #[test]
    fn what_is_struck_out_is_gone_and_what_was_there_before_stays() {
        let directory = tempfile::tempdir().unwrap();
        let path = beside(&directory.path().join("out.jsonl"));
        assert!(left(&path).unwrap().is_empty(), "no file is no visit");
        let first = VisitEntry::write(&path, &visit("a")).unwrap();
        VisitEntry::write(&path, &visit("b")).unwrap().strike();
        assert_eq!(left(&path).unwrap(), [visit("a")]);
        first.strike();
        assert!(!path.exists());
        for name in ["a", "b", "c"] {
            VisitEntry::write(&path, &visit(name)).unwrap();
        }
        strike_out(&path, &[visit("b"), visit("x")]).unwrap();
        assert_eq!(left(&path).unwrap(), [visit("a"), visit("c")]);
        strike_out(&path, &[visit("a"), visit("c")]).unwrap();
        assert!(!path.exists());
    }

    #[test]
    fn a_line_that_was_cut_off_is_no_visit_and_a_strange_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("out.jsonl.guest");
        VisitEntry::write(&path, &visit("a")).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, format!("{whole}{}", &whole[..whole.len() / 2])).unwrap();
        assert_eq!(left(&path).unwrap(), [visit("a")]);
        fs::write(&path, format!("{whole}strange\n")).unwrap();
        assert!(format!("{:#}", left(&path).unwrap_err()).contains("out.jsonl.guest:2"));
    }
}
