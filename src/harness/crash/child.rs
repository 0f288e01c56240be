//! The process of the clients, as its parent sees it.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use anyhow::{Context, Result};

use super::client::{LedgerEvent, LedgerTask};
use crate::harness::child::{last_words, listen, spawn_self_under};
use crate::harness::process::{Leashed, in_words};

/// The hidden command.
const COMMAND: &str = "ledger";
/// How long a process whose pipe is closed may take to end.
const ENDING: Duration = Duration::from_secs(5);

pub struct Child {
    leash: Leashed,
    /// Open as long as its clients are wanted.
    pipe: Option<ChildStdin>,
    heard: mpsc::Receiver<LedgerEvent>,
    log: PathBuf,
}

impl Child {
    /// Started by the command `under`, if that is one.
    pub fn start(under: &[String], order: &LedgerTask, log: &Path) -> Result<Child> {
        let mut leash = spawn_self_under(under, COMMAND, log)?;
        let mut pipe = leash.child().stdin.take().expect("stdin is piped");
        let mut line = serde_json::to_vec(order).context("an order is plain data")?;
        line.push(b'\n');
        pipe.write_all(&line).context("the process of the clients does not listen")?;
        let heard = listen(leash.child().stdout.take().expect("stdout is piped"));
        Ok(Child { leash, pipe: Some(pipe), heard, log: log.to_path_buf() })
    }

    pub fn id(&self) -> u32 {
        self.leash.id()
    }

    /// What it tells next.
    pub fn next(&mut self, within: Duration) -> Result<LedgerEvent, RecvTimeoutError> {
        self.heard.recv_timeout(within)
    }

    pub fn kill(&mut self) {
        self.leash.kill();
    }

    /// Lets it close the store and go.
    pub fn end(&mut self) {
        drop(self.pipe.take());
        self.leash.wait_at_most(ENDING);
    }

    /// How it ended, and its last words.
    pub fn ending(&mut self) -> String {
        let ending = self.leash.wait_at_most(ENDING).map_or_else(|| "it does not end".to_string(), in_words);
        format!("{ending}{}", last_words(&self.log))
    }
}
