//! Counters, up and down.

use super::super::super::Decoded;
use super::super::super::text::garbled;
use super::super::frames::lowered;
use super::{Awaited, Binary, DECREMENT, INCREMENT, INCREMENT_QUIETLY, NOOP, NOT_FOUND, answer, head, in_words};
use crate::model::op::{Fault, Op, Reply, Sums};

/// What a counter that is not there is made with: nothing, or a first value that never ends.
const NOT_MADE: u32 = u32::MAX;
const FOR_EVER: u32 = 0;

impl Binary {
    /// Adds to a counter, or makes it with the step as its first value. A negative step is taken away: that stops at 0
    /// and does not say so, which is why the counter is asked for right before.
    pub(super) fn increment(&self, key: &[u8], by: i64, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.limits.check_plain_key(key)?;
        let step = by.unsigned_abs();
        if by >= 0 {
            change(INCREMENT, key, step, FOR_EVER, self.next, out);
            return Ok(Awaited::Sum);
        }
        change(INCREMENT, key, 0, NOT_MADE, self.next, out);
        change(DECREMENT, key, step, NOT_MADE, self.next.wrapping_add(1), out);
        Ok(Awaited::Lowered { by: step })
    }

    /// The same where the sum is not asked for. The protocol answers with it all the same.
    pub(super) fn add(&self, op: &Op<'_>, key: &[u8], by: i64, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.limits.check_plain_key(key)?;
        change(INCREMENT, key, self.limits.step_of(op, by)?, FOR_EVER, self.next, out);
        Ok(Awaited::Counted)
    }

    /// Sums are quiet, errors are not.
    pub(super) fn add_many(&self, op: &Op<'_>, sums: Sums<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if sums.is_empty() {
            return Err(self.limits.nothing(op));
        }
        for (key, by) in sums.iter() {
            self.limits.check_plain_key(key)?;
            self.limits.step_of(op, by)?;
        }
        let mut number = self.next;
        for (key, by) in sums.iter() {
            change(INCREMENT_QUIETLY, key, by.unsigned_abs(), FOR_EVER, number, out);
            number = number.wrapping_add(1);
        }
        head(NOOP, 0, 0, 0, number, 0, out);
        Ok(Awaited::AllCounted(sums.len() as u32))
    }

    /// What a counter was, and then what is left of it.
    pub(super) fn hear_lowered<'b>(
        &'b mut self,
        by: u64,
        bytes: &'b [u8],
    ) -> Result<Option<(usize, Decoded<'b>)>, Fault> {
        let Some((used, answer)) = answer(bytes)? else {
            return Ok(None);
        };
        let (number, command) =
            if self.begun { (self.front.wrapping_add(1), DECREMENT) } else { (self.front, INCREMENT) };
        if answer.number != number || answer.command != command {
            return Err(garbled(&format!("the answer to question {number}"), bytes));
        }
        let number = match answer.status {
            0 => u64::from_be_bytes(answer.value.try_into().map_err(|_| garbled("eight bytes of a number", bytes))?),
            NOT_FOUND => 0,
            _ => {
                self.note(in_words(&answer, 0));
                0
            }
        };
        if !self.begun {
            (self.begun, self.before) = (true, number);
            return Ok(Some((used, Decoded::Again)));
        }
        Ok(Some(match self.refusal.take().map_or_else(|| lowered(self.before, by, number), Err) {
            Ok(left) => {
                self.done(Awaited::Lowered { by });
                (used, Decoded::Reply(Reply::Number(left)))
            }
            Err(words) => (used, self.refused(words)),
        }))
    }
}

/// A question of a counter: its step, the first value of one that is made, and when that ends.
fn change(command: u8, key: &[u8], step: u64, made: u32, number: u32, out: &mut Vec<u8>) {
    head(command, key.len(), 20, 0, number, 0, out);
    out.extend_from_slice(&step.to_be_bytes());
    out.extend_from_slice(&step.to_be_bytes());
    out.extend_from_slice(&made.to_be_bytes());
    out.extend_from_slice(key);
}
