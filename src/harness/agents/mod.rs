//! The agents of a trial as a team: started, greeted, told what to drive, and added up. Who they work for is
//! `worker::team`, their own side is `worker::agent`.

use std::path::Path;
use std::time::{Duration, Instant};

use super::task::{AgentOrder, AgentTask, Event, Hello, PartSeen, ShareEnd, TrialTask};
use crate::harness::DEBUG_BUILD;
use crate::jobs::Part;
use crate::model::agents::{Agent, AgentCommand, AgentShare, SPREAD_MAX_S, too_far_apart_s};
use crate::model::load::At;
use crate::model::trial::METHOD;

pub mod clocks;
mod link;
pub mod merge;

use clocks::{Offset, own_ns};
pub use link::{Link, Trouble};

/// How long an agent may take until it says its first word: a batch system may have to find a place for it.
const GREETING: Duration = Duration::from_secs(60);
/// How long the clients of an agent may take to connect.
const CONNECTING: Duration = Duration::from_secs(60);
/// An agent that drives clients tells so ten times a second. After so long without a word it counts as lost.
const SILENCE: Duration = Duration::from_secs(15);
/// How far ahead the moment lies at which all begin, beside what the slowest round trip takes: an agent on a busy
/// machine has to wait for a processor before it hears of the moment.
const LEAD: Duration = Duration::from_millis(100);
/// How often agents are listened to.
const LOOK: Duration = Duration::from_millis(5);
/// An agent notices that the head is gone when it reports its progress, a tenth of a second later at most.
const LETTING_GO: Duration = Duration::from_millis(500);

pub struct Team {
    links: Vec<Link>,
    agents: Vec<Agent>,
    /// Whether agents that begin too far apart end the trial.
    judges_start: bool,
    /// The point whose part is under way.
    under_way: Option<At>,
    /// How long the clients of an agent may take to connect.
    connecting: Duration,
}

impl Team {
    /// Starts all agents, waits for their first words and looks at their clocks. Their error output goes to files in
    /// `directory`. It stops waiting once `stop` is true.
    pub fn greet(
        commands: &[AgentCommand],
        directory: &Path,
        patience: Duration,
        stop: &dyn Fn() -> bool,
    ) -> Result<Team, Trouble> {
        let limit = patience.min(GREETING);
        let started = (0..).zip(commands).map(|(rank, command)| Link::start(rank, command, directory));
        let mut links = started.collect::<Result<Vec<Link>, Trouble>>()?;
        let began = Instant::now();
        links.iter_mut().try_for_each(|link| link.greeted(began, limit, stop))?;
        are_alike(&links).map_err(Trouble::Refused)?;
        let offsets = links.iter_mut().map(clocks::measure).collect::<Result<Vec<Offset>, Trouble>>()?;
        let hellos: Vec<&Hello> = links.iter().map(|link| &link.hello).collect();
        let machines = machines(&boot(), &hellos);
        let agents = links.iter().zip(machines).zip(&offsets).map(|((link, machine), offset)| Agent {
            rank: link.rank,
            host: link.host.clone(),
            machine,
            processors: link.hello.processors,
            clock_offset_us: offset.ns as f64 / 1e3,
            clock_bound_us: offset.bound_ns as f64 / 1e3,
        });
        let agents = agents.collect();
        Ok(Team { links, agents, judges_start: true, under_way: None, connecting: CONNECTING })
    }

    pub fn agents(&self) -> &[Agent] {
        &self.agents
    }

    /// The processes of agents that run on this machine, as far as they can be seen. They are no other programs.
    pub fn processes_here(&self) -> Vec<u32> {
        self.processes_on(0, &namespace())
    }

    fn processes_on(&self, machine: u32, namespace: &str) -> Vec<u32> {
        let there = self
            .links
            .iter()
            .zip(&self.agents)
            .filter(|(link, agent)| agent.machine == machine && link.hello.process_namespace == namespace);
        there.map(|(link, _)| link.hello.process).collect()
    }

