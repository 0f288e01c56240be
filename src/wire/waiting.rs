//! What a connection's questions wait for, oldest first. Questions of one kind come in runs, so runs are kept. It knows
//! no protocol.

use std::collections::VecDeque;

pub(super) struct Waiting<A> {
    runs: VecDeque<(A, u32)>,
    /// Questions in all runs.
    len: usize,
}

impl<A> Default for Waiting<A> {
    fn default() -> Self {
        Waiting { runs: VecDeque::new(), len: 0 }
    }
}

impl<A: PartialEq> Waiting<A> {
    #[inline(always)]
    pub(super) fn push(&mut self, awaited: A) {
        self.push_many(awaited, 1);
    }

    #[inline(always)]
    pub(super) fn push_many(&mut self, awaited: A, count: u32) {
        self.len += count as usize;
        match self.runs.back_mut() {
            Some((last, run)) if *last == awaited => *run += count,
            _ => self.runs.push_back((awaited, count)),
        }
    }

    /// What the oldest question waits for.
    #[inline(always)]
    pub(super) fn front(&self) -> Option<&A> {
        self.runs.front().map(|(awaited, _)| awaited)
    }

    /// And how many wait for just that.
    #[inline(always)]
    pub(super) fn front_run(&self) -> Option<(&A, u32)> {
        self.runs.front().map(|(awaited, run)| (awaited, *run))
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.pop_many(1);
    }

    /// Forgets the oldest ones, no more than are in the first run.
    #[inline(always)]
    pub(super) fn pop_many(&mut self, count: u32) {
        let Some((_, run)) = self.runs.front_mut() else {
            return;
        };
        debug_assert!(count <= *run);
        *run -= count;
        self.len -= count as usize;
        if *run == 0 {
            self.runs.pop_front();
        }
    }

    /// Forgets those of the first `run` that are answered: as many as the bytes begin with `answer`.
    /// How many that were, and the bytes that their answers took.
    #[inline(always)]
    pub(super) fn pop_answered<const N: usize>(&mut self, run: u32, bytes: &[u8], answer: &[u8; N]) -> (u32, usize) {
        let (answers, _) = bytes.as_chunks::<N>();
        let count = answers.iter().take(run as usize).take_while(|found| *found == answer).count();
        self.pop_many(count as u32);
        (count as u32, count * N)
    }

    /// The oldest one now waits for something else.
    pub(super) fn replace_front(&mut self, awaited: A) {
        self.pop();
        self.runs.push_front((awaited, 1));
        self.len += 1;
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_what_single_ones_would_be() {
        let (mut waiting, mut plain) = (Waiting::default(), VecDeque::new());
        for (awaited, count) in [('a', 3), ('a', 1), ('b', 1), ('a', 2), ('a', 0)] {
            waiting.push_many(awaited, count);
            plain.extend(std::iter::repeat_n(awaited, count as usize));
        }
        waiting.push('c');
        plain.push_back('c');
        assert_eq!(waiting.front_run(), Some((&'a', 4)));
        waiting.replace_front('d');
        plain[0] = 'd';
        while !waiting.is_empty() {
            assert_eq!((waiting.front(), waiting.len()), (plain.front(), plain.len()));
            let count = if plain.len() == 7 { 3 } else { 1 };
            waiting.pop_many(count);
            plain.drain(..count as usize);
        }
        assert!(plain.is_empty());
        waiting.pop();
        assert_eq!((waiting.len(), waiting.front()), (0, None));
    }
}
