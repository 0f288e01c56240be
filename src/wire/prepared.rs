//! A command that is said again and again: what stands before its value is copied, and only the key is written anew.
//! It knows no protocol.

/// The beginning of a command as it was last said. It serves again while key and value have the same lengths.
#[derive(Default)]
pub(super) struct Prepared {
    head: Vec<u8>,
    key_at: usize,
    key_bytes: usize,
    value_bytes: usize,
}

impl Prepared {
    /// Appends what `write` writes for these lengths: all of the command that stands before its value. `write` says
    /// where the key begins.
    #[inline(always)]
    pub(super) fn say(
        &mut self,
        key: &[u8],
        value_bytes: usize,
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> usize,
    ) {
        if key.len() != self.key_bytes || value_bytes != self.value_bytes || self.head.is_empty() {
            self.write_anew(key.len(), value_bytes, write);
        }
        let start = out.len();
        // Room for the value and its end as well, so that this is the only place to look for room.
        out.reserve(self.head.len() + value_bytes + 2);
        out.extend_from_slice(&self.head);
        out[start + self.key_at..][..key.len()].copy_from_slice(key);
    }

    #[cold]
    fn write_anew(&mut self, key_bytes: usize, value_bytes: usize, write: impl FnOnce(&mut Vec<u8>) -> usize) {
        self.head.clear();
        self.key_at = write(&mut self.head);
        (self.key_bytes, self.value_bytes) = (key_bytes, value_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_again_differs_in_its_key_only() {
        let (mut prepared, mut out, mut written) = (Prepared::default(), Vec::new(), 0);
        for (key, value_bytes) in [("a", 3), ("b", 3), ("cc", 3), ("dd", 4), ("", 4), ("", 4)] {
            prepared.say(key.as_bytes(), value_bytes, &mut out, |head| {
                written += 1;
                head.extend_from_slice(format!("set {key} {value_bytes};").as_bytes());
                4
            });
        }
        assert_eq!(String::from_utf8(out).unwrap(), "set a 3;set b 3;set cc 3;set dd 4;set  4;set  4;");
        assert_eq!(written, 4);
    }
}
