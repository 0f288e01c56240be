//! The libraries that the dynamic loader puts into every program that is started here (ld.so(8)): they may make a sync
//! do nothing.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use super::digest;

/// Variables that name libraries, and the file that does so for the whole machine.
const VARIABLES: [&str; 2] = ["LD_PRELOAD", "LD_AUDIT"];
const FILE: &str = "/etc/ld.so.preload";

/// Their names, as they are given.
pub fn names() -> Vec<String> {
    let variables: Vec<String> = VARIABLES.into_iter().filter_map(|name| env::var(name).ok()).collect();
    named(&variables.join(" "), Path::new(FILE))
}

/// Each with the digest of its file: "/lib/nosync.so sha256 9f86d0...".
pub fn libraries() -> Vec<String> {
    names().iter().map(|name| with_digest(name, &own_libraries())).collect()
}

/// Names stand between blanks or colons, in the variables and in the file.
fn named(variables: &str, file: &Path) -> Vec<String> {
    let all = format!("{variables} {}", fs::read_to_string(file).unwrap_or_default());
    all.split(|letter: char| letter.is_whitespace() || letter == ':')
        .filter(|name| !name.is_empty())
        .map(str::to_string)
        .collect()
}

/// A name without a directory, or with `$LIB` in it, is that of a library which was loaded into this program too.
fn with_digest(name: &str, own: &[PathBuf]) -> String {
    let given = PathBuf::from(name);
    let file = if given.is_file() { Some(&given) } else { own.iter().find(|own| own.file_name() == given.file_name()) };
    match file.and_then(|file| Some((file, digest::of_program(file)?))) {
        Some((file, digest)) => format!("{} sha256 {digest}", file.display()),
        None => format!("{name} (its file cannot be read)"),
    }
}

/// The files that are mapped into this program.
#[cfg(target_os = "linux")]
fn own_libraries() -> Vec<PathBuf> {
    use procfs::process::{MMapPath, Process};
    let maps = Process::myself().and_then(|own| own.maps()).map(|maps| maps.0).unwrap_or_default();
    let path =
        |map: procfs::process::MemoryMap| if let MMapPath::Path(path) = map.pathname { Some(path) } else { None };
    maps.into_iter().filter_map(path).collect()
}

#[cfg(not(target_os = "linux"))]
fn own_libraries() -> Vec<PathBuf> {
    Vec::new()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_from_the_variables_and_the_file() {
        let root = tempfile::tempdir().expect("a directory");
        let file = root.path().join("preload");
        assert_eq!(named("", &file), Vec::<String>::new());
        fs::write(&file, "/usr/lib/libeatmydata.so\n\n/lib/b.so\n").expect("written");
        assert_eq!(named("/x/a.so:c.so", &file), ["/x/a.so", "c.so", "/usr/lib/libeatmydata.so", "/lib/b.so"]);
    }

    #[test]
    fn a_library_is_known_by_its_path_and_its_bytes() {
        let root = tempfile::tempdir().expect("a directory");
        let (one, other) = (root.path().join("a.so"), root.path().join("b.so"));
        fs::write(&one, "one").and_then(|()| fs::write(&other, "other")).expect("written");
        let of = |name: &str| with_digest(name, std::slice::from_ref(&one));
        let path = one.display().to_string();
        let digest = "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed";
        assert_eq!(of(&path), format!("{path} sha256 {digest}"));
        assert_eq!(of("a.so"), of(&path), "it is found among the libraries of this program");
        assert_eq!(of("/usr/$LIB/a.so"), of(&path));
        assert_ne!(of(&other.display().to_string()), of(&path));
        assert_eq!(of("c.so"), "c.so (its file cannot be read)");
    }
}
