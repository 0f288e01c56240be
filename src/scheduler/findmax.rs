//! The highest rate that keeps a promise: bisection between a rate that keeps it and one that does not, each tried in a
//! trial of its own, with a fresh store; then what was found is confirmed.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, anyhow, bail};

use super::closed;
use super::gated::{GatedTrial, Gates, Tell, Unclear};
use crate::harness::plan::{Chosen, Plan};
use crate::harness::signals::{INTERRUPTED, Interrupt};
use crate::harness::trial::Bench;
use crate::model::disturbed::Disturbed;
use crate::model::effort::Blocks;
use crate::model::hist::Times;
use crate::model::promise::{
    self, CONFIRMATIONS, Found, Judged, NoRate, Promise, SEARCHED_FROM as FROM, lowest_rate, rounded,
};
use crate::model::record::{Open, Outcome, Phase, Record};
use crate::model::units;
use crate::stats::sample::rank_bounds;

/// How the search goes.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    pub promise: Promise,
    /// How long a rate is kept, in seconds; a fifth of it passes before anything is timed.
    pub step_s: u32,
}

/// Up to this part of what a closed loop reaches the search begins.
const TO: f64 = 1.2;
/// Close enough: the next rate that was tried and failed is at most so much higher.
const CLOSE: f64 = 1.05;
/// An unclear step is tried once more for so many times as long; so is each confirmation.
const LONGER: u32 = 3;
/// A step has so many requests at least.
const STEP_REQUESTS: u64 = 10_000;
/// And so many at the most: when each is due is drawn beforehand.
const REQUESTS_MAX: u64 = 100_000_000;
/// Of its time-out a step takes so much.
const SPARED: f64 = 0.8;
/// What keeps this is not searched on.
const RATE_MAX: u64 = 10_000_000;

/// A step did not finish, or its answers were wrong: its target has no rate, and others may have one. Every other error
/// ends the search.
#[derive(Debug)]
struct Failed(String);

impl fmt::Display for Failed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for Failed {}

/// Finds each target's rate; `tell` hears of every trial. Hands over what was found, and what ended the search early.
pub fn run(
    plan: &Plan,
    search: Search,
    scratch: &Path,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(&Record, &str) -> Result<()>,
) -> (Vec<Found>, Result<()>) {
    let mut all = Vec::new();
    for chosen in &plan.chosen {
        let alone = Plan { chosen: vec![chosen.clone()], blocks: Blocks::exactly(1), ..plan.clone() };
        match of_target(&alone, search, scratch, interrupt, tell) {
            Ok(found) => all.extend(found.map(|found| Found { target: chosen.target.label.clone(), ..found })),
            Err(error) => return (all, Err(error)),
        }
    }
    (all, Ok(()))
}

/// The rate of a plan's only target, which the caller names; nothing where it is a control.
fn of_target(
    plan: &Plan,
    search: Search,
    scratch: &Path,
    interrupt: &Interrupt,
    tell: &mut dyn FnMut(&Record, &str) -> Result<()>,
) -> Result<Option<Found>> {
    let disturbed = |what: &dyn fmt::Display| Found {
        unclear: Some(NoRate::Disturbed),
        reason: format!("unclear: {what}"),
        ..Found::default()
    };
    if plan.is_over() {
        return Ok(Some(over(0)));
    }
    let mut noisy = |record: &Record, what: &Disturbed| tell(record, &format!("discarded: {what}"));
    let Some(first) = in_closed_loop(plan, search, scratch, interrupt, &mut noisy)? else { return Ok(None) };
    if let Some(what) = first.disturbed {
        return Ok(Some(disturbed(&what)));
    }
    let closed_per_s = match closed::at_most(&first.record) {
        Some(closed_per_s) => closed_per_s,
        None if plan.is_over() => return Ok(Some(over(0))),
        None => {
            tell(&first.record, "failed")?;
            let why = promise::failure(&first.record).unwrap_or_default();
            return Ok(Some(Found { reason: why, ..Found::default() }));
        }
    };
    let gates = Gates::new(Duration::MAX);
    let (chosen, count) = (&plan.chosen[0], 0);
    let mut steps = Steps { plan, chosen, search, scratch, interrupt, tell, gates, count, closed_per_s };
    let found = bisect(closed_per_s, plan.seeds.order, &mut |rate, longer| steps.judge(rate, longer));
    let steps = steps.count;
    let found = match found {
        Ok((rate, fails_at)) => Found { rate, fails_at, ..Found::default() },
        Err(_) if interrupt.is_set() => bail!(INTERRUPTED),
        Err(_) if plan.is_over() => over(steps),
        Err(error) => match error.downcast::<Unclear>() {
            Ok(unclear) => disturbed(&unclear.what),
            Err(error) => Found { reason: error.downcast::<Failed>()?.0, ..Found::default() },
        },
    };
    Ok(Some(Found { closed_per_s: Some(closed_per_s), steps, ..found }))
}

