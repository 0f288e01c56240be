//! The digests of the programs that are started, each read once.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::save;

/// What was read already.
static SEEN: Mutex<BTreeMap<PathBuf, Option<String>>> = Mutex::new(BTreeMap::new());

/// sha256 of a program; nothing of kvfair's own, which a release names by its version, and of one that cannot be read.
pub fn of_program(program: &Path) -> Option<String> {
    let mut seen = SEEN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_own = || std::env::current_exe().is_ok_and(|own| own == program);
    let read = || if is_own() { None } else { save::sha256(program).ok() };
    seen.entry(program.to_path_buf()).or_insert_with(read).clone()
}
