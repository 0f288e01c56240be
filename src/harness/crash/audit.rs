//! A store under strace: how it is started so, and the trace when it is gone.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::harness::process;
use crate::harness::signals::Interrupt;
use crate::model::crash::syncs::traced;

/// Writes of an audit: enough that one missing sync in a hundred is seen.
pub const WRITES: u64 = 1000;
/// How long strace may take to write all that it saw.
const WRITING: Duration = Duration::from_secs(20);
const LOOK: Duration = Duration::from_millis(20);

/// strace, where it is and is allowed.
pub struct Tracer(PathBuf);

impl Tracer {
    /// An error says why nothing can be counted here.
    pub fn find() -> Result<Tracer, String> {
        let program = process::on_path("strace").ok_or("no strace")?;
        let us = std::env::current_exe().map_err(|error| format!("cannot find our own program: {error}"))?;
        let tried = process::program(&program)
            .args(["-f", "-o", "/dev/null", "-e", "trace=fsync", "--"])
            .arg(us)
            .arg("--version")
            .stdin(Stdio::null())
            // Ctrl-C would end strace and not the process that it holds, which keeps the pipes open for ever.
            .process_group(0)
            .output();
        match tried {
            Ok(output) if output.status.success() => Ok(Tracer(program)),
            Ok(output) => {
                let said = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_string();
                Err(format!("strace may not trace here: {said}"))
            }
            Err(error) => Err(format!("strace does not start: {error}")),
        }
    }

    /// What stands before the program's own command, with the trace going into the directory `scratch`.
    ///
    /// The tracer is nobody's parent and in a group of its own (-DD): the store keeps the process id that we know, and
    /// a trace is written to its end when the store is killed. It ends with the store.
    pub fn command(&self, scratch: &Path) -> Vec<String> {
        let trace = format!("trace={}", traced());
        let program = self.0.display().to_string();
        let to = scratch.join(FILE).display().to_string();
        [&program, "-DD", "-f", "-y", "-ttt", "-s", "0", "-q", "-e", &trace, "-e", "signal=none", "-o", &to, "--"]
            .map(str::to_string)
            .to_vec()
    }

    /// The whole trace, when the process of that id has ended: its last line says so.
    pub fn trace(&self, scratch: &Path, id: u32, interrupt: &Interrupt) -> Result<String, String> {
        let began = Instant::now();
        let file = scratch.join(FILE);
        loop {
            let trace = fs::read(&file).map_err(|error| format!("strace wrote nothing: {error}"))?;
            let trace = String::from_utf8_lossy(&trace).into_owned();
            if has_ended(&trace, id) {
                return Ok(trace);
            }
            if began.elapsed() >= WRITING || interrupt.is_set() {
                return Err("strace did not end".to_string());
            }
            std::thread::sleep(LOOK);
        }
    }
}

const FILE: &str = "trace";

/// "4711 1700000000.123456 +++ exited with 0 +++"
fn has_ended(trace: &str, id: u32) -> bool {
    let begins = format!("{id} ");
    trace.lines().rev().any(|line| line.starts_with(&begins) && line.ends_with("+++"))
}
