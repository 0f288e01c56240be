//! The keys that wait for their values, where a protocol's answers repeat them. It knows no protocol.

/// The keys that were asked for and not answered yet, in order. It keeps its memory and does not grow with the
/// connection's age.
#[derive(Default)]
pub(super) struct PendingKeys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    /// Keys before this one are answered.
    first: usize,
}

impl PendingKeys {
    #[inline]
    pub(super) fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    /// Remembers what `write` appends, and lends it.
    #[inline]
    pub(super) fn push_written(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> &[u8] {
        let start = self.bytes.len();
        write(&mut self.bytes);
        self.ends.push(self.bytes.len());
        &self.bytes[start..]
    }

    #[inline]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        let index = self.first + index;
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.bytes[start..self.ends[index]]
    }

    #[inline]
    pub(super) fn pop(&mut self, keys: usize) {
        self.first += keys;
        if self.first == self.ends.len() {
            self.bytes.clear();
            self.ends.clear();
            self.first = 0;
        } else if self.first * 2 > self.ends.len() {
            self.forget_answered();
        }
    }

    /// A connection that always has questions under way never runs empty: the half that is answered makes room.
    pub(super) fn forget_answered(&mut self) {
        let start = self.ends[self.first - 1];
        self.bytes.drain(..start);
        self.ends.drain(..self.first);
        self.ends.iter_mut().for_each(|end| *end -= start);
        self.first = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_that_are_answered_make_room_though_others_always_wait() {
        let mut asked = PendingKeys::default();
        asked.push(b"key 0");
        for next in 1..1_000 {
            let key = format!("key {next}").into_bytes();
            asked.push(&key);
            asked.pop(1);
            assert_eq!(asked.get(0), key);
            assert!(asked.ends.len() <= 2 && asked.bytes.len() <= 2 * key.len(), "{} after {next}", asked.ends.len());
        }
    }
}
