//! How the cost of a request grows: sets and gets of larger and larger values, of more and more keys at once, of more
//! and more keys held, by more and more clients. Repetitions in random order, until the budget is over.

use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::harness::plan::Plan;
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::harness::timing::Timer;
use crate::harness::trial::Bench;
use crate::model::load::Load;
use crate::model::noise::{Gate, Noise, Yardstick};
use crate::model::part::Part;
use crate::model::record::{Outcome, Record};
use crate::stats::paired::LEAST_BLOCKS;

/// Repetitions that count, and trials at the most until there are so many: noisy ones are repeated.
const REPETITIONS: usize = 6;
const TRIALS_MAX: usize = 18;
/// With fewer nothing is told of a kind.
const LEAST: usize = LEAST_BLOCKS;
/// What is planned for of the time that the pilots leave.
const TRUST: f64 = 0.75;
/// The share of the budget that second pilots take.
const SECOND: f64 = 0.05;
/// None begins after this share, where trials take long by themselves.
const SECOND_UNTIL: f64 = 0.25;
/// More requests than this tell no more.
const REQUESTS_MAX: f64 = 1e6;
/// A trial may take so many times as long as the longest of its kind before it.
const SPARE: f64 = 1.2;

/// Each four times as large as the one before: a power is a straight line through their logarithms.
const SIZES: &[u32] = &[32, 128, 512, 2_048, 8_192, 32_768, 131_072, 524_288];
const BATCHES: &[u32] = &[1, 4, 16, 64, 256, 1_024];
const KEYS: &[u64] = &[1_024, 4_096, 16_384, 65_536];
const CLIENTS: &[u32] = &[1, 4, 16, 64];

/// Values, keys at once, clients, and each number of keys held.
const KINDS: u32 = 3 + KEYS.len() as u32;

/// A kind of trial: what it asks, how many requests a point has in its pilot, and its share of a repetition's time.
struct Kind {
    load: Load,
    pilot: u64,
    share: f64,
}

fn kinds(load: &Load) -> Vec<Kind> {
    let one = |records, clients: &[u32]| Load { records, clients: clients.to_vec(), ..load.clone() };
    // Few large values: 4 MiB stay in a cache, where 64 MiB would not.
    let sizes = Load { sizes: SIZES.to_vec(), value_bytes: SIZES[0], ..one(8, &[1]) };
    let batches = Load { batches: BATCHES.to_vec(), ..one(4_096, &[1]) };
    let keys = KEYS.iter().map(|&keys| Kind { load: one(keys, &[1]), pilot: 1_000, share: 0.25 / KEYS.len() as f64 });
    let rest = [(sizes, 64), (batches, 2_048), (one(4_096, CLIENTS), 1_024)];
    rest.into_iter().map(|(load, pilot)| Kind { load, pilot, share: 0.25 }).chain(keys).collect()
}

/// What one kind of trial was found to take.
struct Known {
    kind: Kind,
    requests: u64,
    /// What a trial takes by itself, and what each request of a point adds: asking, and knowing what must be there.
    fixed_s: f64,
    request_s: f64,
    longest: Duration,
    noise: Vec<Noise>,
    trials: usize,
}

/// A budget in which nothing would be told.
#[derive(Debug)]
pub struct NoTime {
    pub target: String,
    /// The one that would do.
    pub needed: Duration,
}

impl std::fmt::Display for NoTime {
    fn fmt(&self, into: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(into, "{}: the budget has no time for {LEAST} repetitions of each kind of trial", self.target)
    }
}

impl std::error::Error for NoTime {}

/// What the pilots of a target showed, and how much of its budget they took.
pub struct Piloted {
    known: Vec<Known>,
    took: Duration,
}

/// One target's trials, one after another.
pub struct Trials<'a> {
    /// Its first target is the one.
    pub plan: &'a Plan,
    /// The time for pilots and repetitions together.
    pub budget: Duration,
    pub scratch: &'a Path,
    pub interrupt: &'a Interrupt,
}

/// Hears of every trial. An error ends the run.
pub type Tell<'a> = dyn FnMut(&Record) -> Result<()> + 'a;

