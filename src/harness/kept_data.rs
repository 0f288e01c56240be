//! Data that `--keep` left in place: how it is noted, and how it is opened again to be asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::oracle::{record_of_packed, record_of_tally};
use super::password;
use super::plan::Chosen;
use super::serve::{self, Served, Site, Unserved};
use super::signals::Interrupt;
use crate::jobs::fans::FANS;
use crate::jobs::ngrams::NGRAMS;
use crate::jobs::{self, text::Terms};
use crate::model::fans::Encoding;
use crate::model::op::{Fault, Op, Reply};
use crate::model::record::Record;
use crate::model::shell;
use crate::model::trial::{Configuration, Durability, JobSettings, Via};
use crate::stores::{Launch, Place, Store};

/// Beside the store's own files.
const NOTE: &str = "kvfair-kept.json";
/// How long a store may take to answer one question.
const PATIENCE: Duration = Duration::from_secs(60);

/// What must be known to open kept data again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Note {
    /// Whose files they are; empty in notes of before this was noted.
    #[serde(default)]
    pub store: String,
    pub durability: Durability,
    #[serde(default)]
    pub configuration: Configuration,
    #[serde(default)]
    pub via: Via,
    pub settings: BTreeMap<String, String>,
    /// What was done, and the sha256 of its data.
    #[serde(default)]
    pub job: Option<JobSettings>,
    #[serde(default)]
    pub sha256: String,
}

/// Notes how the data in `directory` was written.
pub fn note(directory: &Path, note: &Note) -> Result<()> {
    let path = directory.join(NOTE);
    let text = serde_json::to_vec_pretty(note).context("a note is plain data")?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The value of one key in the store that the user names.
pub fn get(chosen: &Chosen, key: &[u8], scratch: &Path, interrupt: &Interrupt) -> Result<Option<Vec<u8>>> {
    asked(chosen, scratch, interrupt, |store, note| {
        if let Some(job) = note.job.as_ref().filter(|job| job.name != FANS.name) {
            let place = chosen.place.as_ref().map(Place::to_string).unwrap_or_default();
            let store = shell::shown(&format!("{}:{place}", chosen.adapter.name));
            let lookup = format!("\nhint: kvfair lookup {store} WORD");
            let hint = if counts_words(job) { lookup } else { String::new() };
            bail!("it holds what the job {} wrote, and no fans of pages{hint}", job.name);
        }
        let value = ask(store, key, note.via)?;
        let is_packed = note.job.as_ref().is_some_and(|job| job.fans.encoding == Encoding::Binary);
        let mut record = Vec::new();
        // What is no record stays as it is, for the caller to show.
        Ok(value.map(|value| if is_packed && record_of_packed(&value, &mut record) { record } else { value }))
    })
}

/// How often each n-gram of some words was counted, in the order in which they stand there.
pub fn counts(chosen: &Chosen, words: &str, scratch: &Path, interrupt: &Interrupt) -> Result<Vec<(String, i64)>> {
    asked(chosen, scratch, interrupt, |store, note| {
        if note.job.as_ref().is_some_and(|job| !counts_words(job)) {
            bail!("it holds no counts of n-grams\nhint: `kvfair run lookup STORE --keep DIR` fills one");
        }
        if store.count()? == Some(0) {
            bail!("it is empty\nhint: `kvfair run lookup STORE --keep DIR` fills one");
        }
        let mut terms = Terms::of(note.job.as_ref().map(|job| job.ngrams).unwrap_or_default());
        terms.read(words);
        let mut session = store.session()?;
        let count = |place: usize| -> Result<(String, i64)> {
            let term = terms.get(place);
            let op = if note.via == Via::Cas { Op::Get(term) } else { Op::Number(term) };
            let count = match session.ask(&op)? {
                Reply::Number(count) => count,
                Reply::Value(text) => str::from_utf8(text)?.parse()?,
                Reply::Missing => 0,
                other => bail!("{} was answered by {other:?}", op.name()),
            };
            Ok((String::from_utf8_lossy(term).into_owned(), count))
        };
        (0..terms.len()).map(count).collect()
    })
}

/// Whether a job leaves counts of n-grams.
fn counts_words(job: &JobSettings) -> bool {
    jobs::find(&job.name).is_some_and(|kind| kind.options.contains(&"--order"))
}

/// Opens the store that the user names. Starts the server of a kept data directory.
fn asked<T>(
    chosen: &Chosen,
    scratch: &Path,
    interrupt: &Interrupt,
    ask: impl FnOnce(&dyn Store, &Note) -> Result<T>,
) -> Result<T> {
    let label = &chosen.target.label;
    let Some(place) = chosen.place.clone() else {
        bail!(
            "{label} names no store that holds anything\nhint: name one by URL, or STORE:DIR as `kvfair run --keep` \
             printed it"
        );
    };
    let (launch, note) = launch(chosen, place)?;
    let (store, served) = open(chosen, launch, scratch, interrupt)?;
    let value = ask(store.as_ref(), &note).with_context(|| label.clone());
    drop(store);
    let stopped = served.map_or(Ok(()), Served::stop);
    let value = value?;
    stopped.map_err(|what| anyhow!(what))?;
    Ok(value)
}

/// How the data was opened when it was written, and how its records were.
fn launch(chosen: &Chosen, place: Place) -> Result<(Launch, Note)> {
    let note = match &place {
        Place::Path(path) => note_of(chosen.adapter.name, path)?,
        _ => Note::default(),
    };
    let Note { durability, configuration, .. } = note;
    let own = &chosen.target.settings;
    let settings = if own.is_empty() { note.settings.clone() } else { own.clone() };
    let login = chosen.login.clone();
    Ok((Launch { durability, configuration, settings, login, ..Launch::at(place, PATIENCE) }, note))
}

/// The note of a store of that name. Opening a directory without one would make files there.
fn note_of(store: &str, directory: &Path) -> Result<Note> {
    let place = directory.display();
    if !directory.exists() {
        bail!("there is nothing at {place}");
    }
    if !directory.join(NOTE).exists() {
        let is_empty = fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_none());
        let what = if is_empty { "it is empty" } else { "`kvfair run --keep` did not fill this directory" };
        bail!(
            "{store}:{place}: {what}\nhint: `kvfair run fans STORE --keep DIR` fills one for `kvfair query`, and \
             `kvfair run lookup STORE --keep DIR` one for `kvfair lookup`"
        );
    }
    let note = read_note(directory)?;
    if let Some(what) = other_store(&note, store, directory) {
        bail!(what);
    }
    Ok(note)
}

