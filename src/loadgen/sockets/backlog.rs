//! What a socket did not take at once. It is given away from its front, and the rest is not moved for it: of a hundred
//! megabytes a socket takes a thousandth at a time.

#[derive(Default)]
pub(super) struct WriteBacklog {
    bytes: Vec<u8>,
    /// Of them, those in front that are gone.
    sent: usize,
}

impl WriteBacklog {
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    #[inline]
    pub(super) fn rest(&self) -> &[u8] {
        &self.bytes[self.sent..]
    }

    /// So many bytes of the rest are gone.
    #[inline]
    pub(super) fn took(&mut self, count: usize) {
        self.sent += count;
        if self.sent == self.bytes.len() {
            self.clear();
        }
    }

    /// To write on behind the rest. No more bytes are moved than were sent since the last time.
    #[inline]
    pub(super) fn end(&mut self) -> &mut Vec<u8> {
        if self.sent > self.bytes.len() / 2 {
            self.bytes.drain(..self.sent);
            self.sent = 0;
        }
        &mut self.bytes
    }

    #[inline]
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.sent = 0;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_goes_in_comes_out_in_its_order(turns in prop::collection::vec((0..50_usize, 0..80_usize), 0..200)) {
            let (mut backlog, mut next, mut seen) = (WriteBacklog::default(), 0_u32, Vec::new());
            for (more, most) in turns {
                for _ in 0..more {
                    backlog.end().extend_from_slice(&next.to_le_bytes());
                    next += 1;
                }
                let taken = most.min(backlog.rest().len());
                seen.extend_from_slice(&backlog.rest()[..taken]);
                backlog.took(taken);
                prop_assert_eq!(backlog.is_empty(), backlog.rest().is_empty());
            }
            seen.extend_from_slice(backlog.rest());
            prop_assert_eq!(seen, (0..next).flat_map(u32::to_le_bytes).collect::<Vec<u8>>());
        }
    }
}
