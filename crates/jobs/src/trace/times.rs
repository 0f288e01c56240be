//! The requests of one second of a recording, each at a moment of its own within it.
//!
//! Recordings tell whole seconds. All requests of one key have the same place in a second, drawn by the key's hash, so
//! that they stay in their order, and keys are spread over it as evenly as hashes are.

use std::collections::VecDeque;

use super::Operation;

/// One request that waits for its moment.
#[derive(Clone, Debug, PartialEq)]
pub struct WaitingRequest {
    pub due_ns: u64,
    pub number: u64,
    pub key: Vec<u8>,
    pub hash: u64,
    pub value_bytes: u32,
    pub ttl_s: u32,
    pub operation: Operation,
}

/// One client's requests of the second that is at hand, in the order of their moments.
pub struct DueTimes {
    percent: u32,
    /// The first second of the recording.
    first_s: Option<u64>,
    /// The second that is being gathered.
    second_s: u64,
    gathering: Vec<WaitingRequest>,
    ready: VecDeque<WaitingRequest>,
}

impl DueTimes {
    /// So many hundredths as fast as it was recorded.
    pub fn new(percent: u32) -> DueTimes {
        DueTimes { percent, first_s: None, second_s: 0, gathering: Vec::new(), ready: VecDeque::new() }
    }

    /// Every request's time goes by here, whoever it is for: the first is the recording's beginning. When it was made,
    /// in seconds from there; a clock that was set back stood still.
    pub fn pass(&mut self, time_s: u64) -> u64 {
        let first_s = *self.first_s.get_or_insert(time_s);
        let second_s = time_s.saturating_sub(first_s).max(self.second_s);
        if second_s > self.second_s {
            self.end_second();
            self.second_s = second_s;
        }
        second_s
    }

    /// Takes a request of the second that `pass` told.
    pub fn hold(&mut self, second_s: u64, held: WaitingRequest) {
        let within = (held.hash >> 11) as f64 / (1_u64 << 53) as f64;
        let scale = 1e9 * 100.0 / f64::from(self.percent);
        self.gathering.push(WaitingRequest { due_ns: ((second_s as f64 + within) * scale) as u64, ..held });
    }

    /// What was gathered is whole.
    pub fn end_second(&mut self) {
        self.gathering.sort_by_key(|held| (held.due_ns, held.number));
        self.ready.extend(self.gathering.drain(..));
    }

    pub fn next(&self) -> Option<&WaitingRequest> {
        self.ready.front()
    }

    pub fn take(&mut self) -> Option<WaitingRequest> {
        self.ready.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gathered(percent: u32, rows: &[(u64, u64)]) -> Vec<(u64, u64)> {
        let mut times = DueTimes::new(percent);
        for (number, &(time_s, hash)) in (0..).zip(rows) {
            let second_s = times.pass(time_s);
            let (key, operation) = (Vec::new(), Operation::Get);
            times.hold(second_s, WaitingRequest { due_ns: 0, number, key, hash, value_bytes: 1, ttl_s: 0, operation });
        }
        times.end_second();
        std::iter::from_fn(|| times.take()).map(|held| (held.due_ns, held.number)).collect()
    }

    const LATE: u64 = u64::MAX / 4 * 3;
    const EARLY: u64 = u64::MAX / 4;

    #[test]
    fn requests_of_a_second_are_spread_over_it_and_keep_their_keys_order() {
        let rows = [(70, LATE), (70, EARLY), (70, LATE), (71, EARLY), (73, LATE)];
        let due: Vec<(u64, u64)> =
            gathered(100, &rows).into_iter().map(|(due, number)| (due / 100_000_000, number)).collect();
        assert_eq!(due, [(2, 1), (7, 0), (7, 2), (12, 3), (37, 4)]);
    }

    #[test]
    fn times_are_scaled_and_never_go_back() {
        let due: Vec<u64> =
            gathered(200, &[(5, LATE), (6, EARLY)]).into_iter().map(|(due, _)| due / 100_000_000).collect();
        assert_eq!(due, [3, 6], "twice as fast");
        let numbers: Vec<u64> =
            gathered(100, &[(9, LATE), (8, LATE), (9, LATE)]).into_iter().map(|one| one.1).collect();
        assert_eq!(numbers, [0, 1, 2]);
    }
}
