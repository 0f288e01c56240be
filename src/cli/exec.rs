//! `kvfair run --exec`: the plan of a run of a program of the user's.

use anyhow::{Result, anyhow};

use super::args::{How, RunArgs};
use super::refusals::{self, Intent};
use super::{Usage, planned, target};
use crate::harness::plan::{self, Plan};
use crate::model::trial::{Data, JobSettings, Seeds, Split, Verify, Via};

/// What records and results files call it in the place of a job's name.
const NAME: &str = "exec";

/// Everything that was typed beside `--exec`, checked and made sense of.
pub fn plan_of(args: &RunArgs, command: &str) -> Result<Plan> {
    let usage = |what: String| anyhow!(Usage(what));
    if command.trim().is_empty() {
        return Err(usage("--exec: the command is empty".to_string()));
    }
    if let Some(option) = of_jobs(&args.how) {
        return Err(usage(format!("{option} is an option of jobs: --exec runs a program of yours in place of one")));
    }
    let named: Vec<&String> = args.job.iter().chain(&args.targets).collect();
    if named.is_empty() {
        let what = "--exec: no target is named\nhint: kvfair run --exec 'CMD {host} {port}' redis memcached";
        return Err(usage(what.to_string()));
    }
    let chosen = target::parse_all(named)?;
    planned::names_differ(&chosen)?;
    planned::shipped_has_no_class(&args.how)?;
    let answer = args.own.answer.clone().unwrap_or_default();
    refusals::refuse(&chosen, &Intent::Program { args, command, answer: &answer })?;
    if let Some(keep) = &args.how.keep {
        planned::keeps_nothing_yet(keep, &chosen)?;
    }
    let pinned = planned::pinned(&args.how)?;
    Ok(Plan {
        pinned,
        kind: None,
        job: JobSettings {
            name: NAME.to_string(),
            data: Data::Program { command: command.to_string(), answer },
            format: String::new(),
            read_as: None,
            units: None,
            skip_bad: 0,
            via: Via::default(),
            split: Split::default(),
            load: None,
            replay_percent: None,
        },
        clients: 1,
        durability: args.how.durability,
        configuration: args.how.configuration,
        verify: Verify::Full,
        timeout: args.how.timeout,
        blocks: planned::blocks_of(args, &chosen),
        chosen,
        seeds: Seeds { order: args.how.size.seed.unwrap_or_default(), data: Vec::new() },
        sizes: Vec::new(),
        aa_control: !args.how.no_aa,
        answers_only: args.how.answers_only,
        accepts_unchecked: args.how.accept_unchecked,
        accepts_noise: args.how.accept_noise,
        keep: args.how.keep.clone(),
        warm: false,
        piloted: Vec::new(),
        left_out: Vec::new(),
        end: None,
        began: plan::utc_now(),
        command: super::typed(),
        visits: None,
    })
}

/// The first option that says what a job does: a program does what it does.
fn of_jobs(how: &How) -> Option<&'static str> {
    let given = [
        (how.input.is_some(), "--input"),
        (how.format.is_some(), "--format"),
        (!how.columns.is_empty(), "--columns"),
        (how.field.is_some(), "--field"),
        (how.skip_bad > 0, "--skip-bad"),
        (!how.size.profiles.is_empty(), "--profiles"),
        (!how.size.messages.is_empty(), "--messages"),
        (how.size.requests.is_some(), "--requests"),
        (how.clients.is_some(), "--clients"),
        (how.replay.is_some(), "--replay"),
        (how.via != [Via::Portable], "--via"),
        (how.split != Split::default(), "--split"),
        (how.verify != Verify::default(), "--verify"),
    ];
    let named = given.into_iter().find(|(given, _)| *given).map(|(_, name)| name);
    named.or_else(|| how.load.given().next())
}
