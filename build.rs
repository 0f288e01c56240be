//! Hands the versions of the store libraries from Cargo.lock to the code, as a version is never typed by hand, and the
//! level of optimisation.

use std::path::Path;

/// Libraries that cannot say their own version, and bindings whose version is part of the client_library.
const LIBRARIES: &[&str] = &["fjall", "heed", "mongodb", "redb", "rusqlite", "scylla"];

fn main() {
    println!("cargo::rustc-env=KVFAIR_OPT_LEVEL={}", std::env::var("OPT_LEVEL").expect("cargo sets it"));
    let lock = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it")).join("Cargo.lock");
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = std::fs::read_to_string(&lock)
        .unwrap_or_else(|error| panic!("{}: {error}; build with --locked, which keeps it", lock.display()));
    for library in LIBRARIES {
        let version =
            version(&text, library).unwrap_or_else(|| panic!("{}: no package '{library}' in it", lock.display()));
        println!("cargo::rustc-env=KVFAIR_{}={version}", library.to_uppercase());
    }
}

/// The version of a package: the line after its name.
fn version<'a>(lock: &'a str, package: &str) -> Option<&'a str> {
    let name = format!("name = \"{package}\"");
    let mut lines = lock.lines();
    lines.find(|line| *line == name)?;
    lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')
}
