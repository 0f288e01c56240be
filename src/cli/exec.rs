//! `kvfair run --exec`: the plan of a run of a program of the user's.

use anyhow::{Result, anyhow};

use super::args::{How, RunArgs};
use super::refusals::{self, Intent};
use super::{Usage, planned, target};
use crate::harness::plan::Plan;
use crate::model::fans::Encoding;
use crate::model::trial::{Data, JobSettings, Split, Verify, Via};

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
    let answer = args.own.answer.clone().unwrap_or_default();
    refusals::refuse(&chosen, &Intent::Program { args, command, answer: &answer })?;
    let job = JobSettings {
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
        ngrams: Default::default(),
        lookup: Default::default(),
        fans: Default::default(),
    };
    planned::started(args, chosen, job)
}

/// The first option that says what a job does: a program does what it does.
fn of_jobs(how: &How) -> Option<&'static str> {
    let given = [
        (how.input.is_some(), "--input"),
        (how.format.is_some(), "--format"),
        (!how.columns.is_empty(), "--columns"),
        (how.field.is_some(), "--field"),
        (how.skip_bad > 0, "--skip-bad"),
        (!how.order.is_empty(), "--order"),
        (how.unit.is_some(), "--unit"),
        (!how.size.profiles.is_empty(), "--profiles"),
        (!how.size.messages.is_empty(), "--messages"),
        (how.size.requests.is_some(), "--requests"),
        (how.clients.is_some(), "--clients"),
        (how.agents.agents.is_some(), "--agents"),
        (how.replay.is_some(), "--replay"),
        (how.strict, "--strict"),
        (how.via != [Via::Portable], "--via"),
        (how.queries.is_some(), "--queries"),
        (how.encoding != [Encoding::Json], "--encoding"),
        (how.split != Split::default(), "--split"),
        (how.verify != Verify::default(), "--verify"),
    ];
    let named = given.into_iter().find(|(given, _)| *given).map(|(_, name)| name);
    named.or_else(|| how.load.given().next())
}
