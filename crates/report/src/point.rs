//! One target at one point of a sweep: what was asked there and what it came to, as plain data.

use std::collections::BTreeMap;
use std::str::FromStr;

use super::staleness::Stale;
use super::standing::Counted;
use super::versus::Versus;
use kvfair_core::disturbed::Disturbed;
use kvfair_core::load::{At, Load, Swept};
use kvfair_core::part::Part;
use kvfair_core::record::{CutOff, Outcome, Phase, Record};

/// Which of several blocks' requests a second stand for all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Statistic {
    #[default]
    Median,
    /// As in the posts, whose authors took the best of three.
    Best,
}

impl FromStr for Statistic {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "median" => Ok(Statistic::Median),
            "best" => Ok(Statistic::Best),
            _ => Err(format!("'{text}' is neither median nor best")),
        }
    }
}

/// One target at one number of clients in one part: medians over blocks, but for what `statistic` says.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// `Run` where sets and gets come mixed.
    pub part: Part,
    pub clients: u32,
    pub value_bytes: u32,
    /// Keys of a question.
    pub batch: u32,
    /// What the points differ in.
    pub swept: Swept,
    /// Where requests come at a rate.
    pub rated: Option<Rated>,
    /// Where a block was stopped at its time-out: how far the slowest one came. Then no number of it is shown.
    pub cut_off: Option<CutOff>,
    /// Where the machine disturbed most of its trials: then no number of it is shown either.
    pub unclear: Option<Disturbed>,
    pub target: String,
    pub baseline: bool,
    pub trials: usize,
    /// What `requests_per_s` is of the blocks.
    pub statistic: Statistic,
    pub requests_per_s: f64,
    pub requests_per_s_lowest: f64,
    pub requests_per_s_highest: f64,
    /// In which the median lies 95 times in 100; none below six blocks.
    pub requests_per_s_interval: Option<(f64, f64)>,
    pub client_cpu_us_per_request: f64,
    pub server_cpu_us_per_request: Option<f64>,
    /// Of what the same clients reach at a server of ours that only looks up an array; none for who is not reached by
    /// the same way.
    pub ceiling_share: Option<f64>,
    /// The generator's own limit is near: real differences between stores are compressed here, and none is ranked.
    pub client_limited: bool,
    /// What it may be ranked with.
    pub group: String,
    /// None for baselines and what the client limits.
    pub beside: Option<Beside>,
    /// The same by CPU a request, beside the one that used least.
    pub cpu_beside: Option<Beside>,
    /// How many times as much twice the threads reached, where that was tried.
    pub doubled_rise: Option<f64>,
    /// Only where it was asked for: histograms take longer to read than all else in a record.
    pub service: Option<Service>,
    /// How old what replicas answered was; nothing where none was asked.
    pub stale: Option<Stale>,
}

/// Times of all blocks' requests together: with all clients asking as fast as they are answered.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Service {
    pub service_ns_p50: u64,
    pub service_ns_p99: Option<u64>,
    pub service_ns_max: u64,
}

/// The phases of a trial that are points of a sweep, each with what it was asked.
pub(super) fn measured(record: &Record) -> impl Iterator<Item = (&Phase, At, Swept)> {
    let (points, swept) = asked(record);
    let phases = record.measured().filter(|phase| phase.part != Part::FinalFlush);
    phases.map(move |phase| (phase, at(&points, phase), swept))
}

/// What a trial was to ask, and what it swept over.
pub(super) fn asked(record: &Record) -> (Vec<At>, Swept) {
    let load = record.job.load.as_ref();
    (load.map_or_else(Vec::new, |load| load.points(record.job.units, 0)), load.map_or(Swept::Clients, Load::swept))
}

/// What a phase was asked.
pub(super) fn at(points: &[At], phase: &Phase) -> At {
    let at = points.iter().find(|at| at.number == phase.point).copied();
    // Phases did not tell their point when there were only clients to sweep over.
    at.unwrap_or_else(|| At::closed(phase.clients, phase.metrics.units))
}

/// The trials that have points: finished, right, counted and timed.
pub(super) fn trials<'a>(records: &'a [Record], counted: &Counted) -> impl Iterator<Item = &'a Record> {
    let right = |record: &&Record| record.outcome == Outcome::Finished && record.is_right() && counted.has(record);
    records.iter().filter(right).filter(|record| !record.run.answers_only)
}

/// Whether there is more to show than one number of clients doing one thing.
pub fn is_swept(records: &[Record], counted: &Counted) -> bool {
    let mut first = None;
    let mut trials = trials(records, counted).peekable();
    // Only jobs of requests have several points; what one trial of another job is, all are.
    let several = trials.peek().is_some_and(|trial| trial.job.load.is_some());
    let looked_at = trials.take(if several { usize::MAX } else { 1 });
    looked_at.flat_map(measured).any(|(phase, at, swept)| {
        let this = (phase.part, step(at, swept));
        phase.part != Part::Run || phase.open.is_some() || *first.get_or_insert(this) != this
    })
}

