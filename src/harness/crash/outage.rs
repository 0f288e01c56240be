//! Losses of power, emulated: a store runs under a tracer of ours that knows which bytes its syncs made safe. When it
//! is killed, all its files become again what they were when they were last synced, and it is started on these.
//!
//! A tracer and not a library that is loaded into the store: it also sees programs that are linked statically or call
//! the kernel by themselves, and needs no compiler. What it takes for safe is told in docs/durability.md.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::harness::signals::Interrupt;

#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod calls;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod disk;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod tracer;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub use tracer::{become_traced, trace};

#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
mod nowhere {
    //! Elsewhere nobody is told to trace: [`super::Outage::find`] says why.
    use super::{ELSEWHERE, OutageOrder};

    pub fn become_traced(_: &OutageOrder, _: &[std::ffi::OsString]) -> std::io::Error {
        std::io::Error::other(ELSEWHERE)
    }

    pub fn trace(_: &OutageOrder, _: i32) -> std::io::Result<()> {
        Err(std::io::Error::other(ELSEWHERE))
    }
}
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub use nowhere::{become_traced, trace};

/// The hidden command. It is told by arguments and not as a task: its standard input is that of the store that it
/// becomes.
const COMMAND: &str = "outage";
const ELSEWHERE: &str = "losses of power are emulated on Linux with glibc only";
/// How long files may take to be rolled back.
const ROLLING_BACK: Duration = Duration::from_secs(60);
const LOOK: Duration = Duration::from_millis(5);

/// Where the store's files are, where the report goes, and the process for whom all this is: when it is gone nobody
/// wants the files back.
#[derive(Clone, Debug)]
pub struct OutageOrder {
    pub data: PathBuf,
    pub report: PathBuf,
    pub owner: i32,
}

/// What a tracer leaves behind when its store is gone.
#[derive(Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Its files are what they were when they were last synced: it was killed.
    pub rolled_back: bool,
    /// Successful calls that made anything safe.
    pub syncs: u64,
    /// What the tracer could not follow, so that nothing can be said.
    pub unknown: Option<String>,
}

/// How power is lost here.
pub struct Outage {
    us: PathBuf,
}

impl Outage {
    /// An error says why none can be emulated here.
    pub fn find() -> Result<Outage, String> {
        if cfg!(not(all(target_os = "linux", target_env = "gnu"))) {
            return Err(ELSEWHERE.to_string());
        }
        let us = std::env::current_exe().map_err(|error| format!("cannot find our own program: {error}"))?;
        Ok(Outage { us })
    }

    /// What stands before the store's own command. Its files are in `data`; the report goes into `scratch`.
    pub fn command(&self, data: &Path, scratch: &Path) -> Vec<String> {
        let (us, report) = (self.us.display().to_string(), scratch.join(FILE).display().to_string());
        let owner = std::process::id().to_string();
        vec![us, COMMAND.to_string(), "--owner".to_string(), owner, data.display().to_string(), report]
    }

    /// Waits until the files of the store that was killed are rolled back.
    pub fn report(&self, scratch: &Path, interrupt: &Interrupt) -> Result<Report, String> {
        let began = Instant::now();
        loop {
            if let Ok(text) = fs::read(scratch.join(FILE)) {
                return serde_json::from_slice(&text).map_err(|error| format!("no report of the tracer: {error}"));
            }
            if began.elapsed() >= ROLLING_BACK || interrupt.is_set() {
                return Err("the tracer said nothing".to_string());
            }
            std::thread::sleep(LOOK);
        }
    }
}

const FILE: &str = "outage.json";
