//! The targets of a sweep beside each other, point by point: how much longer each took than the fastest one there, and
//! what may be claimed.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::aa::{self, Repeated};
use super::claims::NO_CONTROL;
use super::point::{Beside, Point, called, measured, step};
use super::standing::{Counted, Standing, by_target, lengths_s};
use super::swept::with;
use super::times::times;
use super::versus::{self, Versus};
use kvfair_core::disturbed::disturbed;
use kvfair_core::effort::CLAIM_BLOCKS;
use kvfair_core::load::Swept;
use kvfair_core::part::Part;
use kvfair_core::record::{Outcome, Phase, Record};
use kvfair_stats::rank::Unclaimed;

impl Beside {
    /// Nothing of a target that is none of the standing.
    pub(super) fn of(standing: &Standing<'_>, target: &str, best: &str, vs_best: Versus) -> Option<Beside> {
        let bar = standing.bar(target, best);
        Some(Beside {
            blocks: standing.blocks,
            vs_best,
            versus: standing.versus(target, best)?,
            is_best: target == best,
            slower: standing.is_less(best, target),
            noise_floor: bar.map(|bar| bar.floor),
            noisy: bar.is_some_and(|bar| bar.is_noisy),
            tied: standing.unclaimed(target, best) == Some(Unclaimed::Tied),
        })
    }

    fn in_words(self) -> String {
        versus::claimed(self.versus, self.noisy)
    }
}

/// What one trial's phase cost a request, in seconds: at a rate its response, p99 where it has that many requests;
/// otherwise its time, of all clients together. None where the rate was not kept.
fn cost(record: &Record, phase: &Phase) -> Result<Option<f64>> {
    if phase.cut_off.is_some() || disturbed(record, phase).is_some() {
        return Ok(None);
    }
    let cost = match &phase.open {
        Some(open) if open.is_kept(phase.took_s) => {
            let response = times(record, phase, &open.response_ns)?;
            response.quantile_ns(0.99).unwrap_or_else(|| response.median_ns()) as f64 / 1e9
        }
        Some(_) => 0.0,
        None => phase.took_s / phase.metrics.units.max(1) as f64,
    };
    Ok(Some(cost).filter(|cost| *cost > 0.0))
}

/// A trial of a run: target, block, and whether it is the reference's second time.
type Trial<'a> = (&'a str, u32, bool);

fn trial(record: &Record) -> Trial<'_> {
    (&record.target.label, record.block, record.aa_control)
}

/// CPU of client and server for a request of one trial's phase, in microseconds.
fn cpu_us(record: &Record, phase: &Phase) -> Result<Option<f64>> {
    if phase.cut_off.is_some() || disturbed(record, phase).is_some() {
        return Ok(None);
    }
    let cpu_s = phase.client.cpu_s() + phase.servers().map_or(0.0, |servers| servers.cpu_s());
    Ok(Some(phase.cpu_us_per_unit(cpu_s)).filter(|cpu_us| *cpu_us > 0.0))
}

/// What each trial's phases cost a request, by part and step.
type Costs<'a> = BTreeMap<Trial<'a>, BTreeMap<(Part, u64), f64>>;

type Cost = fn(&Record, &Phase) -> Result<Option<f64>>;

fn all_costs<'a>(records: &'a [Record], counted: &Counted, cost: Cost) -> Result<Costs<'a>> {
    let mut all = Costs::new();
    let right = |record: &&Record| record.outcome == Outcome::Finished && record.is_right();
    for record in records.iter().filter(right).filter(|record| counted.blocks.contains(&record.block)) {
        let costs = all.entry(trial(record)).or_default();
        for (phase, at, swept) in measured(record) {
            if let Some(cost) = cost(record, phase)? {
                costs.insert((phase.part, step(at, swept)), cost);
            }
        }
    }
    Ok(all)
}

/// Puts each point beside the fastest of the same part, step and group, where what the client limits has no part in it,
/// and beside the one that used least CPU a request. Baselines have no part in either.
pub fn compare(points: &mut [Point], records: &[Record], counted: &Counted) -> Result<()> {
    let is_ranked = |point: &Point| !point.baseline && !point.client_limited && point.unclear.is_none();
    let costs = all_costs(records, counted, cost)?;
    put_beside(points, records, counted, &costs, is_ranked, |point, beside| point.beside = beside);
    let costs = all_costs(records, counted, cpu_us)?;
    let is_in = |point: &Point| !point.baseline && point.unclear.is_none();
    put_beside(points, records, counted, &costs, is_in, |point, beside| point.cpu_beside = beside);
    Ok(())
}

