//! Files of the repository that the program itself writes. `./test golden` writes them anew, to be read in the diff.

use std::fs;
use std::path::PathBuf;

/// Compares files of the repository with what they must hold now. A test that writes files fails: no run is green that
/// compares a file with itself.
#[track_caller]
pub fn are_golden<'a>(files: impl IntoIterator<Item = (String, &'a str)>) {
    let is_golden = std::thread::current().name().is_some_and(|test| test.contains("golden"));
    assert!(is_golden, "`./test golden` runs tests with 'golden' in their names");
    let place = |name: &str| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
    let is_stale = |(name, now): &(String, &str)| fs::read_to_string(place(name)).ok().as_deref() != Some(*now);
    let stale: Vec<(String, &str)> = files.into_iter().filter(is_stale).collect();
    let names: Vec<&str> = stale.iter().map(|(name, _)| name.as_str()).collect();
    if std::env::var_os("KVFAIR_GOLDEN").is_some() {
        stale.iter().for_each(|(name, now)| fs::write(place(name), now).expect("the repository can be written"));
        panic!("KVFAIR_GOLDEN is set: written anew: {names:?}");
    }
    assert!(names.is_empty(), "stale: {names:?}; `./test golden` writes them anew");
}
