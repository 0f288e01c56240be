//! Servers off the beaten path: in directories that are on nobody's PATH, and run as somebody else where they refuse to
//! be root.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use nix::unistd::{User, geteuid};

/// The directories that a pattern stands for: `*` for any one directory, the highest version first; `$NAME` at its
/// beginning for a variable of the environment.
pub fn directories(pattern: &str) -> Vec<PathBuf> {
    let mut parts = pattern.split('/');
    let first = parts.next().unwrap_or("");
    let root = match first.strip_prefix('$') {
        Some(name) => std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from),
        None => Some(PathBuf::from("/")),
    };
    let mut found: Vec<PathBuf> = root.into_iter().collect();
    for part in parts {
        found = match part {
            "*" => found.iter().flat_map(|directory| highest_first(directory)).collect(),
            part => found.iter().map(|directory| directory.join(part)).collect(),
        };
    }
    found
}

fn highest_first(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut named: Vec<(Vec<u64>, PathBuf)> =
        entries.map(|entry| (numbers(&entry.file_name().to_string_lossy()), entry.path())).collect();
    named.sort_by(|one, other| other.cmp(one));
    named.into_iter().map(|(_, path)| path).collect()
}

/// `15.2` as 15 and 2, so that 9 comes before 10.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|letter: char| !letter.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

/// Who runs a server that refuses to be root.
pub struct Instead(User);

/// Nobody where we are not root, or the server does not mind.
pub fn who(name: Option<&str>) -> Result<Option<Instead>, String> {
    let Some(name) = name.filter(|_| geteuid().is_root()) else { return Ok(None) };
    let known = [name, "nobody"].into_iter().find_map(|name| User::from_name(name).ok().flatten());
    known.map(|user| Some(Instead(user))).ok_or_else(|| {
        format!("it refuses to run as root, and there is no user {name} here: run kvfair as another user")
    })
}

impl Instead {
    pub fn id(&self) -> u32 {
        self.0.uid.as_raw()
    }

    /// Why a program may be denied to it: directories above ours that are closed to others.
    pub fn denied(&self, data: &Path) -> String {
        let Instead(user) = self;
        format!(" (as root it runs as user {}, who must be able to enter {})", user.name, data.display())
    }

    /// Makes the user the owner of the data, and lets only its group pass through our private directories above.
    pub fn hand_over(&self, data: &Path, scratch: &Path) -> Result<(), String> {
        let Instead(user) = self;
        let (owner, group) = (user.uid.as_raw(), user.gid.as_raw());
        let handed = own(data, owner, group).and_then(|()| {
            chown(scratch, Some(owner), Some(group))?;
            // The owner stays who he is, so that the next run knows the directory.
            super::scratch::up_from(scratch).into_iter().skip(1).try_for_each(|path| {
                chown(path, None, Some(group))?;
                fs::set_permissions(path, fs::Permissions::from_mode(0o710))
            })
        });
        handed.map_err(|error| format!("cannot hand {} over to {}: {error}", data.display(), user.name))
    }

    /// Makes the user the owner of a file.
    pub fn own_file(&self, path: &Path) -> std::io::Result<()> {
        chown(path, Some(self.0.uid.as_raw()), Some(self.0.gid.as_raw()))
    }

    pub fn take_over(&self, command: &mut Command) {
        command.uid(self.0.uid.as_raw()).gid(self.0.gid.as_raw());
        command.env("HOME", &self.0.dir).env("USER", &self.0.name);
    }
}

fn own(path: &Path, owner: u32, group: u32) -> std::io::Result<()> {
    std::os::unix::fs::lchown(path, Some(owner), Some(group))?;
    if fs::symlink_metadata(path)?.is_dir() {
        fs::read_dir(path)?.try_for_each(|entry| own(&entry?.path(), owner, group))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_star_is_any_directory_and_the_highest_version_comes_first() {
        let root = tempfile::tempdir().unwrap();
        for version in ["9.6", "15", "8"] {
            fs::create_dir_all(root.path().join(version).join("bin")).unwrap();
        }
        let found = directories(&format!("{}/*/bin", root.path().display()));
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(root.path()).unwrap().to_str().unwrap()).collect();
        assert_eq!(names, ["15/bin", "9.6/bin", "8/bin"]);
        assert!(directories("$KVFAIR_NO_SUCH_VARIABLE/bin").is_empty());
    }
}
