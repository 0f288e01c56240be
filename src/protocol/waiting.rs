//! What a connection's questions wait for, oldest first. Questions of one kind come in runs, so runs are kept. It knows
//! no protocol.

use std::collections::VecDeque;

pub(super) struct Waiting<A> {
    /// Mostly the only run: looked at and counted down with every answer, so it is in no ring.
    first: Option<(A, u32)>,
    rest: VecDeque<(A, u32)>,
    /// Questions in all runs.
    len: usize,
}

impl<A> Default for Waiting<A> {
    fn default() -> Self {
        Waiting { first: None, rest: VecDeque::new(), len: 0 }
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
        let last = if self.rest.is_empty() { self.first.as_mut() } else { self.rest.back_mut() };
        match last {
            Some((last, run)) if *last == awaited => *run += count,
            Some(_) => self.rest.push_back((awaited, count)),
            None => self.first = Some((awaited, count)),
        }
    }

    /// What the oldest question waits for.
    #[inline(always)]
    pub(super) fn front(&self) -> Option<&A> {
        self.first.as_ref().map(|(awaited, _)| awaited)
    }

    /// And how many wait for just that.
    #[inline(always)]
    pub(super) fn front_run(&self) -> Option<(&A, u32)> {
        self.first.as_ref().map(|(awaited, run)| (awaited, *run))
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) {
        self.pop_many(1);
    }

    /// Forgets the oldest ones, no more than are in the first run.
    #[inline(always)]
    pub(super) fn pop_many(&mut self, count: u32) {
        let Some((_, run)) = &mut self.first else {
            return;
        };
        *run -= count;
        self.len -= count as usize;
        if *run == 0 {
            self.first = self.rest.pop_front();
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
        if let Some(next) = self.first.replace((awaited, 1)) {
            self.rest.push_front(next);
        }
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

    #[test]
    fn answers_are_counted_up_to_the_first_that_is_another() {
        let mut waiting = Waiting::default();
        waiting.push_many('a', 7);
        waiting.push('b');
        assert_eq!(waiting.pop_answered(7, b"oh!oh!no!oh!", b"oh!"), (2, 6));
        assert_eq!(waiting.pop_answered(5, b"oh!oh", b"oh!"), (1, 3), "the second one is not whole");
        assert_eq!(waiting.pop_answered(4, b"no!", b"oh!"), (0, 0));
        assert_eq!((waiting.front_run(), waiting.len()), (Some((&'a', 4)), 5));
        assert_eq!(waiting.pop_answered(4, &b"oh!".repeat(9), b"oh!"), (4, 12), "no more than wait for it");
        assert_eq!((waiting.front_run(), waiting.len()), (Some((&'b', 1)), 1));
    }
}
