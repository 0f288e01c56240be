//! What a trial runs in place of clients of kvfair's: a batch engine's program, with the messages of the job in one
//! file of plain text, or the user's.

use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;

use anyhow::{Context, Result, anyhow};

use super::dataset::DataSet;
use super::input::DataFile;
use super::plan::Chosen;
use super::process;
use super::program::{BatchProgram, Program, ProgramTarget};
use super::trial::{Bench, failed};
use crate::jobs::text::Messages;
use crate::model::op::readable;
use crate::model::record::{Outcome, Record};
use crate::model::shell::quoted;
use crate::model::trial::Answer;
use crate::stores::Place;
use crate::stores::batch::{self, Engine};

/// So much of what a program said is told.
const SHOWN_BYTES: usize = 200;

impl Bench<'_> {
    /// What is run instead of clients: a batch engine's program, or the user's with a directory that it has for itself.
    /// That of an embedded store is its data's.
    pub(super) fn program_of(
        &self,
        chosen: &Chosen,
        place: &Place,
        (data, directory): (&Path, &Path),
        record: &Record,
    ) -> Result<Option<Program>, Outcome> {
        if let Some(engine) = batch::engine(chosen.adapter.name) {
            let get_it = chosen.adapter.get_it.to_string();
            let version = version(engine).map_err(|reason| Outcome::Missing { reason, get_it })?;
            let set = self.data_for(chosen, record.block);
            return program(engine, version, set, self.scratch, (directory, data)).map(Some).map_err(failed);
        }
        let Some((command, answer)) = self.plan.job.program() else { return Ok(None) };
        let own = directory.join("dir");
        let own = if chosen.adapter.server.is_none() { data } else { own.as_path() };
        fs::create_dir_all(own).with_context(|| format!("cannot make {}", own.display())).map_err(failed)?;
        let (label, adapter, login) = (&chosen.target.label, chosen.adapter, &chosen.login);
        Ok(Some(Program::new(command, answer, &ProgramTarget { label, adapter, place, login, directory: own })))
    }
}

/// The version of an engine, or why it cannot be run here.
pub fn version(engine: &Engine) -> Result<String, String> {
    let (program, arguments) = engine.version.split_first().expect("it has a command");
    let output = process::program(program).args(arguments).stdin(Stdio::null()).output();
    let output = output.map_err(|error| format!("{program} does not start: {error}"))?;
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let last = out.lines().next().and_then(|line| line.split_whitespace().last());
    match last.filter(|_| output.status.success()) {
        Some(version) => Ok(version.to_string()),
        None => {
            let said = err.trim().lines().last().unwrap_or("it said nothing");
            Err(format!("{} is not here: {}", engine.name, readable(said.as_bytes(), SHOWN_BYTES)))
        }
    }
}

/// The program of a trial, whose files are in `directory` and whose counts go to `counts`. The messages are written
/// once a run, into `scratch`: good ones only, as many as the job has.
fn program(
    engine: &Engine,
    version: String,
    data: &DataSet,
    scratch: &Path,
    (directory, counts): (&Path, &Path),
) -> Result<Program> {
    let text = directory.join(engine.file);
    fs::write(&text, engine.text).with_context(|| format!("cannot write {}", text.display()))?;
    let messages = messages(data, scratch)?;
    let counts = counts.join(batch::COUNTS);
    let places = [&text, &messages, &counts].map(|path| quoted(&path.to_string_lossy()));
    let ngrams = data.job.ngrams;
    let (order, unit) = (ngrams.order.to_string(), ngrams.unit.to_string());
    let words = [engine.interpreter.to_string()].into_iter().chain(places).chain([order, unit]);
    let stream = &data.summary.stream;
    Ok(Program {
        line: words.collect::<Vec<_>>().join(" "),
        environment: Vec::new(),
        answer: Answer::None,
        secrets: Vec::new(),
        served: false,
        batch: Some(BatchProgram { version, counts, units: stream.units, ops: stream.ops }),
    })
}

/// The messages of a data set as plain text, one a line.
fn messages(data: &DataSet, scratch: &Path) -> Result<PathBuf> {
    let units = data.job.units.map_or("all".to_string(), |units| units.to_string());
    let path = scratch.join(format!("messages-{}-{units}.txt", data.job.seed()));
    if path.exists() {
        return Ok(path);
    }
    let cannot = || format!("cannot write {}", path.display());
    // What is written only in part is not taken for the whole.
    let part = path.with_extension("part");
    let mut out = BufWriter::with_capacity(1 << 20, File::create(&part).with_context(cannot)?);
    let mut messages = Messages::open(&data.job, &DataFile::new(&data.input, &data.job.data))?;
    let mut written = Ok(());
    while messages.read(|message| written = writeln!(out, "{message}")).map_err(|fault| anyhow!("{fault}"))? {
        std::mem::replace(&mut written, Ok(())).with_context(cannot)?;
    }
    out.flush().with_context(cannot)?;
    fs::rename(&part, &path).with_context(cannot)?;
    Ok(path)
}