fn put_beside(
    points: &mut [Point],
    records: &[Record],
    counted: &Counted,
    all: &Costs<'_>,
    is_in: impl Fn(&Point) -> bool,
    put: impl Fn(&mut Point, Option<Beside>),
) {
    let lengths_s = lengths_s(records, counted);
    let place = |point: &Point| (point.part, point.step(), point.group.clone());
    let places: BTreeSet<_> = points.iter().filter(|point| is_in(point)).map(place).collect();
    for (part, step, group) in places {
        let mut here: Vec<&mut Point> = points
            .iter_mut()
            .filter(|point| is_in(point) && (point.part, point.step(), &point.group) == (part, step, &group))
            .collect();
        let of = |record: &Record| all.get(&trial(record))?.get(&(part, step)).copied();
        let labels: BTreeSet<String> = here.iter().map(|point| point.target.clone()).collect();
        let noise = aa::noise(records, counted, of);
        let costs = by_target(records, counted, of, |label| labels.contains(label));
        let Some(standing) = Standing::new(costs, &lengths_s, &noise, &counted.seeds) else { continue };
        let Some(best) = standing.fastest() else { continue };
        let vs_best = standing.versus_best(|_| true);
        for point in &mut here {
            let vs_best = vs_best.get(point.target.as_str()).copied();
            put(point, vs_best.and_then(|vs_best| Beside::of(&standing, &point.target, best, vs_best)));
        }
    }
}

/// The first point of a sweep, the step at which something may be claimed, and what stands there.
type Compared<'a> = (&'a Point, u64, Vec<(&'a Point, Beside)>);

/// The points of which something may be claimed: those at the last step of the first part, which is settled before
/// anything is seen. A sweep that claimed wherever it found a difference would find one by chance. With the first of
/// them, and the step.
fn compared(points: &[Point], of: fn(&Point) -> Option<Beside>) -> Option<Compared<'_>> {
    let first = points.iter().find(|point| !point.baseline)?;
    let last = points.iter().map(Point::step).max().unwrap_or(0);
    let here = points.iter().filter(|point| point.part == first.part && point.step() == last);
    Some((first, last, here.filter_map(|point| Some((point, of(point)?))).collect()))
}

/// The differences that are claimed: the best, the one that costs more, and how much more.
pub fn claimed(points: &[Point], of: fn(&Point) -> Option<Beside>) -> Vec<(&Point, &Point, Beside)> {
    let Some((_, _, compared)) = compared(points, of) else { return Vec::new() };
    if compared.iter().any(|(_, beside)| beside.blocks < CLAIM_BLOCKS as usize) {
        return Vec::new();
    }
    let best = |group: &str| compared.iter().find(|(point, beside)| beside.is_best && point.group == group);
    let more = compared.iter().filter(|(_, beside)| beside.slower);
    more.filter_map(|(point, beside)| Some((best(&point.group)?.0, *point, *beside))).collect()
}

/// The targets that were run twice, by the cost of the point of which something is claimed, and that point in words:
/// "requests at 20,000/s, p99". Nothing where no target was.
pub fn repeated_at_the_claim<'a>(
    points: &[Point],
    records: &'a [Record],
    counted: &Counted,
) -> Option<(String, Vec<Repeated<'a>>)> {
    let (first, last, _) = compared(points, |point| point.beside)?;
    let all = all_costs(records, counted, cost).ok()?;
    let of = |record: &Record| all.get(&trial(record))?.get(&(first.part, last)).copied();
    let repeated = aa::repeated(records, counted, of);
    (!repeated.is_empty()).then(|| (at_step(first, last).to_lowercase(), repeated))
}

