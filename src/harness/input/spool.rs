//! Standard input and pipes, which can be read but once: kept in a file of ours, since every trial reads its data
//! again.

use std::fs::File;
use std::io::{self, ErrorKind, IsTerminal, Read, Write};
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

use super::{BUFFER_BYTES, Interruptible};
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::model::trial::is_stdin;

/// How soon a Ctrl-C is seen while nothing comes.
const LOOK_MS: u16 = 50;

/// Keeps what comes from standard input (`-`) or out of a pipe in `scratch`, once a run.
pub fn keep(named: &Path, scratch: &Path, interrupt: &Interrupt) -> Result<PathBuf> {
    let path = scratch.join("input");
    if path.exists() {
        return Ok(path);
    }
    let about = || format!("--input {}: cannot keep it in {}", named.display(), path.display());
    let file = Interruptible { file: File::create_new(&path).with_context(about)?, interrupt };
    let bytes = if is_stdin(named) {
        if io::stdin().is_terminal() {
            bail!("--input -: standard input is a terminal\nhint: give it the data: `... < FILE`");
        }
        copy(&mut io::stdin().lock(), file, interrupt)
    } else {
        copy(&mut File::open(named).with_context(|| format!("--input {}", named.display()))?, file, interrupt)
    };
    if bytes.with_context(about)? == 0 {
        bail!("--input {}: is empty", named.display());
    }
    Ok(path)
}

/// Copies all that comes, and says how many bytes that were.
fn copy(from: &mut (impl Read + AsFd), mut to: impl Write, interrupt: &Interrupt) -> io::Result<u64> {
    let (mut buffer, mut copied) = (vec![0; BUFFER_BYTES], 0);
    loop {
        if interrupt.is_set() {
            return Err(io::Error::other(INTERRUPTED));
        }
        // A read would wait on after a signal.
        match poll(&mut [PollFd::new(from.as_fd(), PollFlags::POLLIN)], PollTimeout::from(LOOK_MS)) {
            Ok(0) | Err(Errno::EINTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        match from.read(&mut buffer) {
            Ok(0) => return Ok(copied),
            Ok(read) => {
                to.write_all(&buffer[..read])?;
                copied += read as u64;
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}