/// A trial in a closed loop: of `STEP_REQUESTS`, or of more where those tell too little. The job's usual requests would
/// take a slow store many steps.
fn in_closed_loop(
    plan: &Plan,
    search: Search,
    scratch: &Path,
    interrupt: &Interrupt,
    tell: Tell<'_>,
) -> Result<Option<GatedTrial>> {
    let mut trial_of = |units| {
        let mut sized = plan.clone();
        sized.job.units = Some(units);
        Ok::<_, anyhow::Error>(closed::trials(&sized, scratch, interrupt, tell)?.pop())
    };
    let few = trial_of(STEP_REQUESTS)?;
    // Where the machine disturbed the first loop each time, a longer one would be disturbed as well.
    let rate = few.as_ref().filter(|few| few.disturbed.is_none()).and_then(|few| closed::at_most(&few.record));
    let usual = plan.kind.map_or(STEP_REQUESTS, |kind| kind.default_units);
    match rate.and_then(|per_s| more_requests(per_s, search.step_s, usual)) {
        Some(units) => trial_of(units),
        None => Ok(few),
    }
}

/// A closed loop that took so long tells the rate well enough.
const LONG_ENOUGH_S: f64 = 1.0;

/// How many requests the second loop has; `None` where the first one was long enough.
fn more_requests(per_s: f64, step_s: u32, usual: u64) -> Option<u64> {
    let is_short = STEP_REQUESTS as f64 / per_s < LONG_ENOUGH_S;
    let units = ((per_s * f64::from(step_s)) as u64).min(usual);
    (is_short && units > STEP_REQUESTS).then_some(units)
}

/// Of a target whose search was ended by the time.
fn over(steps: u32) -> Found {
    let reason = format!("unclear: {TIME_OVER} after {steps} steps\nhint: a longer --budget, or a shorter --step");
    Found { unclear: Some(NoRate::TimeOver), reason, ..Found::default() }
}

const TIME_OVER: &str = "the time was over";

type Judge<'a> = &'a mut dyn FnMut(u64, bool) -> Result<Judged>;

/// The highest rate that was confirmed and the lowest that failed.
fn bisect(closed_per_s: f64, seed: u64, judge: Judge<'_>) -> Result<(Option<u64>, Option<u64>)> {
    let (mut low, mut high): (Option<u64>, Option<u64>) = (None, None);
    // What ran before must not always be the lower rate: the first three come in any order.
    let mut first = vec![FROM, (FROM * TO).sqrt(), TO];
    first.rotate_left((seed % 3) as usize);
    let mut next = first.into_iter().map(|share| rounded(closed_per_s * share)).collect::<Vec<_>>();
    loop {
        let rate = match next.pop() {
            Some(rate) => rate,
            None => match (low, high) {
                (Some(low), Some(high)) if high as f64 <= low as f64 * CLOSE => break,
                (Some(low), Some(high)) => rounded((low as f64 * high as f64).sqrt()),
                // Open on one side: on, by the same factor.
                (Some(low), None) if low >= RATE_MAX => break,
                (Some(low), None) => (low * 2).min(RATE_MAX),
                (None, Some(high)) if high > lowest_rate(closed_per_s) => (high / 2).max(1),
                (None, _) => return Ok((None, high)),
            },
        };
        if low.is_some_and(|low| rate <= low) || high.is_some_and(|high| rate >= high) {
            // Decided already; or the two are neighbours to the digits that rates have.
            if next.is_empty() && low.zip(high).is_some_and(|(low, high)| rate == low || rate == high) {
                break;
            }
            continue;
        }
        let mut judged = judge(rate, false)?;
        if judged == Judged::Unclear {
            judged = judge(rate, true)?;
        }
        if judged == Judged::Kept { low = Some(rate) } else { high = Some(rate) }
    }
    confirm(low, high, judge)
}