impl Trials<'_> {
    /// A pilot of each kind, as block 0. A kind that fails is not run again; a target that is missing has no kinds. An
    /// error is `tell`'s, an interruption, or [`NoTime`] where the budget has no time for enough repetitions.
    pub fn pilots(&self, tell: &mut Tell<'_>) -> Result<Piloted> {
        let Trials { plan, budget, .. } = *self;
        let timer = Timer::start();
        let load = plan.job.load.as_ref().ok_or_else(|| anyhow!("the job {} has no requests", plan.job.name))?;
        let mut known = Vec::new();
        for (position, kind) in (1..).zip(kinds(load)) {
            if timer.left_of(budget).is_zero() {
                // The others take as long as those so far, and all as long again for each repetition.
                let pilots = timer.elapsed() / (position - 1).max(1) * KINDS;
                enough(plan, budget, pilots * (1 + LEAST as u32))?;
            }
            let left = || timer.left_of(budget);
            let (mut record, took) = self.trial(&kind, kind.pilot, (0, position), left(), tell)?;
            if matches!(record.outcome, Outcome::Missing { .. }) {
                return Ok(Piloted { known: Vec::new(), took: timer.elapsed() });
            }
            let mut request_s = asking_s(&record) / kind.pilot as f64;
            // What so few requests take is mostly the beginning of threads and connections.
            let more = scaled(SECOND * kind.share * budget.as_secs_f64() / request_s);
            let is_early = left() > budget.mul_f64(1.0 - SECOND_UNTIL);
            if is_good(&record) && is_early && more > 2 * kind.pilot {
                let longer;
                (record, longer) = self.trial(&kind, more, (0, position), left(), tell)?;
                request_s =
                    longer.saturating_sub(took).as_secs_f64().max(asking_s(&record)) / (more - kind.pilot) as f64;
            }
            if is_good(&record) {
                let fixed_s = (took.as_secs_f64() - request_s * kind.pilot as f64).max(0.0);
                let (requests, noise) = (kind.pilot, vec![record.noise]);
                known.push(Known { kind, requests, fixed_s, request_s, longest: took, noise, trials: 0 });
            }
        }
        let repetition: Duration = known.iter().map(|known: &Known| known.longest).sum();
        enough(plan, budget, timer.elapsed() + repetition * LEAST as u32)?;
        Ok(Piloted { known, took: timer.elapsed() })
    }

    /// Repetitions of all kinds in random order, as blocks from 1 on, until there are enough or the budget is over.
    pub fn repetitions(&self, Piloted { mut known, took }: Piloted, tell: &mut Tell<'_>) -> Result<()> {
        let timer = Timer::start();
        let left = || timer.left_of(self.budget.saturating_sub(took));
        size(&mut known, left());
        for block in 1.. {
            let order = self.plan.order(block, known.len());
            let wanted: Vec<usize> = order.into_iter().filter(|&place| is_wanted(&known, place)).collect();
            if wanted.is_empty() {
                return Ok(());
            }
            for (position, place) in (1..).zip(wanted) {
                let this = &mut known[place];
                if left() < this.longest.mul_f64(SPARE) {
                    return Ok(());
                }
                let (record, took) = self.trial(&this.kind, this.requests, (block, position), left(), tell)?;
                this.longest = this.longest.max(took);
                this.noise.push(record.noise);
                this.trials += if is_good(&record) { 1 } else { TRIALS_MAX };
            }
        }
        Ok(())
    }

    /// One trial at a block and a position in it, and how long it took with its start and its end.
    fn trial(
        &self,
        kind: &Kind,
        requests: u64,
        (block, position): (u32, u32),
        left: Duration,
        tell: &mut Tell<'_>,
    ) -> Result<(Record, Duration)> {
        let began = Timer::start();
        let timeout = left.max(Duration::from_secs(1));
        let clients = kind.load.clients.iter().copied().max().unwrap_or(1);
        let mut this = Plan { timeout, clients, ..self.plan.clone() };
        this.job.load = Some(kind.load.clone());
        this.job.units = Some(requests);
        let bench = Bench::set_up(&this, self.scratch, self.interrupt)?;
        let record = bench.trial(&this.chosen[0], block, position, &mut |_| {}).map_err(|_| anyhow!(INTERRUPTED))?;
        tell(&record)?;
        Ok((record, began.elapsed()))
    }
}

/// Refuses a budget that is less than what is needed.
fn enough(plan: &Plan, budget: Duration, needed: Duration) -> Result<()> {
    if needed <= budget {
        return Ok(());
    }
    // A machine may be slower now and then.
    Err(anyhow!(NoTime { target: plan.chosen[0].target.label.clone(), needed: needed.div_f64(TRUST) }))
}

/// How long the requests of a trial took: neither loading nor the final flush.
fn asking_s(record: &Record) -> f64 {
    let asking = record.measured().filter(|phase| phase.part != Part::FinalFlush);
    asking.map(|phase| phase.took_s).sum::<f64>().max(1e-6)
}

fn scaled(requests: f64) -> u64 {
    requests.min(REQUESTS_MAX) as u64
}

fn is_good(record: &Record) -> bool {
    record.outcome == Outcome::Finished && record.is_right()
}

/// Gives each kind as many requests as its share of a repetition's time allows.
fn size(known: &mut [Known], left: Duration) {
    let fixed_s: f64 = known.iter().map(|known| known.fixed_s).sum();
    let repetition_s = (left.as_secs_f64() * TRUST / REPETITIONS as f64 - fixed_s).max(0.0);
    for Known { kind, requests, fixed_s, request_s, longest, .. } in known {
        *requests = scaled(repetition_s * kind.share / *request_s).max(kind.pilot);
        *longest = Duration::from_secs_f64(*fixed_s + *request_s * *requests as f64);
    }
}

/// Whether it has too few repetitions, of those that were not noisy, and may have another.
fn is_wanted(known: &[Known], place: usize) -> bool {
    let yardstick = Yardstick::of(known.iter().flat_map(|known| &known.noise));
    let this = &known[place];
    let quiet = this.noise[1..].iter().filter(|noise| !matches!(noise.gate(yardstick), Gate::Discard(_))).count();
    quiet < REPETITIONS && this.trials < TRIALS_MAX
}