    /// Tells each what it works on. The first one of each machine but ours looks at that machine for all of its agents.
    pub fn work(&mut self, trial: &TrialTask) {
        self.judges_start = trial.judges_start;
        if trial.job.load.is_none() {
            // Each agent writes its messages first.
            self.connecting = CONNECTING.max(trial.launch.patience);
        }
        let world = self.links.len() as u32;
        for place in 0..self.links.len() {
            let machine = self.agents[place].machine;
            let on_it = |agent: &&Agent| agent.machine == machine;
            let beside = self.agents.iter().filter(on_it).count() as u32;
            let watches = machine > 0 && self.agents.iter().find(on_it).is_some_and(|agent| agent.rank == place as u32);
            let namespace = self.links[place].hello.process_namespace.clone();
            let watches = watches.then(|| self.processes_on(machine, &namespace));
            let share = AgentShare { rank: place as u32, world };
            let trial = TrialTask { agents: Vec::new(), ..trial.clone() };
            let task = AgentTask { trial, share, beside, is_elsewhere: machine > 0, watches };
            self.links[place].order(&AgentOrder::Work(Box::new(task)));
        }
    }

    /// Has all clients of a part connected.
    pub fn connect(&mut self, part: Part, at: At) -> Result<(), Trouble> {
        self.links.iter_mut().for_each(|link| link.order(&AgentOrder::Drive { part, at }));
        self.under_way = Some(at);
        for link in &mut self.links {
            link.until(self.connecting, "its clients were not connected", |event| {
                matches!(event, Event::Begins(_)).then_some(())
            })?;
        }
        Ok(())
    }

    /// Lets all begin at one moment, and adds up what they saw. `heard` hears of the units that are finished.
    pub fn drive(&mut self, heard: &mut dyn FnMut(u64)) -> Result<PartSeen, Trouble> {
        let at = self.under_way.take().ok_or_else(|| Trouble::Failed("no part was begun".to_string()))?;
        let before = self.links.iter_mut().map(clocks::measure).collect::<Result<Vec<Offset>, Trouble>>()?;
        let slowest_ns = before.iter().map(|offset| 2 * offset.bound_ns).max().unwrap_or(0);
        let begin_ns = own_ns() + LEAD.as_nanos() as u64 + 2 * slowest_ns;
        for (link, offset) in self.links.iter_mut().zip(&before) {
            link.order(&AgentOrder::Begin(offset.theirs(begin_ns)));
        }
        let ends = self.listen(heard)?;
        for (link, before) in self.links.iter_mut().zip(&before) {
            if let Some(moved_ns) = clocks::measure(link)?.jumped_since(*before) {
                let (name, moved_ms) = (link.name(), moved_ns as f64 / 1e6);
                return Err(Trouble::Failed(format!(
                    "{name}: its clock jumped by {moved_ms:+.1} ms while it worked: when its clients began is not known"
                )));
            }
        }
        let seen = merge::shares(ends.into_iter().zip(before).collect(), at).map_err(Trouble::Failed)?;
        self.began_together(&seen)?;
        Ok(seen)
    }

    /// Listens to all until each has come to its end.
    fn listen(&mut self, heard: &mut dyn FnMut(u64)) -> Result<Vec<ShareEnd>, Trouble> {
        let mut ends: Vec<Option<ShareEnd>> = self.links.iter().map(|_| None).collect();
        let mut units = vec![0; ends.len()];
        let namespace = namespace();
        while ends.iter().any(Option::is_none) {
            let mut news = false;
            for (place, link) in self.links.iter_mut().enumerate() {
                if ends[place].is_some() {
                    continue;
                }
                match link.next(Duration::ZERO)? {
                    Some(Event::Progress(done)) => units[place] = done,
                    Some(Event::ShareEnded(mut end)) => {
                        // Threads are known by number where we see them, and nowhere else.
                        if self.agents[place].machine > 0 || link.hello.process_namespace != namespace {
                            end.seen.waits.clear();
                        }
                        ends[place] = Some(*end);
                    }
                    Some(_) => {}
                    None if link.silent() > SILENCE => {
                        let (name, silent_s) = (link.name(), SILENCE.as_secs());
                        return Err(Trouble::Failed(format!(
                            "{name} is lost: nothing was heard of it for {silent_s} s"
                        )));
                    }
                    None => continue,
                }
                news = true;
            }
            if news {
                heard(units.iter().sum());
            } else {
                std::thread::sleep(LOOK);
            }
        }
        Ok(ends.into_iter().flatten().collect())
    }

