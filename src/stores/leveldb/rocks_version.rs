//! Which versions of RocksDB are spoken to. Its C interface tells no version, and types of functions are no part of a
//! library: another version's function could be called with arguments that it does not expect. It knows no store.

use std::ops::RangeInclusive;

/// The first numbers of the versions whose header (`rocksdb/include/rocksdb/c.h`) has the types that are used here.
const MAJORS: RangeInclusive<u32> = 6..=10;

/// An error where it is of another version, or where that is not known.
pub fn known(version: &str) -> Result<(), String> {
    let major = version.split('.').next().and_then(|major| major.parse().ok());
    if major.is_some_and(|major: u32| MAJORS.contains(&major)) {
        return Ok(());
    }
    let (first, last) = (MAJORS.start(), MAJORS.end());
    Err(format!(
        "librocksdb.so is of version {version}: one of {first} to {last} is needed, as in package librocksdb7.8"
    ))
}

#[cfg(test)]
mod tests {
    use super::known;

    #[test]
    fn only_versions_of_the_same_interface_are_spoken_to() {
        for version in ["6.11.4", "7.8.3", "10.2"] {
            assert_eq!(known(version), Ok(()), "{version}");
        }
        for version in ["5.18", "11.0.1", "unknown", ""] {
            let said = known(version).expect_err("another version");
            assert!(said.contains(&format!("of version {version}: one of 6 to 10 is needed")), "{said}");
        }
    }
}
