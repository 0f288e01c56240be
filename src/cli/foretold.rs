//! What a run will take, said before it starts: so that it can be thought better of.

use std::time::Duration;

use super::complain;
use crate::harness::plan::Plan;
use crate::model::effort::{Blocks, CLAIM_BLOCKS};
use crate::model::record::Record;
use crate::model::units;
use crate::report::next;
use crate::scheduler::pilot::{Expected, Foreseen};

/// Says how long the least blocks take where `always`, and otherwise only where they do not fit into `time`: then as
/// many blocks are planned as do. `apart` is what other parts of the run have of its budget.
pub fn foretell(plan: &mut Plan, foreseen: &Foreseen, (time, apart): (Duration, Duration), always: bool) {
    let fewer = foreseen.fewer_blocks(plan, time);
    let (least, before) = (plan.blocks.least, 1 - plan.first_block());
    let takes_s = foreseen.block_s() * f64::from(least + before);
    let Some(fewer) = fewer else {
        if always {
            let uncounted = if before > 0 { " and a warm-up" } else { "" };
            complain(&format!("kvfair: about {} for {least} blocks{uncounted}", in_words(takes_s)));
        }
        return;
    };
    plan.needs_s = Some(too_long(plan, foreseen, fewer, (time, apart)).ceil() as u64);
    plan.blocks = fewer;
}

/// Says where the job would have been a small one in the blocks that were asked for, and there are fewer.
pub fn tell_fewer_blocks(plan: &Plan, asked: u32) {
    let (least, units) = (plan.blocks.least, plan.job.units.unwrap_or(0));
    if least < asked {
        let unit = plan.kind.map_or("unit", |kind| kind.unit);
        complain(&format!(
            "kvfair: {least} blocks of {} {unit}s: in {asked} blocks the job would be smaller, and starting and filling \
             stores would take most of the time",
            units::thousands(units)
        ));
    }
}

/// The same of programs of the user's, by what their first block took.
pub fn of_programs(plan: &Plan, block: &[Record], time: Duration) {
    let one =
        |record: &Record| Some(Expected { label: record.target.label.clone(), took_s: record.took_s()?, times: 1.0 });
    let foreseen = Foreseen(block.iter().filter_map(one).collect());
    // Where the time is over already the rows say so.
    let fewer = foreseen.fewer_blocks(plan, time).filter(|_| !time.is_zero() && !foreseen.0.is_empty());
    if let Some(fewer) = fewer {
        let _ = too_long(plan, &foreseen, fewer, (time, Duration::ZERO));
    }
}

/// What the least blocks take, target by target, and what to leave out. Gives the time that would be enough, in
/// seconds.
fn too_long(plan: &Plan, foreseen: &Foreseen, fewer: Blocks, (time, apart): (Duration, Duration)) -> f64 {
    let least = plan.blocks.least;
    let takes_s = foreseen.block_s() * f64::from(least + 1 - plan.first_block());
    let blocks = if fewer.least == 1 { "1 block is".to_string() } else { format!("{} blocks are", fewer.least) };
    let claims = if fewer.least < CLAIM_BLOCKS { ", from which nothing is claimed" } else { "" };
    if foreseen.0.is_empty() {
        let needs_s = (time + apart).as_secs_f64() * 2.0;
        complain(&format!(
            "kvfair: pilots took the time of the run: {blocks} run{claims}\nhint: give it more time: --budget {}",
            next::budget(needs_s)
        ));
        return needs_s;
    }
    complain(&format!(
        "kvfair: {least} blocks take about {}, and the run has {} for them: {blocks} run{claims}",
        in_words(takes_s),
        in_words(time.as_secs_f64())
    ));
    let mut each = foreseen.0.clone();
    each.sort_by(|one, other| one.took_s.total_cmp(&other.took_s));
    let told: Vec<String> = each.iter().map(|one| format!("{} {} s", one.label, units::seconds(one.took_s))).collect();
    complain(&format!("kvfair: a trial takes about: {}", told.join(", ")));
    let needs_s = takes_s * SPARED + apart.as_secs_f64();
    let out = too_slow(plan, foreseen, time);
    let out = if out.is_empty() { String::new() } else { format!("leave out {}, or ", out.join(", ")) };
    complain(&format!("hint: {out}give it more time: --budget {}", next::budget(needs_s)));
    needs_s
}

/// What is foreseen is no more than a guess.
const SPARED: f64 = 1.3;

/// The slowest targets, without which the least blocks of the others fit; none where not even the fastest alone does.
fn too_slow(plan: &Plan, foreseen: &Foreseen, time: Duration) -> Vec<String> {
    let mut stay = foreseen.clone();
    stay.0.sort_by(|one, other| one.took_s.total_cmp(&other.took_s));
    let mut out = Vec::new();
    while !stay.0.is_empty() && stay.fewer_blocks(plan, time).is_some() {
        out.extend(stay.0.pop().map(|one| one.label));
    }
    let is_baseline =
        |label: &str| plan.chosen.iter().any(|chosen| chosen.target.label == label && chosen.target.baseline);
    if stay.0.iter().all(|one| is_baseline(&one.label)) { Vec::new() } else { out }
}

fn in_words(time_s: f64) -> String {
    match time_s / 60.0 {
        ..1.5 => format!("{time_s:.0} s"),
        minutes @ 1.5..10.0 => format!("{minutes:.1} minutes"),
        minutes => format!("{minutes:.0} minutes"),
    }
}