/// Which point of which target: sets come before gets, as they were asked.
pub(super) type Key<'a> = (bool, Part, &'a str, u64);

/// The phases of each point, of all trials that have points, and what each point was asked.
pub(super) fn grouped<'a>(
    records: &'a [Record],
    counted: &Counted,
) -> (BTreeMap<Key<'a>, Phases<'a>>, BTreeMap<Key<'a>, (At, Swept)>) {
    let (mut groups, mut steps) = (BTreeMap::<Key<'a>, Phases<'a>>::new(), BTreeMap::new());
    for record in trials(records, counted) {
        for (phase, at, swept) in measured(record) {
            let key = (phase.part != Part::Set, phase.part, record.target.label.as_str(), step(at, swept));
            steps.insert(key, (at, swept));
            groups.entry(key).or_default().push((record, phase));
        }
    }
    (groups, steps)
}

/// The trials of one target at one point.
pub(super) type Phases<'a> = Vec<(&'a Record, &'a Phase)>;

/// One target at one rate: times of all blocks' requests together.
#[derive(Clone, Debug, PartialEq)]
pub struct Rated {
    pub rate: u64,
    /// All requests were answered in the time that they came in, in every block.
    pub kept: bool,
    /// The most requests that were due and not answered when a block's rate was given up.
    pub late: Option<u64>,
    /// From when a request was due to its answer.
    pub response_ns_p50: u64,
    pub response_ns_p99: Option<u64>,
    pub response_ns_p999: Option<u64>,
    pub response_ns_max: u64,
    pub requests: u64,
    /// Of them, those whose users would have waited for 10 s or longer: most clients have given up by then. Their times
    /// are what they were.
    pub timed_out: u64,
    /// From when it was due to its sending.
    pub lag_ns_p50: u64,
    pub lag_ns_p99: Option<u64>,
    /// Of the sendings against independent ones, the worst block's; none for constant arrivals.
    pub arrivals_a_squared: Option<f64>,
}

/// One target beside the fastest of the same point and group.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Beside {
    /// Whole blocks that were compared.
    pub blocks: usize,
    /// Its time for a request of the fastest one's, whichever that is; at a rate, its response.
    pub vs_best: Versus,
    /// Against the one that was the fastest here, by itself: what a claim names.
    pub versus: Versus,
    pub is_best: bool,
    /// It is slower, and would be tomorrow.
    pub slower: bool,
    /// What a claimed ratio must exceed, as a share beyond 1; none where no target was run twice.
    pub noise_floor: Option<f64>,
    /// Only the near end of `versus` may be told.
    pub noisy: bool,
    /// Neither costs less than the other, and they do not differ by more than the noise floor.
    pub tied: bool,
}

impl Point {
    /// Tells the most that any block came to. A claim would need the others too, so none is made. What comes at a rate
    /// has no most.
    pub fn tell_best(&mut self) {
        if self.rated.is_none() {
            (self.statistic, self.requests_per_s) = (Statistic::Best, self.requests_per_s_highest);
            (self.requests_per_s_interval, self.beside) = (None, None);
            self.cpu_beside = None;
        }
    }
}

pub(super) fn step(at: At, swept: Swept) -> u64 {
    match swept {
        Swept::Clients => at.clients.into(),
        Swept::Rate => at.rate.unwrap_or_default(),
        Swept::ValueBytes => at.value_bytes.into(),
        Swept::Batch => at.batch.into(),
    }
}

impl Point {
    /// Where it stands among the others of its target.
    pub fn step(&self) -> u64 {
        match self.swept {
            Swept::Clients => self.clients.into(),
            Swept::Rate => self.rated.as_ref().map_or(0, |rated| rated.rate),
            Swept::ValueBytes => self.value_bytes.into(),
            Swept::Batch => self.batch.into(),
        }
    }

    /// It came to its end, and the machine left it alone.
    pub fn has_number(&self) -> bool {
        self.cut_off.is_none() && self.unclear.is_none()
    }

    /// CPU of client and server, in microseconds.
    pub fn cpu_us_per_request(&self) -> f64 {
        self.client_cpu_us_per_request + self.server_cpu_us_per_request.unwrap_or(0.0)
    }
}

/// What one request of a part is called.
pub(super) fn called(part: Part) -> &'static str {
    if part == Part::Run { "request" } else { part.name() }
}

/// What a table of points tells of each, and what it says above.
pub(super) struct Measure {
    /// What a request is called, and what is asked at once: many of them where they come in batches.
    pub(super) words: fn(part: &str, question: &str) -> String,
    pub(super) cell: fn(&Point) -> String,
}
