//! The last value of which a client was told a version, for stores that compare whole values. Knows no store.

use super::cell::version;

/// The last value that a session gave a version of, where the store itself compares: it must be told the whole value.
#[derive(Default)]
pub struct VersionSeen {
    key: Vec<u8>,
    value: Vec<u8>,
}

impl VersionSeen {
    pub fn remember(&mut self, key: &[u8], value: &[u8]) {
        self.key.clear();
        self.key.extend_from_slice(key);
        self.value.clear();
        self.value.extend_from_slice(value);
    }

    /// The value that a version was made of, if it was the last.
    pub fn value(&self, key: &[u8], of: u64) -> Option<&[u8]> {
        (self.key == key && version(&self.value) == of).then_some(&self.value)
    }
}
