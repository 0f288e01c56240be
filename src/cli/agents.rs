//! `--agents`: from what was typed to commands that start agents; what they cannot do; and what they say of themselves
//! before a run.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, anyhow};

use super::args::{How, RunArgs};
use super::{Exit, Usage, complain};
use crate::harness::agents::{Team, Trouble};
use crate::harness::plan::{Chosen, Plan};
use crate::harness::signals::Interrupt;
use crate::harness::worker;
use crate::jobs::JobKind;
use crate::jobs::ngrams::NGRAMS;
use crate::model::agents::{Agent, AgentCommand, AgentPlan};
use crate::model::shell::quoted;
use crate::model::trial::Transport;
use crate::stores::{Place, replication};

/// What a host is called where there are no others.
const HERE: &str = "localhost";
/// What may stand in braces.
const PLACEHOLDERS: [&str; 2] = ["host", "rank"];

/// The agents that were asked for, with the points of the run: the numbers of its clients.
pub fn plan_of(args: &RunArgs, kind: &JobKind, chosen: &[Chosen], points: &[u32]) -> Result<AgentPlan> {
    let Some(count) = args.how.agents.agents else { return Ok(AgentPlan::default()) };
    let why = not_split(kind)
        .or_else(|| beside(&args.how))
        .or_else(|| chosen.iter().find_map(|chosen| out_of_reach(chosen, args.how.agents.launch.is_some())))
        .or_else(|| too_few(count, chosen, points));
    match why {
        Some(why) => Err(anyhow!(Usage(format!("--agents: {why}")))),
        None => Ok(AgentPlan { commands: commands(&args.how, count)?, judges_start: true }),
    }
}

/// A job that has one client by default has one for each agent.
pub fn one_each(args: &RunArgs, kind: &JobKind, points: Vec<u32>) -> Vec<u32> {
    match args.how.agents.agents {
        Some(count) if args.how.clients.is_none() && kind.requests.is_none() => vec![count],
        _ => points,
    }
}

fn not_split(kind: &JobKind) -> Option<String> {
    let is_split = kind.requests.is_some() || kind.name == NGRAMS.name;
    let hint = "hint: they share getset, mixed, ycsb-* and ngrams";
    (!is_split).then(|| format!("agents cannot share the job {}\n{hint}", kind.name))
}

/// Options that hold within one process or on one machine.
fn beside(how: &How) -> Option<String> {
    let given = [
        (how.rtt.is_some(), "--rtt", "the proxy that delays is on this machine"),
        (how.pin, "--pin", "processors are given to one process of clients"),
        (how.load.read_only, "--read-only", "the keys that are drawn are known to one process"),
    ];
    let (_, option, why) = given.into_iter().find(|(given, ..)| *given)?;
    Some(format!("not with {option}: {why}\nhint: leave one of them out"))
}

/// All agents must reach the target by a network.
fn out_of_reach(chosen: &Chosen, elsewhere: bool) -> Option<String> {
    let (label, name) = (&chosen.target.label, chosen.adapter.name);
    if replication::count(&chosen.target.settings) > 0 {
        let replicas = replication::REPLICAS.name;
        return Some(format!(
            "{label}: how far replicas are behind is known to one process of clients\nhint: leave ?{replicas}= out, or \
             --agents"
        ));
    }
    if chosen.target.cache.is_some() {
        return Some(format!("{label}: the cache is in one process\nhint: leave cached: out"));
    }
    if chosen.target.transport == Transport::InProcess {
        return Some(format!("{label} is in one process, which agents cannot share\nhint: name a server, as in redis"));
    }
    if !elsewhere || matches!(chosen.place, Some(Place::Tcp { .. })) {
        return None;
    }
    let here = match chosen.place {
        Some(_) => "is a socket of this machine",
        None => "is started by kvfair and listens only on this machine",
    };
    Some(format!(
        "{label} {here}; agents that --launch starts may be on another\nhint: name a server by URL, as in {name}://HOST, or \
         leave --launch out"
    ))
}

/// An agent without a client has nothing to do.
fn too_few(count: u32, chosen: &[Chosen], points: &[u32]) -> Option<String> {
    let fewest = points.iter().copied().chain(chosen.iter().filter_map(|chosen| chosen.asking.clients)).min()?;
    (fewest < count).then(|| {
        format!("{count} agents cannot share {fewest} clients: each has one at least\nhint: --clients {count}")
    })
}

fn commands(how: &How, count: u32) -> Result<Vec<AgentCommand>> {
    let usage = |what: String| Err(anyhow!(Usage(what)));
    let Some(launch) = &how.agents.launch else {
        let program = std::env::current_exe().context("cannot find our own program")?;
        let line = format!("exec {} agent", quoted(&program.to_string_lossy()));
        return Ok((0..count).map(|_| AgentCommand { host: HERE.to_string(), line: line.clone() }).collect());
    };
    if launch.trim().is_empty() {
        return usage("--launch is empty\nhint: what starts one agent, as in 'ssh {host} kvfair agent'".to_string());
    }
    if let Some(name) = unknown(launch) {
        return usage(format!("--launch: {{{name}}} is unknown\nhint: {{host}} and {{rank}} are filled in"));
    }
    let hosts = match (&how.agents.hosts, launch.contains("{host}")) {
        (Some(path), true) => hosts_of(path, count)?,
        (None, false) => vec![HERE.to_string(); count as usize],
        (Some(_), false) => {
            let hint = "hint: --launch 'ssh {host} kvfair agent', or leave --hosts out";
            return usage(format!("--hosts: --launch has no {{host}} that stands for one of them\n{hint}"));
        }
        (None, true) => return usage("--launch has {host}, and there is no --hosts\nhint: --hosts FILE".to_string()),
    };
    let line = |rank: u32, host: &str| launch.replace("{host}", &quoted(host)).replace("{rank}", &rank.to_string());
    Ok((0..).zip(hosts).map(|(rank, host)| AgentCommand { line: line(rank, &host), host }).collect())
}

