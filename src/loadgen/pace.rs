//! When requests are due that come at a rate, whether those before them are answered or not.
//!
//! All due times are drawn beforehand, the same for every store. None is skipped or moved: a late request is
//! sent immediately, and the lateness counts (coordinated omission: G. Tene, README of wrk2).

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::draw::mix;
use crate::model::hist::Times;
use crate::model::load::Arrivals;
use crate::model::record::Open;

/// splitmix64's step.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;
/// What was not answered after so long is no queue any more but a store that cannot keep up: so much of the rate may be
/// due and unanswered. Two seconds' worth, so that a store that stalls for a second is still measured.
const BACKLOG_S: u64 = 2;
const BACKLOG: (u64, u64) = (100, 100_000);
/// So many neighbouring requests' sendings are kept, to tell whether they came as they were to come. A test that sees
/// more of them sees the clock's own grain.
const WATCHED: usize = 1_000;

/// The due times of a point, and whether they are still kept.
pub struct Pace {
    rate: u64,
    arrivals: Arrivals,
    due_ns: Vec<u64>,
    warm_up_ns: u64,
    began: OnceLock<Instant>,
    /// The next one that nobody has taken, where clients take what is due.
    next: AtomicU64,
    given_up: AtomicBool,
    late: AtomicU64,
    /// When the requests in the middle were sent.
    sends_ns: Vec<AtomicU64>,
}

