//! What a server that is not ours said of its memory before anything was written to it.

use serde::{Deserialize, Serialize};

use super::op::readable;
use super::units::thousands;

/// The most bytes of a server's own words.
const LONGEST: usize = 40;

/// Numbers in bytes; none for what it does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Headroom {
    /// 0 where it has no limit but its host's.
    pub limit_bytes: Option<u64>,
    pub used_bytes: Option<u64>,
    /// What it does at its limit, in its own words.
    pub policy: Option<String>,
    /// Records of all its databases.
    pub records: Option<u64>,
    /// Records that it had dropped to make room.
    pub evicted: Option<u64>,
    /// What is left: of its limit, or of its host's memory.
    pub free_bytes: Option<u64>,
    /// What the trial may take; none of a program of the user's.
    pub need_bytes: Option<u64>,
}

impl Headroom {
    /// "limit 1,048,576, used 900,000, allkeys-lru, 5,001 records in all databases"; "-" for what is not known.
    pub fn in_words(&self) -> String {
        let told = |number: Option<u64>| number.map_or_else(|| "-".to_string(), thousands);
        let limit = if self.limit_bytes == Some(0) { "its host's".to_string() } else { told(self.limit_bytes) };
        let policy =
            self.policy.as_deref().map_or_else(|| "-".to_string(), |words| readable(words.as_bytes(), LONGEST));
        let (used, records) = (told(self.used_bytes), told(self.records));
        format!("limit {limit}, used {used}, policy {policy}, {records} records in all databases")
    }

    /// What a reader must know: that it is not known whether there was room.
    pub fn unknown(&self) -> Option<String> {
        let need = self.need_bytes.filter(|_| self.free_bytes.is_none())?;
        Some(format!("how much memory it has left is unknown ({}); this may take {}", self.in_words(), thousands(need)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_a_dash() {
        assert_eq!(Headroom::default().in_words(), "limit -, used -, policy -, - records in all databases");
        let known = Headroom { limit_bytes: Some(0), used_bytes: Some(1_234), ..Headroom::default() };
        assert_eq!(known.in_words(), "limit its host's, used 1,234, policy -, - records in all databases");
        assert_eq!(known.unknown(), None, "nothing was to be written");
        assert!(Headroom { need_bytes: Some(5), ..known.clone() }.unknown().is_some());
        assert_eq!(Headroom { need_bytes: Some(5), free_bytes: Some(9), ..known }.unknown(), None);
    }
}