/// The highest rate that is kept each time, to 5 %: down from `low` by larger and larger steps while one is not, for
/// each costs as much as a whole search, and then up again between the two.
fn confirm(low: Option<u64>, mut high: Option<u64>, judge: Judge<'_>) -> Result<(Option<u64>, Option<u64>)> {
    let (mut next, mut confirmed, mut down) = (low, None, CLOSE);
    while let Some(rate) = next {
        let mut kept = 0;
        while kept < CONFIRMATIONS && judge(rate, true)? == Judged::Kept {
            kept += 1;
        }
        if kept == CONFIRMATIONS {
            confirmed = Some(rate);
        } else {
            high = Some(rate);
        }
        next = match (confirmed, high) {
            (Some(low), Some(high)) if high as f64 > low as f64 * CLOSE => {
                Some(rounded((low as f64 * high as f64).sqrt()))
            }
            (Some(_), _) => None,
            (None, _) => {
                let lower = rounded(rate as f64 / down);
                down *= down;
                Some(lower)
            }
        };
        // Neighbours to the digits that rates have.
        next = next.filter(|&next| Some(next) != confirmed && high.is_none_or(|high| next < high));
    }
    Ok((confirmed, high))
}

/// One target's steps, each a trial.
struct Steps<'a> {
    plan: &'a Plan,
    chosen: &'a Chosen,
    search: Search,
    scratch: &'a Path,
    interrupt: &'a Interrupt,
    tell: &'a mut dyn FnMut(&Record, &str) -> Result<()>,
    gates: Gates,
    count: u32,
    closed_per_s: f64,
}

impl Steps<'_> {
    fn judge(&mut self, rate: u64, longer: bool) -> Result<Judged> {
        if self.plan.is_over() {
            bail!(TIME_OVER);
        }
        self.count += 1;
        let step_s = self.search.step_s * if longer { LONGER } else { 1 };
        let mut plan = self.plan.clone();
        let load = plan.job.load.as_mut().ok_or_else(|| anyhow!("the job has no rates"))?;
        load.rates = vec![rate];
        load.warm_up_s = self.search.step_s / 5;
        // A slow target's step is as long as its time-out allows, with some of that to spare.
        let most = (rate as f64 * plan.timeout.as_secs_f64() * SPARED) as u64;
        plan.job.units = Some((rate * u64::from(step_s)).max(STEP_REQUESTS).min(most.max(1)).min(REQUESTS_MAX));
        let bench = Bench::set_up(&plan, self.scratch, self.interrupt)?;
        let noisy = &mut |record: &Record, what: &Disturbed| (self.tell)(record, &format!("discarded: {what}"));
        let promise = Some(self.search.promise);
        let GatedTrial { mut record, disturbed, .. } =
            self.gates.trial(&bench, self.chosen, (self.count, 1), promise, noisy)?;
        record.run.closed_per_s = Some(self.closed_per_s);
        if let Some(what) = disturbed {
            return Err(Unclear { target: self.chosen.target.label.clone(), what }.into());
        }
        // It was cut off.
        if record.outcome != Outcome::Finished && self.plan.is_over() {
            bail!(TIME_OVER);
        }
        if let Some(why) = promise::failure(&record) {
            (self.tell)(&record, "failed")?;
            return Err(Failed(format!("{}/s: {why}", units::thousands(rate))).into());
        }
        let parts: Vec<(&Phase, &Open)> =
            record.phases.iter().filter_map(|phase| Some((phase, phase.open.as_ref()?))).collect();
        let mut judged = None;
        for (phase, open) in parts {
            let response = open.response_ns.times().map_err(|why| anyhow!("the trial's histogram: {why}"))?;
            judged = judged.max(Some(self::judged(phase, open, &response, self.search.promise)));
        }
        let judged = judged.unwrap_or(Judged::Broken);
        let told = match judged {
            Judged::Kept => "kept",
            Judged::Broken => "broken",
            Judged::Unclear => "unclear",
        };
        (self.tell)(&record, told)?;
        Ok(judged)
    }
}

