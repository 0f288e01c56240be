//! A command that is said again and again is copied as a whole, and only its key and value are written anew. It knows
//! no protocol.

use crate::model::op::Pattern;

/// Larger values are not copied twice.
const VALUE_MAX: usize = 256;

/// A command as it was last said. It serves again while key and value have the same lengths.
#[derive(Default)]
pub(super) struct PreparedCommand {
    /// All of it, or what stands before a large value.
    frame: Vec<u8>,
    key_at: usize,
    key_bytes: usize,
    value_at: usize,
    value_bytes: usize,
}

impl PreparedCommand {
    /// Appends a command that ends behind its key. `write` writes it for keys of this length, and says where the key
    /// begins.
    #[inline(always)]
    pub(super) fn say(&mut self, key: &[u8], out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> usize) {
        if key.len() != self.key_bytes || self.frame.is_empty() {
            self.write_anew(key.len(), write);
        }
        let start = out.len();
        out.extend_from_slice(&self.frame);
        copy_fresh(key, &mut out[start + self.key_at..][..key.len()]);
    }

    /// Appends a command that ends with a value and `behind`, which is always the same. `write` writes all that stands
    /// before the value, for these lengths, and says where the key begins.
    #[inline(always)]
    pub(super) fn say_with(
        &mut self,
        key: &[u8],
        value: &[u8],
        behind: &[u8],
        out: &mut Vec<u8>,
        write: impl FnOnce(&mut Vec<u8>) -> usize,
    ) {
        self.fit(key, value, behind, write);
        let start = out.len();
        out.extend_from_slice(&self.frame);
        copy_fresh(key, &mut out[start + self.key_at..][..key.len()]);
        if value.len() <= VALUE_MAX {
            copy_fresh(value, &mut out[start + self.value_at..][..value.len()]);
        } else {
            out.extend_from_slice(value);
            out.extend_from_slice(behind);
        }
    }

    /// The command of `say` for keys of this length, for whoever writes the key by himself.
    #[inline(always)]
    pub(super) fn pattern(&mut self, key: &[u8], write: impl FnOnce(&mut Vec<u8>) -> usize) -> Pattern<'_> {
        if key.len() != self.key_bytes || self.frame.is_empty() {
            self.write_anew(key.len(), write);
        }
        Pattern { bytes: &self.frame, key_at: self.key_at, value_at: self.frame.len() }
    }

    /// The command of `say_with` for keys and values of these lengths, unless the value is large.
    #[inline(always)]
    pub(super) fn pattern_with(
        &mut self,
        key: &[u8],
        value: &[u8],
        behind: &[u8],
        write: impl FnOnce(&mut Vec<u8>) -> usize,
    ) -> Option<Pattern<'_>> {
        if value.len() > VALUE_MAX {
            return None;
        }
        self.fit(key, value, behind, write);
        Some(Pattern { bytes: &self.frame, key_at: self.key_at, value_at: self.value_at })
    }

    #[inline(always)]
    fn fit(&mut self, key: &[u8], value: &[u8], behind: &[u8], write: impl FnOnce(&mut Vec<u8>) -> usize) {
        if key.len() != self.key_bytes || value.len() != self.value_bytes || self.frame.is_empty() {
            self.write_anew(key.len(), write);
            self.make_room(value.len(), behind);
        }
    }

    #[cold]
    fn write_anew(&mut self, key_bytes: usize, write: impl FnOnce(&mut Vec<u8>) -> usize) {
        self.frame.clear();
        self.key_at = write(&mut self.frame);
        self.key_bytes = key_bytes;
    }

    #[cold]
    fn make_room(&mut self, value_bytes: usize, behind: &[u8]) {
        (self.value_at, self.value_bytes) = (self.frame.len(), value_bytes);
        if value_bytes <= VALUE_MAX {
            self.frame.resize(self.value_at + value_bytes, 0);
            self.frame.extend_from_slice(behind);
        }
    }
}

/// Copies bytes that were written a moment ago a word at a time: a wider read would have to wait until all of them have
/// left the processor for its cache.
#[inline(always)]
fn copy_fresh(from: &[u8], to: &mut [u8]) {
    let ((words, rest), (to_words, to_rest)) = (from.as_chunks::<8>(), to.as_chunks_mut::<8>());
    words.iter().zip(to_words).for_each(|(from, to)| *to = *from);
    rest.iter().zip(to_rest).for_each(|(from, to)| *to = *from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_again_differs_in_its_key_only() {
        let (mut prepared, mut out, mut written) = (PreparedCommand::default(), Vec::new(), 0);
        for key in ["", "a", "b", "cc", "dd", "0123456789", "abcdefghij", "", ""] {
            prepared.say(key.as_bytes(), &mut out, |frame| {
                written += 1;
                frame.extend_from_slice(format!("get {key};").as_bytes());
                4
            });
        }
        let said = "get ;get a;get b;get cc;get dd;get 0123456789;get abcdefghij;get ;get ;";
        assert_eq!(String::from_utf8(out).unwrap(), said);
        assert_eq!(written, 5);
    }

    #[test]
    fn what_is_said_again_differs_in_key_and_value_only() {
        let (mut prepared, mut written) = (PreparedCommand::default(), 0);
        for length in [0, 0, 3, 3, 8, 19, 19, 255, 256, 257, 257, 1_000, 19] {
            // The last key is as long as the first one of the next length.
            for key in ["a", "b", "cc", "dd", "a"] {
                let value: Vec<u8> = (0..length).map(|place| (place + written) as u8).collect();
                let (mut out, mut expected) = (b"before ".to_vec(), format!("before set {key} {length};").into_bytes());
                prepared.say_with(key.as_bytes(), &value, b"\r\n", &mut out, |frame| {
                    written += 1;
                    frame.extend_from_slice(format!("set {key} {length};").as_bytes());
                    4
                });
                expected.extend_from_slice(&value);
                expected.extend_from_slice(b"\r\n");
                assert_eq!(out, expected, "{length} bytes");
            }
        }
        assert_eq!(written, 35);
    }

    #[test]
    fn the_first_command_of_all_may_have_neither_key_nor_value() {
        let write = |frame: &mut Vec<u8>| {
            frame.extend_from_slice(b"set ;");
            4
        };
        let mut out = Vec::new();
        PreparedCommand::default().say_with(b"", b"", b"\r\n", &mut out, write);
        assert_eq!(out, b"set ;\r\n");
        assert_eq!(PreparedCommand::default().pattern(b"", write).bytes, b"set ;");
        assert_eq!(
            PreparedCommand::default().pattern_with(b"", b"", b"\r\n", write).map(|said| said.value_at),
            Some(5)
        );
    }
}
