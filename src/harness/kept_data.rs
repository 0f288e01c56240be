//! Data that `--keep` left in place: how it is noted, and how it is opened again to be asked.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};

use super::oracle::record_of_tally;
use super::password;
use super::plan::Chosen;
use super::serve::{self, Served, Site, Unserved};
use super::signals::Interrupt;
use crate::model::op::{Op, Reply};
use crate::model::trial::{Configuration, Durability, Via};
use crate::stores::{Launch, Place, Store};

/// Beside the store's own files.
const NOTE: &str = "kvfair-kept.json";
/// How long a store may take to answer one question.
const PATIENCE: Duration = Duration::from_secs(60);

/// What must be known to open kept data again.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct Note {
    pub durability: Durability,
    #[serde(default)]
    pub configuration: Configuration,
    #[serde(default)]
    pub via: Via,
    pub settings: BTreeMap<String, String>,
}

/// Notes how the data in `directory` was written.
pub fn note(directory: &Path, note: &Note) -> Result<()> {
    let path = directory.join(NOTE);
    let text = serde_json::to_vec_pretty(note).context("a note is plain data")?;
    fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))
}

/// The value of one key in a store that somebody names; a server that was kept is started on its directory for it.
pub fn get(chosen: &Chosen, key: &[u8], scratch: &Path, interrupt: &Interrupt) -> Result<Option<Vec<u8>>> {
    let label = &chosen.target.label;
    let Some(place) = chosen.place.clone() else {
        bail!(
            "{label} names no store that holds anything\nhint: name a URL, or {}:DIR as `kvfair run --keep` printed it",
            chosen.adapter.name
        );
    };
    let (launch, via) = launch(chosen, place)?;
    let (store, served) = open(chosen, launch, scratch, interrupt)?;
    let value = ask(store.as_ref(), key, via).with_context(|| label.clone());
    drop(store);
    let stopped = served.map_or(Ok(()), Served::stop);
    let value = value?;
    stopped.map_err(|what| anyhow!(what))?;
    Ok(value)
}

/// How the data was opened when it was written, and how its records were.
fn launch(chosen: &Chosen, place: Place) -> Result<(Launch, Via)> {
    let Note { durability, configuration, via, settings } = match &place {
        Place::Path(path) if !path.exists() => bail!("there is nothing at {}", path.display()),
        Place::Path(path) => read_note(path)?,
        _ => Note::default(),
    };
    let settings = if chosen.target.settings.is_empty() { settings } else { chosen.target.settings.clone() };
    let login = chosen.login.clone();
    Ok((Launch { durability, configuration, settings, login, ..Launch::at(place, PATIENCE) }, via))
}

fn read_note(directory: &Path) -> Result<Note> {
    let path = directory.join(NOTE);
    if !path.exists() {
        return Ok(Note::default());
    }
    let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    serde_json::from_slice(&text).with_context(|| format!("{} is not kvfair's note", path.display()))
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
    match session.ask(&op)? {
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
