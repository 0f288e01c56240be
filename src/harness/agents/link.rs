//! One agent, on the standard input and output of the command that started it. Each wait has a limit, and each failure
//! names the agent.

use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use crate::harness::child::Child;
use crate::harness::signals::INTERRUPTED;
use crate::harness::task::{AgentOrder, Event, Hello};
use crate::model::agents::{AgentCommand, named};
use crate::model::op::Wrong;

/// How often it is asked whether an agent is still to be waited for.
const LOOK: Duration = Duration::from_millis(50);

/// Why agents are of no more use.
#[derive(Debug)]
pub enum Trouble {
    /// What was asked cannot be had.
    Refused(String),
    /// They began too far apart: by so many milliseconds, and in words.
    Apart(f64, String),
    Failed(String),
    /// A client of an agent's heard a wrong answer.
    Wrong(Wrong),
}

pub struct Link {
    pub rank: u32,
    pub host: String,
    pub hello: Hello,
    child: Child,
    /// When it said something last.
    heard: Instant,
}

impl Link {
    /// Starts the command. What it is and whether it is an agent at all is not known before [`Link::greeted`].
    pub fn start(rank: u32, command: &AgentCommand, directory: &Path) -> Result<Link, Trouble> {
        let log = directory.join(format!("agent-{rank}.log"));
        let name = || named(rank, &command.host);
        let child = Child::launch(&command.line, &log)
            .map_err(|error| Trouble::Failed(format!("{} cannot be started: {error:#}", name())))?;
        Ok(Link { rank, host: command.host.clone(), hello: Hello::default(), child, heard: Instant::now() })
    }

    pub fn name(&self) -> String {
        named(self.rank, &self.host)
    }

    /// Waits for its first word.
    pub fn greeted(&mut self, began: Instant, limit: Duration, stop: &dyn Fn() -> bool) -> Result<(), Trouble> {
        while !stop() {
            if let Some(Event::Hello(hello)) = self.next(LOOK)? {
                self.hello = hello;
                return Ok(());
            }
            if began.elapsed() >= limit {
                return Err(self.silent_for("it did not answer", limit));
            }
        }
        Err(Trouble::Failed(INTERRUPTED.to_string()))
    }

    fn silent_for(&self, lacking: &str, limit: Duration) -> Trouble {
        let (name, limit_s) = (self.name(), limit.as_secs_f64().round());
        Trouble::Failed(format!("{name}: {lacking} within {limit_s} s{}", self.hint()))
    }

    pub fn order(&mut self, order: &AgentOrder) {
        self.child.order(order);
    }

    /// Listens until it says what is wanted; `lacking` is what is so where that does not come within the limit.
    pub fn until<T>(
        &mut self,
        limit: Duration,
        lacking: &str,
        mut wanted: impl FnMut(Event) -> Option<T>,
    ) -> Result<T, Trouble> {
        let deadline = Instant::now() + limit;
        loop {
            if let Some(found) = self.next(deadline.saturating_duration_since(Instant::now()))?.and_then(&mut wanted) {
                return Ok(found);
            }
            if Instant::now() >= deadline {
                return Err(self.silent_for(lacking, limit));
            }
        }
    }

    /// What it says next, if anything within that time.
    pub fn next(&mut self, within: Duration) -> Result<Option<Event>, Trouble> {
        let event = match self.child.next(within) {
            Ok(event) => event,
            Err(RecvTimeoutError::Timeout) => return Ok(None),
            Err(RecvTimeoutError::Disconnected) => {
                let (name, ending) = (self.name(), self.child.ending());
                let what = if self.is_greeted() { "is lost" } else { "did not start" };
                return Err(Trouble::Failed(format!("{name} {what}: {ending}{}", self.hint())));
            }
        };
        self.heard = Instant::now();
        let name = self.name();
        match event {
            Event::Refused(reason) => Err(Trouble::Refused(format!("{name}: {reason}"))),
            Event::Failed(reason) => Err(Trouble::Failed(format!("{name}: {reason}"))),
            Event::Wrong(wrong) => {
                Err(Trouble::Wrong(Wrong { found: format!("{} (by {name})", wrong.found), ..wrong }))
            }
            Event::Strange(said) => {
                Err(Trouble::Failed(format!("{name} sent an unexpected line: '{said}'{}", self.hint())))
            }
            event => Ok(Some(event)),
        }
    }

    /// For how long it has been silent.
    pub fn silent(&self) -> Duration {
        self.heard.elapsed()
    }

    /// Before it has said its first word the command is what may be wrong.
    fn hint(&self) -> &'static str {
        if self.is_greeted() {
            ""
        } else {
            "\nhint: the command of --launch must start `kvfair agent` there, of this version, and connect its standard \
             input and output"
        }
    }

    fn is_greeted(&self) -> bool {
        !self.hello.kvfair.is_empty()
    }

    pub fn kill(&mut self) {
        self.child.kill();
    }
}