    /// Who did not begin with the others did not put the load on the store that was asked for.
    fn began_together(&self, seen: &PartSeen) -> Result<(), Trouble> {
        let phase = &seen.phase;
        let Some(apart_s) = too_far_apart_s(&phase.agents).filter(|_| self.judges_start) else { return Ok(()) };
        let last = phase.agents.iter().max_by(|one, other| one.began_us.total_cmp(&other.began_us));
        let last = last.and_then(|last| self.links.get(last.rank as usize)).map_or_else(String::new, Link::name);
        let apart_ms = apart_s * 1e3;
        let reason = format!(
            "agents began up to {apart_ms:.2} ms apart, {last} last: more than {} ms\nhint: fewer agents a machine, or \
             machines that do nothing else",
            SPREAD_MAX_S * 1e3
        );
        Err(Trouble::Apart(apart_ms, reason))
    }

    /// Some run on other machines.
    pub fn is_elsewhere(&self) -> bool {
        self.agents.iter().any(|agent| agent.machine > 0)
    }

    /// Ends all of them.
    pub fn end(&mut self) {
        self.links.iter_mut().for_each(Link::kill);
        let_go();
    }
}

/// Waits until agents that a command started elsewhere have noticed that the head is gone.
pub fn let_go() {
    std::thread::sleep(LETTING_GO);
}

/// Each must be this kvfair, and be there once.
fn are_alike(links: &[Link]) -> Result<(), String> {
    for link in links {
        let Hello { kvfair, method, debug_build, rank, .. } = &link.hello;
        let (name, own) = (link.name(), env!("CARGO_PKG_VERSION"));
        if kvfair != own || *method != METHOD {
            return Err(format!(
                "{name} is kvfair {kvfair} with method {method}, and this is {own} with method {METHOD}\nhint: install \
                 {own} there"
            ));
        }
        if *debug_build != DEBUG_BUILD {
            return Err(format!(
                "{name} is built with other optimisation than this kvfair\nhint: install the same there"
            ));
        }
        let Some(rank) = rank.filter(|rank| *rank != link.rank) else { continue };
        let hint = "hint: --launch '... kvfair agent --rank {rank}', or leave --rank out";
        let other = links.iter().find(|other| other.rank != link.rank && other.hello.rank == Some(rank));
        return Err(match other {
            Some(other) => format!("{name} and {} both say that they are rank {rank}\n{hint}", other.name()),
            None => format!("{name} says that it is rank {rank}\n{hint}"),
        });
    }
    Ok(())
}

/// The machine of each agent, by when it was started: 0 is ours, others are numbered as they come.
fn machines(own: &str, hellos: &[&Hello]) -> Vec<u32> {
    let (mut known, mut numbers) = (vec![own], Vec::new());
    for hello in hellos {
        let place = known.iter().position(|boot| *boot == hello.boot).unwrap_or(known.len());
        if place == known.len() {
            known.push(&hello.boot);
        }
        numbers.push(place as u32);
    }
    numbers
}

/// What an agent says of itself.
pub fn hello(rank: Option<u32>) -> Hello {
    Hello {
        kvfair: env!("CARGO_PKG_VERSION").to_string(),
        method: METHOD,
        debug_build: DEBUG_BUILD,
        boot: boot(),
        process_namespace: namespace(),
        process: std::process::id(),
        processors: super::machine::processors() as u32,
        rank,
    }
}

/// Which machine this is, until it is started anew (random(4)); elsewhere than on Linux its name.
fn boot() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").map(|boot| boot.trim().to_string());
    boot.unwrap_or_else(|_| {
        nix::sys::utsname::uname().map_or_else(|_| String::new(), |name| name.nodename().to_string_lossy().into_owned())
    })
}

/// Processes are known by number within one namespace.
fn namespace() -> String {
    std::fs::read_link("/proc/self/ns/pid").map_or_else(|_| String::new(), |path| path.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on(boot: &str) -> Hello {
        Hello { boot: boot.to_string(), ..Hello::default() }
    }

    #[test]
    fn agents_of_one_boot_are_on_one_machine_and_ours_is_the_first() {
        let hellos = [on("b"), on("a"), on("own"), on("b"), on("c")];
        assert_eq!(machines("own", &hellos.iter().collect::<Vec<_>>()), [1, 2, 0, 1, 3]);
    }
}
