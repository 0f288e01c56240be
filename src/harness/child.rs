//! Children that are this same program under a hidden command: started on a leash, heard line by line.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Write};
use std::path::Path;
use std::process::{ChildStdout, Command, Stdio};
use std::sync::mpsc;

use anyhow::{Context, Result};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::process::{self, Leashed};

/// Runs a hidden command of this same program, with its error output in a file.
pub(super) fn spawn_self(command: &str, log: &Path) -> Result<Leashed> {
    spawn_self_under(&[], command, log)
}

/// The same, started by the command `under`, if that is one.
pub(super) fn spawn_self_under(under: &[String], command: &str, log: &Path) -> Result<Leashed> {
    spawn_by(Leashed::spawn, under, command, log)
}

/// The same for a command that ends by itself, and all that it has started, when its standard input is closed.
pub(super) fn spawn_supervisor_under(under: &[String], command: &str, log: &Path) -> Result<Leashed> {
    spawn_by(Leashed::spawn_supervisor, under, command, log)
}

fn spawn_by(
    spawn: fn(&mut Command) -> io::Result<Leashed>,
    under: &[String],
    command: &str,
    log: &Path,
) -> Result<Leashed> {
    let program = std::env::current_exe().context("cannot find our own program")?;
    let log = File::create(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut child = process::under(under, &program);
    child.arg(command).env_remove(process::PASSWORD_VARIABLE).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(log);
    spawn(&mut child).with_context(|| format!("cannot start the process of a {command}"))
}

/// Reads a child's words on a thread of its own, so that the listener can look up in between.
pub(super) fn listen<T: DeserializeOwned + Send + 'static>(output: ChildStdout) -> mpsc::Receiver<T> {
    let (speak, heard) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let told = line.ok().and_then(|line| serde_json::from_str(&line).ok());
            let Some(told) = told else { break };
            if speak.send(told).is_err() {
                break;
            }
        }
    });
    heard
}

/// What such a child tells its parent, on standard output and in one write. Where nobody listens any more it ends: what
/// it would find out is lost.
pub(super) fn tell<T: Serialize>(told: &T) {
    let mut line = serde_json::to_vec(told).expect("what is told is plain data");
    line.push(b'\n');
    let mut out = io::stdout().lock();
    if out.write_all(&line).and_then(|()| out.flush()).is_err() {
        std::process::exit(1);
    }
}

/// What a child complained of, for a message's end.
pub(super) fn last_words(log: &Path) -> String {
    let text = fs::read_to_string(log).unwrap_or_default();
    let last: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).take(3).collect();
    if last.is_empty() { String::new() } else { format!("; it said: {}", last.join(" | ")) }
}
