//! Passwords of servers of our own: a fresh one for each start, told over pipes and in files that only we can read.

use std::fs::{self, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Beside a kept store's own files.
const NOTE: &str = "kvfair-password";

/// Writes a file that nobody but its owner may read.
pub fn write_private(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    // It may have been there before.
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// Notes the password that kept data was last opened with: some stores keep it in their data.
pub fn note(data: &Path, password: &str) -> io::Result<()> {
    write_private(&data.join(NOTE), &format!("{password}\n"))
}