/// A word in braces that is no placeholder and is none of the shell's own.
fn unknown(launch: &str) -> Option<&str> {
    let braced = launch.match_indices('{').filter(|(place, _)| !launch[..*place].ends_with('$'));
    let names = braced.filter_map(|(place, _)| launch[place + 1..].split_once('}').map(|(name, _)| name));
    let mut names = names.filter(|name| !name.is_empty() && name.bytes().all(|letter| letter.is_ascii_lowercase()));
    names.find(|name| !PLACEHOLDERS.contains(name))
}

fn hosts_of(path: &Path, count: u32) -> Result<Vec<String>> {
    let text = std::fs::read_to_string(path).with_context(|| format!("--hosts {}", path.display()))?;
    let mut hosts = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let host = line.split('#').next().unwrap_or_default().trim();
        // A program would take what begins with a dash for one of its options.
        if host.starts_with('-') || host.chars().any(|letter| letter.is_whitespace() || letter.is_control()) {
            let why = "no host: it has a space, or a dash in front";
            let what = format!("{}:{number}: {why}\nhint: one host a line", path.display());
            return Err(anyhow!(Usage(what)));
        }
        hosts.extend(Some(host.to_string()).filter(|host| !host.is_empty()));
    }
    if hosts.is_empty() {
        return Err(anyhow!(Usage(format!("--hosts: {} names no host\nhint: one host a line", path.display()))));
    }
    if hosts.len() < count as usize {
        let (path, found) = (path.display(), hosts.len());
        let what = format!("--agents {count}: {path} has {found} hosts\nhint: --agents {found}, or name a host twice");
        return Err(anyhow!(Usage(what)));
    }
    hosts.truncate(count as usize);
    Ok(hosts)
}

/// Starts all agents once and ends them again, before anything is made for a run; says what they are.
pub fn greet(plan: &Plan, scratch: &Path, interrupt: &Interrupt) -> Result<()> {
    if plan.agents.commands.is_empty() {
        return Ok(());
    }
    let stop = || interrupt.is_set();
    let team = Team::greet(&plan.agents.commands, scratch, plan.timeout, &stop).map_err(|trouble| match trouble {
        Trouble::Refused(reason) | Trouble::Apart(_, reason) | Trouble::Failed(reason) => anyhow!("{reason}"),
        Trouble::Wrong(wrong) => anyhow!("{}", wrong.found),
    })?;
    team.agents().iter().for_each(|agent| complain(&format!("kvfair: {}", line_of(agent))));
    let machines: BTreeSet<u32> = team.agents().iter().map(|agent| agent.machine).collect();
    let bound_us = team.agents().iter().map(|agent| agent.clock_bound_us).fold(0.0, f64::max);
    let machines = if machines.len() == 1 { "one machine".to_string() } else { format!("{} machines", machines.len()) };
    complain(&format!(
        "kvfair: {} agents on {machines}, all of kvfair {}; their clocks are known to {:.3} ms",
        team.agents().len(),
        env!("CARGO_PKG_VERSION"),
        bound_us / 1e3
    ));
    Ok(())
}

fn line_of(agent: &Agent) -> String {
    let machine = match agent.machine {
        0 => "this machine".to_string(),
        number => format!("machine {number}"),
    };
    format!(
        "{}: {machine}, {} processors, clock {:+.3} ms (± {:.3} ms)",
        agent.name(),
        agent.processors,
        agent.clock_offset_us / 1e3,
        agent.clock_bound_us / 1e3
    )
}

/// The hidden command `agent`.
pub fn agent(rank: Option<u32>) -> Result<Exit> {
    worker::agent::run(rank);
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_of_the_shell_are_no_placeholders() {
        assert_eq!(unknown("ssh {host} kvfair agent --rank {rank}"), None);
        assert_eq!(unknown("ssh ${host} { true; }; awk '{print $1}'"), None);
        assert_eq!(unknown("ssh {node} kvfair agent"), Some("node"));
    }

    #[test]
    fn hosts_are_lines_and_nothing_that_a_program_takes_for_an_option() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("hosts");
        let of = |text: &str, count| {
            std::fs::write(&path, text).expect("written");
            hosts_of(&path, count).map_err(|error| format!("{error:#}"))
        };
        assert_eq!(of("# all\na\n\n b # second\nc\n", 2), Ok(vec!["a".to_string(), "b".to_string()]));
        assert!(of("a\nb\n", 3).is_err_and(|why| why.contains("has 2 hosts")));
        assert!(of("# none\n", 3).is_err_and(|why| why.contains("names no host")));
        for bad in ["-oProxyCommand=x\n", "a b\n", "a\u{7}\n"] {
            assert!(of(bad, 1).is_err_and(|why| why.contains("hosts:1: no host")), "{bad:?}");
        }
    }
}
