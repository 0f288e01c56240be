//! Data that others published, which may not be copied into this repository: it lies beside the checkout.

use std::path::{Path, PathBuf};

/// A file of that data, where it is. In CI its absence is a failure: a test that looked at nothing must not pass there.
pub fn file(name: &str) -> Option<PathBuf> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data").join(name);
    if file.exists() {
        return Some(file);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is not here: nothing could be compared with it", file.display());
    eprintln!("!! {} is not here: NOT TESTED", file.display());
    None
}