/// Whether a part kept the promise, by the bounds of its quantile at 95 %.
fn judged(phase: &Phase, open: &Open, response: &Times, promise: Promise) -> Judged {
    let (lower, upper) = rank_bounds(response.count(), promise.quantile);
    promise.judged_at_rate(open.is_kept(phase.took_s), (response.at_rank(lower), response.at_rank(upper)))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is found of a store that keeps the promise up to a rate, and how many steps it took.
    fn found(keeps_up_to: u64, closed_per_s: f64, seed: u64) -> (Option<u64>, Option<u64>, u32) {
        let mut steps = 0;
        let judge = &mut |rate: u64, _| {
            steps += 1;
            Ok(if rate <= keeps_up_to { Judged::Kept } else { Judged::Broken })
        };
        let (low, high) = bisect(closed_per_s, seed, judge).unwrap();
        (low, high, steps)
    }

    #[test]
    fn a_closed_loop_is_longer_where_ten_thousand_requests_are_short() {
        assert_eq!(more_requests(9_000.0, 10, 200_000), None, "they took over a second");
        assert_eq!(more_requests(11_000.0, 10, 200_000), Some(110_000));
        assert_eq!(more_requests(90_000.0, 10, 200_000), Some(200_000), "the usual requests");
        assert_eq!(more_requests(90_000.0, 10, 10_000), None, "there are no more");
    }

    #[test]
    fn the_highest_rate_is_found_to_5_percent_in_any_order() {
        for keeps_up_to in [11_000, 40_000, 84_000, 119_000, 180_000, 900_000] {
            for seed in 0..3 {
                let (low, high, steps) = found(keeps_up_to, 100_000.0, seed);
                let (low, high) = (low.unwrap(), high.unwrap());
                assert!(low <= keeps_up_to && keeps_up_to < high, "{low} {keeps_up_to} {high}");
                assert!(high as f64 <= low as f64 * CLOSE * 1.01, "{low} {high}");
                assert!(steps <= 8 + CONFIRMATIONS + 3, "{steps} steps");
            }
        }
        assert_eq!(found(3, 80.0, 0).0, Some(3), "whole numbers end the search");
        assert_eq!(found(0, 100_000.0, 1).0, None);
        assert_eq!(found(0, 50.0, 0).0, None, "down to one a second, and no further");
        assert_eq!(found(u64::MAX, 4_000_000.0, 0).0, Some(RATE_MAX));
    }

    #[test]
    fn what_is_not_confirmed_is_stepped_down_from() {
        let mut steps = 0;
        // Longer trials show what short ones do not.
        let judge = &mut |rate: u64, longer: bool| {
            steps += 1;
            let keeps_up_to = if longer { 70_000 } else { 80_000 };
            Ok(if rate <= keeps_up_to { Judged::Kept } else { Judged::Broken })
        };
        let (low, high) = bisect(100_000.0, 0, judge).unwrap();
        let (low, high) = (low.unwrap(), high.unwrap());
        assert!(low <= 70_000 && low > 64_000 && high > 70_000 && high <= low + low / 19, "{low} {high}");
    }
}