impl Pace {
    /// So many requests at a rate a second. Poisson's are independent: their gaps are exponential, by inversion
    /// (Devroye, "Non-Uniform Random Variate Generation", 1986, II.2).
    pub fn draw(rate: u64, arrivals: Arrivals, requests: u64, seed: u64, warm_up_s: u32) -> Pace {
        let mean_ns = 1e9 / rate as f64;
        let mut due = 0.0;
        let gap = |count: u64| match arrivals {
            Arrivals::Constant | Arrivals::Recorded => mean_ns,
            Arrivals::Poisson => {
                let random = mix(seed.wrapping_add(count.wrapping_mul(STEP)));
                -libm::log(((random >> 11) as f64 + 0.5) / (1_u64 << 53) as f64) * mean_ns
            }
        };
        let due_ns = (0..requests).map(|count| {
            due += gap(count);
            due as u64
        });
        Pace {
            rate,
            arrivals,
            due_ns: due_ns.collect(),
            warm_up_ns: u64::from(warm_up_s) * 1_000_000_000,
            began: OnceLock::new(),
            next: AtomicU64::new(0),
            given_up: AtomicBool::new(false),
            late: AtomicU64::new(0),
            sends_ns: (0..WATCHED.min(requests as usize)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Of the same due times those of some clients alone: request number n is client n modulo their count's. Their own
    /// clients have them in turn again.
    pub fn of_clients(self, own: &Range<u64>, all: u64) -> Pace {
        if self.is_recorded() {
            return self;
        }
        let is_own = |number: &usize| own.contains(&(*number as u64 % all));
        let due_ns: Vec<u64> = (0..self.due_ns.len()).filter(is_own).map(|number| self.due_ns[number]).collect();
        let rate = (self.rate * (own.end - own.start) / all.max(1)).max(1);
        let sends_ns = (0..WATCHED.min(due_ns.len())).map(|_| AtomicU64::new(0)).collect();
        Pace { rate, due_ns, sends_ns, ..self }
    }

    /// The job's clients themselves know when each request is due.
    pub fn recorded() -> Pace {
        Pace { arrivals: Arrivals::Recorded, ..Pace::draw(1, Arrivals::Constant, 0, 0, 0) }
    }

    pub fn is_recorded(&self) -> bool {
        self.arrivals == Arrivals::Recorded
    }

    /// The moment that all due times count from: the first call's.
    pub fn began(&self) -> Instant {
        *self.began.get_or_init(Instant::now)
    }

    /// When the request of that number is due, in nanoseconds from the beginning; nothing behind the last one.
    #[inline]
    pub fn due_ns(&self, number: u64) -> Option<u64> {
        self.due_ns.get(number as usize).copied()
    }

    /// The next request that nobody has taken.
    pub fn take(&self) -> Option<(u64, u64)> {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Some((number, self.due_ns(number)?))
    }

    /// How many may be due and unanswered at once.
    pub fn backlog_max(&self) -> u64 {
        (self.rate * BACKLOG_S).clamp(BACKLOG.0, BACKLOG.1)
    }

    /// So many are due and unanswered that the rate is not kept.
    ///
    /// Where all clients share what is due, the first one speaks for all.
    pub fn give_up(&self, late: u64) {
        if !self.given_up.swap(true, Ordering::Relaxed) {
            self.late.fetch_add(late, Ordering::Relaxed);
        }
    }

    /// What else was late when another thread gave the rate up, of connections of its own.
    pub fn late_too(&self, late: u64) {
        self.late.fetch_add(late, Ordering::Relaxed);
    }

    pub fn given_up(&self) -> bool {
        self.given_up.load(Ordering::Relaxed)
    }

    /// Requests that are due by then, of those that nobody has taken.
    pub fn due_by(&self, moment_ns: u64) -> u64 {
        let taken = self.next.load(Ordering::Relaxed) as usize;
        self.due_ns.get(taken..).map_or(0, |left| left.partition_point(|&due| due <= moment_ns) as u64)
    }

    /// Notes when a request was sent.
    #[inline]
    pub fn sent(&self, number: u64, moment_ns: u64) {
        // From the middle, where neither the start nor the end is near.
        let first = (self.due_ns.len() - self.sends_ns.len()) / 2;
        if let Some(place) = self.sends_ns.get((number as usize).wrapping_sub(first)) {
            place.store(moment_ns, Ordering::Relaxed);
        }
    }

    /// What a record says of requests at a rate, over connections or by a thread a client.
    pub fn open(&self, lateness: Lateness, pipelined: bool) -> Open {
        let sends: Vec<u64> = self.sends_ns.iter().map(|moment| moment.load(Ordering::Relaxed)).collect();
        let first = sends.first().copied().unwrap_or_default();
        let all_sent = sends.iter().all(|moment| *moment > 0);
        let last_ns = self.due_ns.last().copied().unwrap_or(lateness.last_due_ns);
        let due_s = last_ns as f64 / 1e9;
        let own_rate = (lateness.response.count() as f64 / due_s.max(1e-9)).round() as u64;
        Open {
            rate: if self.is_recorded() { own_rate.max(1) } else { self.rate },
            arrivals: self.arrivals,
            pipelined,
            response_ns: lateness.response.into(),
            lag_ns: lateness.lag.into(),
            due_s,
            late: self.given_up().then(|| self.late.load(Ordering::Relaxed)),
            sends_ns: sends.into_iter().filter(|_| all_sent).map(|moment| moment.saturating_sub(first)).collect(),
        }
    }
}

/// When one request was due, was sent, was the first of its connection's, and was answered, in nanoseconds from the
/// beginning.
#[derive(Clone, Copy)]
pub(super) struct Moments {
    pub due_ns: u64,
    pub sent_ns: u64,
    pub first_ns: u64,
    pub answered_ns: u64,
}

/// How long requests took from when they were due, and how late they were sent.
#[derive(Debug, Default)]
pub struct Lateness {
    response: Times,
    lag: Times,
    warm_up_ns: u64,
    last_due_ns: u64,
}

impl Lateness {
    pub(super) fn new(pace: &Pace) -> Lateness {
        Lateness { warm_up_ns: pace.warm_up_ns, ..Lateness::default() }
    }

    /// Takes down one request. Its own service's time, if it is to be timed.
    #[inline]
    pub(super) fn note(&mut self, moments: Moments) -> Option<u64> {
        let Moments { due_ns, sent_ns, first_ns, answered_ns } = moments;
        self.last_due_ns = self.last_due_ns.max(due_ns);
        if due_ns < self.warm_up_ns {
            return None;
        }
        self.response.record(answered_ns.saturating_sub(due_ns));
        self.lag.record(sent_ns.saturating_sub(due_ns));
        Some(answered_ns.saturating_sub(first_ns))
    }

    pub(super) fn add(&mut self, other: &Lateness) {
        self.last_due_ns = self.last_due_ns.max(other.last_due_ns);
        self.response.merge(&other.response);
        self.lag.merge(&other.lag);
    }
}

/// Sleeps until a moment: as near to it as the system lets us, and never longer than `most`, so that a sleeper looks
/// up.
pub(super) fn sleep_until(moment: Instant, most: Duration) {
    std::thread::sleep(moment.saturating_duration_since(Instant::now()).min(most));
}

/// Lets this thread's sleeps end when they were told to, not up to 50 us later as the system does by default to spare
/// wake-ups. Elsewhere there is no such slack to take away.
pub(super) fn wake_up_sharply() {
    #[cfg(target_os = "linux")]
    let _ = nix::sys::prctl::set_timerslack(1);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gaps_ns(arrivals: Arrivals) -> Vec<u64> {
        let pace = Pace::draw(1_000, arrivals, 100_000, 1, 0);
        let due = (0..100_000).map(|number| pace.due_ns(number).unwrap());
        due.clone().zip(due.skip(1)).map(|(one, next)| next - one).collect()
    }

    #[test]
    fn independent_arrivals_have_exponential_gaps() {
        let gaps = gaps_ns(Arrivals::Poisson);
        for (longer_than_ms, share) in [(0.1, 0.9048), (1.0, 0.3679), (3.0, 0.0498)] {
            let found =
                gaps.iter().filter(|&&gap| gap as f64 > longer_than_ms * 1e6).count() as f64 / gaps.len() as f64;
            assert!((found - share).abs() < 0.005, "{found} of the gaps are longer than {longer_than_ms} ms");
        }
        // One gap says nothing of the next.
        let mean = gaps.iter().sum::<u64>() as f64 / gaps.len() as f64;
        let by =
            |lag: usize| gaps.iter().zip(&gaps[lag..]).map(|(one, next)| (*one as f64 - mean) * (*next as f64 - mean));
        let correlation = by(1).sum::<f64>() / by(0).sum::<f64>();
        assert!(correlation.abs() < 0.02, "{correlation}");
    }

    #[test]
    fn constant_arrivals_are_equally_far_apart() {
        assert!(gaps_ns(Arrivals::Constant).iter().all(|gap| gap.abs_diff(1_000_000) <= 1));
    }

    #[test]
    fn the_same_seed_gives_the_same_moments_everywhere() {
        let pace = Pace::draw(20_000, Arrivals::Poisson, 4, 7, 0);
        let due: Vec<u64> = (0..4).filter_map(|number| pace.due_ns(number)).collect();
        assert_eq!(due, [130_885, 177_987, 382_340, 387_566]);
        assert_eq!(pace.due_ns(4), None);
    }

    #[test]
    fn agents_share_the_due_times_of_all_clients() {
        let draw = || Pace::draw(1_000, Arrivals::Poisson, 1_003, 7, 0);
        let whole = draw();
        let mut all: Vec<(u64, u64)> = Vec::new();
        for own in [0..3, 3..6, 6..10] {
            let pace = draw().of_clients(&own, 10);
            let clients = own.end - own.start;
            assert_eq!(pace.backlog_max(), (100 * clients * BACKLOG_S).max(BACKLOG.0));
            // The generator gives request n to its client n modulo their count.
            all.extend((0..).map_while(|number| Some((own.start + number % clients, pace.due_ns(number)?))));
        }
        all.sort_unstable_by_key(|(_, due_ns)| *due_ns);
        let alone: Vec<(u64, u64)> = (0..1_003).map(|number| (number % 10, whole.due_ns(number).unwrap())).collect();
        assert_eq!(all, alone);
    }

    #[test]
    fn what_is_due_is_taken_once_and_counted() {
        let pace = Pace::draw(1_000, Arrivals::Constant, 10, 1, 0);
        assert_eq!(pace.due_by(5_000_001), 5);
        assert_eq!(pace.take(), Some((0, 1_000_000)));
        assert_eq!(pace.due_by(5_000_001), 4);
        assert_eq!((0..9).filter_map(|_| pace.take()).count(), 9);
        assert_eq!((pace.take(), pace.due_by(u64::MAX)), (None, 0));
    }
}
