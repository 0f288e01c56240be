//! The limit on open files: a connection is one.

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files that a trial has open besides its clients' connections, with room to spare.
const OTHERS: u64 = 100;

/// Sees to it that so many clients can be connected: raises our own limit as far as we may, or says who may.
pub fn allow(clients: u32) -> Result<(), String> {
    let needed = u64::from(clients) + OTHERS;
    let (soft, hard) = getrlimit(Resource::RLIMIT_NOFILE).map_err(|error| error.to_string())?;
    if soft >= needed {
        return Ok(());
    }
    let raised = hard >= needed && setrlimit(Resource::RLIMIT_NOFILE, needed, hard).is_ok();
    if raised {
        Ok(())
    } else {
        Err(format!("{clients} clients need {needed} open files, and {hard} are allowed here: ulimit -n {needed}"))
    }
}
