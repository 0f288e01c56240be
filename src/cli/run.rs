//! `kvfair run` and the first look.

use std::time::Duration;

use anyhow::Result;

use super::args::RunArgs;
use super::measure::{Ran, measure, measure_and_look_ahead, or_lost};
use super::planned::{args_of, plan_of};
use super::shown::{print_records, tell_absent};
use super::{Exit, complain, paged, print};
use crate::harness::plan::{Chosen, Plan};
use crate::model::network;

/// The first look.
const FIRST_BUDGET: Duration = Duration::from_secs(60);
/// And with the larger job at its end, and where the machine is slower than it was for the pilots.
const FIRST_AT_MOST: Duration = Duration::from_secs(84);

/// `kvfair` alone: `fans` on everything that is here.
pub fn first_look() -> Result<Exit> {
    let args = args_of(["fans"])?;
    complain("kvfair: a first look: fans on every store found here, in at most 90 s; `kvfair --help` tells more");
    print_all(measure_and_look_ahead(&args, FIRST_BUDGET, FIRST_AT_MOST)?, &args)
}

pub fn run(args: RunArgs) -> Result<Exit> {
    if args.how.list {
        return list(&plan_of(&args)?);
    }
    paged::is_to_be_new(args.how.look.forms.html.as_deref())?;
    print_all(measure(&args)?, &args)
}

fn print_all(ran: Ran, args: &RunArgs) -> Result<Exit> {
    if !ran.records.is_empty() {
        if args.targets.is_empty() && args.own.exec.is_none() {
            tell_absent();
        }
        print_records(&ran.records, &args.how.look())?;
    }
    let results = ran.lost.is_none().then_some(ran.path.as_path()).filter(|_| !ran.records.is_empty());
    let paged = paged::write(&ran.records, &args.how.look(), results);
    or_lost(ran.ended, ran.lost.or(paged.err()))
}

/// `--list`: the trials in their order, and nothing done.
fn list(plan: &Plan) -> Result<Exit> {
    let mut text = format!("seed {}\n", plan.seeds.order);
    let parts = plan.parts();
    let all: Vec<(&Plan, &Chosen)> =
        parts.iter().flat_map(|part| part.chosen.iter().map(move |chosen| (part, chosen))).collect();
    for block in plan.first_block()..=plan.blocks.most {
        for (position, place) in (1..).zip(plan.order(block, all.len())) {
            let (part, chosen) = all[place];
            let label = &chosen.target.label;
            let size = part.job.units.filter(|_| !plan.sizes.is_empty()).map(|size| format!(" of {size}"));
            let order = (plan.orders.len() > 1).then(|| format!(" of order {}", part.job.ngrams.order));
            let rtt = part.network_of(chosen).map(|network| format!(" at {}", network::in_words(network.rtt_us)));
            let of = [size, order, rtt].into_iter().flatten().collect::<String>();
            text.push_str(&format!("block {block} trial {position}: {}{of} on {label}\n", plan.job.name));
        }
    }
    print(&text)?;
    Ok(Exit::Ok)
}
