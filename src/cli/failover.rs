//! `kvfair crash --failover`: what is lost when a primary is killed, and how long no write is accepted.

use anyhow::{Context, Result, anyhow};

use super::absent::{IfMissing, without_missing};
use super::args::Crash;
use super::crash::full_disk;
use super::found::Findings;
use super::refusals::{self, Intent};
use super::{Exit, Usage, complain, planned, replicas, target, terminal};
use crate::harness::crash::Untried;
use crate::harness::crash::failover::{self, CLIENTS, FailoverBench};
use crate::harness::plan::{self, Chosen};
use crate::harness::scratch;
use crate::harness::signals::Interrupt;
use crate::model::crash::failover::Failovers;
use crate::model::finding::Found;
use crate::model::trial::Durability;
use crate::stores::replication::{self, LINK_DELAY};

/// How often each primary is killed: so that a number has a spread.
const KILLS: u32 = 5;

pub fn failover(args: &Crash) -> Result<Exit> {
    let level = args.durability.unwrap_or(Durability::Crash);
    let chosen = chosen(args, level)?;
    let mut findings = Findings::create(&args.found, "failover")?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let (kills, seed) = (args.kills.unwrap_or(KILLS), args.seed.unwrap_or_else(plan::any_seed));
    let bench = FailoverBench { scratch: scratch.path(), level, interrupt: &interrupt };
    let of_target = |chosen: &Chosen| Failovers {
        kills_asked: kills,
        seed,
        clients: CLIENTS,
        level,
        target: chosen.target.label.clone(),
        wait: replication::wait(&chosen.target.settings),
        ..Failovers::default()
    };
    let mut all: Vec<Failovers> = chosen.iter().map(of_target).collect();
    let is_whole = kill_all(&bench, &chosen, &mut all);
    let is_near = chosen.iter().zip(&all).any(|(chosen, kills)| loses_nothing_near(chosen, kills));
    all.into_iter().for_each(|kills| findings.save(Found::Failover(kills)));
    let ended = findings.end(if is_whole { Exit::Ok } else { Exit::Interrupted })?;
    if is_near {
        complain(&format!(
            "hint: all servers are on this machine, so replicas lag very little. To add a network delay: &{}=5ms",
            LINK_DELAY.name
        ));
    }
    Ok(ended)
}

/// Kills each target in turn, so that what disturbs the machine meets all of them. False where that was interrupted.
fn kill_all(bench: &FailoverBench<'_>, chosen: &[Chosen], all: &mut [Failovers]) -> bool {
    let Some((kills, seed)) = all.first().map(|first| (first.kills_asked, first.seed)) else { return true };
    for moment in failover::moments(seed, kills) {
        for (chosen, of_target) in chosen.iter().zip(all.iter_mut()).filter(|(_, one)| one.untried.is_none()) {
            match bench.kill_one(chosen, moment) {
                Ok((version, kill)) => {
                    of_target.version = version;
                    of_target.kills.push(kill);
                    let done = of_target.kills.len();
                    if terminal::is_watched() || done == kills as usize {
                        complain(&format!("{}: kill {done} of {kills}", of_target.target));
                    }
                }
                Err(Untried::Interrupted) => {
                    complain("interrupted; the kills that were finished are printed");
                    return false;
                }
                Err(untried) => {
                    if let Untried::Full(_) = untried {
                        complain(&full_disk(bench.scratch));
                    }
                    of_target.untried = Some(untried.into());
                }
            }
        }
    }
    true
}

fn chosen(args: &Crash, level: Durability) -> Result<Vec<Chosen>> {
    let usage = |what: String| anyhow!(Usage(what));
    if args.targets.is_empty() {
        let example = replicas::having_replicas().next().map_or_else(String::new, replicas::example);
        return Err(usage(format!("--failover needs a target with replicas\nhint: kvfair crash --failover {example}")));
    }
    let chosen: Result<Vec<Chosen>> = args.targets.iter().map(|text| target::parse(text)).collect();
    let chosen = chosen.map_err(|error| usage(format!("{error:#}")))?;
    refusals::refuse(&chosen, &Intent::Failover)?;
    planned::names_differ(&chosen)?;
    let chosen = without_missing(chosen, |_| true, IfMissing::of(args.skip_missing))?;
    for one in &chosen {
        if let Err(why) = (one.adapter.keeps)(level) {
            return Err(usage(format!("{} claims no durability {level}: {why}", one.target.label)));
        }
    }
    Ok(chosen)
}

/// Nothing was lost, and a delay of the link was possible that was not asked for.
fn loses_nothing_near(chosen: &Chosen, failovers: &Failovers) -> bool {
    let can_delay = chosen.adapter.settings.iter().any(|setting| setting.name == LINK_DELAY.name);
    let is_near = replication::link_delay(&chosen.target.settings).is_none();
    can_delay && is_near && failovers.wait == 0 && !failovers.kills.is_empty() && failovers.lost() == 0
}