/// What may be claimed.
pub fn sentence(points: &[Point]) -> String {
    let Some((first, last, compared)) = compared(points, |point| point.beside) else { return String::new() };
    if compared.iter().any(|(_, beside)| beside.blocks < CLAIM_BLOCKS as usize) {
        return format!("No claim: a claim needs at least {CLAIM_BLOCKS} blocks.");
    }
    let others = || compared.iter().filter(|(_, beside)| !beside.is_best);
    if others().count() > 0 && others().all(|(_, beside)| beside.noise_floor.is_none()) {
        return NO_CONTROL.to_string();
    }
    let said = claims(&compared, "took least time", "as long");
    if said.is_empty() { String::new() } else { format!("{}: {}.", at_step(first, last), said.join("; ")) }
}

/// The same of CPU a request: which store used least, and what others used of it.
pub fn cpu_sentence(points: &[Point]) -> String {
    let Some((first, last, compared)) = compared(points, |point| point.cpu_beside) else { return String::new() };
    let is_claimed = |beside: &Beside| beside.is_best || beside.noise_floor.is_some();
    let enough = compared.iter().all(|(_, beside)| beside.blocks >= CLAIM_BLOCKS as usize && is_claimed(beside));
    let said = if enough { claims(&compared, "used least", "as much") } else { Vec::new() };
    let place = || format!("{}s {}", called(first.part), with(first.swept, last));
    if said.is_empty() { String::new() } else { format!("CPU per request, {}: {}.", place(), said.join("; ")) }
}

/// Of each group the best, those that cost more, those that are tied with it, and those that are not separated from it.
fn claims(compared: &[(&Point, Beside)], is_best: &str, as_much: &str) -> Vec<String> {
    let mut said = Vec::new();
    for (best, _) in compared.iter().filter(|(_, beside)| beside.is_best) {
        let others = || compared.iter().filter(|(point, beside)| point.group == best.group && !beside.is_best);
        let slower = others().filter(|(_, beside)| beside.slower);
        let slower: Vec<String> =
            slower.map(|(point, beside)| format!("{} {}", point.target, beside.in_words())).collect();
        let unclaimed = |tied: bool| -> String {
            let unclaimed = others().filter(|(_, beside)| !beside.slower && beside.tied == tied);
            unclaimed.map(|(point, _)| point.target.as_str()).collect::<Vec<_>>().join(", ")
        };
        let (tied, open) = (unclaimed(true), unclaimed(false));
        if !slower.is_empty() {
            said.push(format!("{} {is_best}; {} {as_much}", best.target, slower.join(", ")));
        }
        if !tied.is_empty() {
            said.push(format!("{tied} and {} are tied", best.target));
        }
        if !open.is_empty() {
            said.push(format!("{open} and {} are not separated", best.target));
        }
    }
    said
}

/// "Sets with 300 clients", "Requests at 20,000/s".
fn at_step(point: &Point, step: u64) -> String {
    let (first, rest) = called(point.part).split_at(1);
    let tail = if point.swept == Swept::Rate { ", p99" } else { "" };
    format!("{}{rest}s {}{tail}", first.to_uppercase(), with(point.swept, step))
}

#[cfg(test)]
mod tests {
    use super::super::sweep::tests::point;
    use super::*;

    fn beside(target: &str, slower: bool, tied: bool) -> Point {
        let ratio = if slower { 2.0 } else { 1.01 };
        let versus = Versus { ratio, low: Some(0.9 * ratio), high: Some(1.1 * ratio), preliminary: false };
        let is_best = target == "best";
        let noise_floor = Some(0.02);
        let beside = Beside { blocks: 6, vs_best: versus, versus, is_best, slower, noise_floor, noisy: false, tied };
        Point { beside: Some(beside), cpu_beside: Some(beside), ..point(target, 5, 1_000.0) }
    }

    #[test]
    fn what_is_tied_is_told_apart_from_what_is_not_separated() {
        let [best, slow] = [beside("best", false, false), beside("slow", true, false)];
        let points = [best, slow, beside("even", false, true), beside("open", false, false)];
        let others = "even and best are tied; open and best are not separated.";
        assert_eq!(
            sentence(&points),
            format!("Sets with 5 clients: best took least time; slow 2.0x [1.8-2.2] as long; {others}")
        );
        let cpu = "CPU per request, sets with 5 clients: best used least; slow 2.0x [1.8-2.2] as much";
        assert_eq!(cpu_sentence(&points), format!("{cpu}; {others}"));
    }
}
