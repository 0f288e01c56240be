//! `kvfair crash --failover`: what is lost when a primary is killed, and how long no write is accepted.

use anyhow::{Context, Result, anyhow};
use serde::Serialize;

use super::absent::{IfMissing, without_missing};
use super::args::Crash;
use super::crash::full_disk;
use super::refusals::{self, Intent};
use super::{Exit, Usage, complain, planned, print, replicas, target, terminal, typed};
use crate::harness::crash::Untried;
use crate::harness::crash::failover::{self, CLIENTS, FailoverBench};
use crate::harness::plan::{self, Chosen};
use crate::harness::scratch;
use crate::harness::signals::Interrupt;
use crate::model::crash::failover::{FailoverKill, Failovers};
use crate::model::trial::Durability;
use crate::report::exit::worst;
use crate::report::failover::{self as report, FailoverRow};
use crate::report::json;
use crate::stores::replication::{self, LINK_DELAY};

/// How often each primary is killed: so that a number has a spread.
const KILLS: u32 = 5;

pub fn failover(args: &Crash) -> Result<Exit> {
    let level = args.durability.unwrap_or(Durability::Crash);
    let chosen = chosen(args, level)?;
    let interrupt = Interrupt::listen().context("cannot listen for Ctrl-C")?;
    let scratch = scratch::make()?;
    let (kills, seed) = (args.kills.unwrap_or(KILLS), args.seed.unwrap_or_else(plan::any_seed));
    let headline = report::headline(kills, level, CLIENTS, seed);
    if args.json {
        complain(&headline)
    } else {
        print(&format!("{headline}\n"))?
    }
    let bench = FailoverBench { scratch: scratch.path(), level, interrupt: &interrupt };
    let of_target = |chosen: &Chosen| FailoverRow {
        label: chosen.target.label.clone(),
        seen: Failovers { wait: replication::wait(&chosen.target.settings), ..Failovers::default() },
    };
    let mut rows: Vec<FailoverRow> = chosen.iter().map(of_target).collect();
    let mut ended = Exit::Ok;
    // Each target in turn, so that what disturbs the machine meets all of them.
    'all: for moment in failover::moments(seed, kills) {
        for (chosen, row) in chosen.iter().zip(&mut rows).filter(|(_, row)| row.seen.reason.is_none()) {
            match bench.kill_one(chosen, moment) {
                Ok((version, kill)) => {
                    row.seen.version = version;
                    row.seen.kills.push(kill);
                    let done = row.seen.kills.len();
                    if terminal::is_watched() || done == kills as usize {
                        complain(&format!("{}: {done} of {kills} kills", row.label));
                    }
                }
                Err(Untried::Interrupted) => {
                    complain("interrupted; the kills that were finished are printed");
                    ended = Exit::Interrupted;
                    break 'all;
                }
                Err(untried) => {
                    if let Untried::Full(_) = untried {
                        complain(&full_disk(scratch.path()));
                    }
                    let is_missing = matches!(untried, Untried::Missing { .. });
                    ended = worst([ended, if is_missing { Exit::Missing } else { Exit::Error }]);
                    row.seen.reason = Some(untried.to_string());
                }
            }
        }
    }
    let is_faulty = ended != Exit::Interrupted && rows.iter().any(|row| row.seen.fault().is_some());
    let ended = if is_faulty { worst([ended, Exit::WrongAnswers]) } else { ended };
    show(args.json, level, &rows, ended)?;
    if chosen.iter().zip(&rows).any(|(chosen, row)| loses_nothing_near(chosen, &row.seen)) {
        complain(&format!(
            "hint: all servers are on this machine, and little is under way to a replica. As over a network: &{}=5ms",
            LINK_DELAY.name
        ));
    }
    Ok(ended)
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
fn loses_nothing_near(chosen: &Chosen, seen: &Failovers) -> bool {
    let can_delay = chosen.adapter.settings.iter().any(|setting| setting.name == LINK_DELAY.name);
    let is_near = replication::link_delay(&chosen.target.settings).is_none();
    can_delay && is_near && seen.wait == 0 && !seen.kills.is_empty() && seen.lost() == 0
}

fn show(is_json: bool, level: Durability, rows: &[FailoverRow], ended: Exit) -> Result<()> {
    if is_json {
        let told: Vec<_> = rows.iter().map(|row| Shown::new(row, level)).collect();
        return print(&json::object(&typed(), ended, json::JsonTable { rows: told })?);
    }
    print(&report::shown(rows))
}

/// One target, as JSON.
#[derive(Serialize)]
struct Shown<'a> {
    target: &'a str,
    level: Durability,
    clients: u32,
    version: &'a str,
    wait: u32,
    acknowledged: u64,
    lost: u64,
    lost_share: Option<f64>,
    /// Of all kills.
    accepted_s_median: Option<f64>,
    accepted_s_worst: Option<f64>,
    wrong: u64,
    /// What must not happen, and did.
    fault: Option<String>,
    /// Why there are no more kills.
    reason: Option<&'a str>,
    kills: &'a [FailoverKill],
}

impl<'a> Shown<'a> {
    fn new(row: &'a FailoverRow, level: Durability) -> Shown<'a> {
        let seen = &row.seen;
        Shown {
            target: &row.label,
            level,
            clients: CLIENTS,
            version: &seen.version,
            wait: seen.wait,
            acknowledged: seen.acknowledged(),
            lost: seen.lost(),
            lost_share: seen.lost_share(),
            accepted_s_median: seen.accepted_s().map(|(median, _)| median),
            accepted_s_worst: seen.accepted_s().map(|(_, worst)| worst),
            wrong: seen.wrong(),
            fault: seen.fault(),
            reason: seen.reason.as_deref(),
            kills: &seen.kills,
        }
    }
}