/// Why the files there are not this store's, where they are another one's.
fn other_store(note: &Note, store: &str, directory: &Path) -> Option<String> {
    let (own, place) = (&note.store, directory.display());
    let is_other = !own.is_empty() && own != store;
    is_other.then(|| format!("{own} filled {place}, not {store}: name it as {own}:{place}"))
}

fn read_note(directory: &Path) -> Result<Note> {
    let path = directory.join(NOTE);
    if !path.exists() {
        return Ok(Note::default());
    }
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not kvfair's note", path.display()))
}

/// The settings with which the data in a directory was written, if it is what a trial is to read; else why it is not.
pub fn fitting(directory: &Path, trial: &Record) -> Result<BTreeMap<String, String>, String> {
    let place = directory.display();
    let note = read_note(directory).map_err(|error| format!("{error:#}"))?;
    if let Some(what) = other_store(&note, &trial.target.store, directory) {
        return Err(what);
    }
    let again = |what: String| Err(format!("{place} {what}"));
    let name = &trial.job.name;
    if note.job.as_ref().is_some_and(|job| job.name == NGRAMS.name) {
        // Scores of messages that were counted tell little, every lookup finds something, and by `--via cas` counts
        // are text.
        let store = &trial.target.store;
        let kept = shell::shown(&format!("{store}:{place}"));
        return again(format!(
            "holds the counts of all messages, as the job {} leaves them; {name} scores one message in ten by the \
             counts of the others, and each count would be wrong: `kvfair run {name} {store} --keep DIR` fills one, \
             and `kvfair lookup {kept} WORD` reads this one",
            NGRAMS.name
        ));
    }
    let Some(job) = note.job.filter(|job| job.name == *name) else {
        return again(format!(
            "holds nothing that the job {name} left: `kvfair run {name} STORE --keep DIR` fills one"
        ));
    };
    if job.ngrams != trial.job.ngrams {
        return again(format!("was filled with {}, and {} is asked for: type the same", job.ngrams, trial.job.ngrams));
    }
    if note.sha256 != trial.stream.sha256 {
        let units = job.units.map_or_else(|| "all".to_string(), |units| units.to_string());
        return again(format!("was filled with other data ({units} messages): name its --input and --messages again"));
    }
    if note.durability != trial.durability || note.configuration != trial.configuration {
        let (level, whose) = (note.durability, note.configuration);
        return again(format!("was filled with --durability {level} --config {whose}: type the same"));
    }
    Ok(if trial.target.settings.is_empty() { note.settings } else { trial.target.settings.clone() })
}

type Opened = (Box<dyn Store>, Option<Served>);

fn open(chosen: &Chosen, launch: Launch, scratch: &Path, interrupt: &Interrupt) -> Result<Opened> {
    let label = &chosen.target.label;
    let (launch, served) = match (&launch.place, chosen.adapter.server) {
        (Place::Path(data), Some(_)) => {
            let data: PathBuf = data.canonicalize().with_context(|| label.clone())?;
            let site = Site { data: &data, scratch, prepared: None, is_guarded: true };
            let transport = chosen.target.transport;
            let served = serve::start(&[], chosen.adapter, transport, &launch, site, PATIENCE, interrupt);
            let served = served.map_err(|unserved| match unserved {
                Unserved::Missing(why) => anyhow!("{label}: {why}\nhint: {}", chosen.adapter.get_it),
                Unserved::Failed(why) => anyhow!("{label}: {why}"),
                Unserved::Interrupted => anyhow!(super::signals::INTERRUPTED),
            })?;
            if let Some(password) = &served.login.password {
                password::note(&data, password)
                    .with_context(|| format!("cannot note a password in {}", data.display()))?;
            }
            (served.reached(&launch), Some(served))
        }
        _ => (launch, None),
    };
    let store = (chosen.adapter.open)(&launch).map_err(|fault| anyhow!("{label}: {fault}"))?;
    Ok((store, served))
}

/// A record; of what was counted by the store's own means, the record that it stands for.
fn ask(store: &dyn Store, key: &[u8], via: Via) -> Result<Option<Vec<u8>>> {
    let mut session = store.session()?;
    let op = if via == Via::Native { Op::ReadTally(key) } else { Op::Get(key) };
    let answer = match session.ask(&op) {
        // No key at all is one that some stores do not even look for.
        Err(Fault::Unsupported(_) | Fault::Refused(_)) if key.is_empty() => Reply::Missing,
        answer => answer?,
    };
    match answer {
        Reply::Rows(tally) => {
            let mut record = Vec::new();
            record_of_tally(key, tally, &mut record);
            Ok(Some(record))
        }
        Reply::Value(value) => Ok(Some(value.to_vec())),
        Reply::Missing => Ok(None),
        other => bail!("get was answered by {other:?}"),
    }
}
