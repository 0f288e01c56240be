//! Bytes on their way: each chunk is passed on a fixed time after it came. Chunks wait side by side, so that a delay
//! takes nothing from how many bytes pass in a second.

use std::collections::VecDeque;
use std::time::Duration;

/// So many bytes may be on their way: at a round trip of 100 ms that is 1.3 GB/s. Then nothing more is read.
const BYTES_MAX: usize = 64 << 20;

/// One way of one connection. Times count from any moment, the same for all calls.
pub struct DelayQueue {
    delay: Duration,
    bytes: VecDeque<u8>,
    /// The oldest first.
    chunks: VecDeque<Chunk>,
    /// Of `bytes` those that are due.
    due_bytes: usize,
    /// The end has come, and is due once all before it is gone.
    ends: bool,
}

struct Chunk {
    due: Duration,
    /// None is the end.
    length: Option<usize>,
}

impl DelayQueue {
    pub fn new(delay: Duration) -> DelayQueue {
        DelayQueue { delay, bytes: VecDeque::new(), chunks: VecDeque::new(), due_bytes: 0, ends: false }
    }

    /// These bytes came; when they are due.
    pub fn push(&mut self, now: Duration, bytes: &[u8]) -> Duration {
        self.bytes.extend(bytes);
        self.came(now, Some(bytes.len()))
    }

    /// Nothing more will come; when that is due.
    pub fn push_end(&mut self, now: Duration) -> Duration {
        self.came(now, None)
    }

    fn came(&mut self, now: Duration, length: Option<usize>) -> Duration {
        let due = now + self.delay;
        self.chunks.push_back(Chunk { due, length });
        due
    }

    /// Lets go of what is due until `until`; `heard` is told when each chunk was due.
    pub fn let_go(&mut self, until: Duration, mut heard: impl FnMut(Duration)) {
        while let Some(Chunk { due, length }) = self.chunks.front().filter(|chunk| chunk.due <= until) {
            heard(*due);
            match length {
                Some(length) => self.due_bytes += length,
                None => self.ends = true,
            }
            self.chunks.pop_front();
        }
    }

    /// What is to be passed on now, or its beginning.
    pub fn due(&self) -> &[u8] {
        let first = self.bytes.as_slices().0;
        &first[..first.len().min(self.due_bytes)]
    }

    /// So many of these were passed on.
    pub fn passed(&mut self, count: usize) {
        self.bytes.drain(..count);
        self.due_bytes -= count;
    }

    /// All was passed on, and the end is due.
    pub fn has_ended(&self) -> bool {
        self.ends && self.due_bytes == 0
    }

    /// Nobody takes it any more.
    pub fn give_up(&mut self) {
        *self = DelayQueue { ends: true, ..DelayQueue::new(self.delay) };
    }

    pub fn is_full(&self) -> bool {
        self.bytes.len() >= BYTES_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn let_go(queue: &mut DelayQueue, until: Duration) -> usize {
        let mut count = 0;
        queue.let_go(until, |_| count += 1);
        count
    }

    /// What it passes on by then, as one text.
    fn passed(queue: &mut DelayQueue, until: Duration) -> String {
        let_go(queue, until);
        let mut text = Vec::new();
        while !queue.due().is_empty() {
            let some = queue.due()[..queue.due().len().min(3)].to_vec();
            queue.passed(some.len());
            text.extend(some);
        }
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn a_chunk_is_passed_on_when_it_is_due_and_no_sooner() {
        let mut queue = DelayQueue::new(5 * MS);
        assert_eq!(queue.push(MS, b"first"), 6 * MS);
        assert_eq!(queue.push(3 * MS, b"second"), 8 * MS);
        assert_eq!(passed(&mut queue, 6 * MS - Duration::from_nanos(1)), "");
        assert_eq!(passed(&mut queue, 6 * MS), "first");
        assert_eq!(passed(&mut queue, 7 * MS), "");
        assert_eq!(passed(&mut queue, 9 * MS), "second");
    }

    #[test]
    fn many_chunks_are_on_their_way_at_once_and_keep_their_order() {
        let mut queue = DelayQueue::new(100 * MS);
        let text: String = (0..1000).map(|number| format!("{number} ")).collect();
        for (place, byte) in text.bytes().enumerate() {
            queue.push(Duration::from_micros(place as u64), &[byte]);
        }
        assert_eq!(let_go(&mut queue, 100 * MS), 1, "one a microsecond");
        assert_eq!(passed(&mut queue, 104 * MS), text, "all of them 4 ms after the first");
    }

    #[test]
    fn without_a_delay_everything_is_due_at_once() {
        let mut queue = DelayQueue::new(Duration::ZERO);
        queue.push(MS, b"now");
        assert_eq!(passed(&mut queue, MS), "now");
    }

    #[test]
    fn the_end_waits_its_time_and_for_what_is_before_it() {
        let mut queue = DelayQueue::new(5 * MS);
        queue.push(MS, b"last");
        queue.push_end(2 * MS);
        assert!(!queue.has_ended());
        let_go(&mut queue, 7 * MS);
        assert!(!queue.has_ended(), "four bytes are not passed on yet");
        assert_eq!(passed(&mut queue, 7 * MS), "last");
        assert!(queue.has_ended());
        let mut given_up = DelayQueue::new(5 * MS);
        given_up.push(MS, b"nobody takes this");
        given_up.give_up();
        assert!(given_up.has_ended() && given_up.due().is_empty());
    }

    #[test]
    fn nothing_is_read_into_a_queue_that_nobody_empties() {
        let mut queue = DelayQueue::new(MS);
        let piece = vec![0; BYTES_MAX / 2];
        queue.push(MS, &piece);
        assert!(!queue.is_full());
        queue.push(MS, &piece);
        assert!(queue.is_full());
        let_go(&mut queue, 2 * MS);
        queue.passed(1);
        assert!(!queue.is_full());
    }
}
