//! The one protocol between kvfair and its child processes, as plain data: a task goes down as a line of JSON on
//! standard input, events come up as a line of JSON each on standard output. `child` carries both.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::gates::queue::Waits;
use super::guest::MemoryQuery;
use super::oracle::{OracleTask, Summary};
use super::program::Program;
use crate::jobs::Part;
use crate::model::agents::{Agent, AgentCommand, AgentShare};
use crate::model::check::ProbeEnd;
use crate::model::crash::failover::ClientWrites;
use crate::model::crash::ledger::FoundValue;
use crate::model::load::At;
use crate::model::op::Wrong;
use crate::model::record::{Peak, Phase, Stream, Verdict};
use crate::model::room::Headroom;
use crate::model::trial::{Cache, JobSettings, Verify};
use crate::stores::{Facts, Launch, Place};

/// What a child is to do. Secrets travel here and nowhere else.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Task {
    Trial(Box<TrialTask>),
    ExpectedState(OracleTask),
    Probe(ProbeTask),
    Ledger(LedgerTask),
    Failover(FailoverTask),
    Proxy(ProxyTask),
}

impl Task {
    /// As a list of processes shows it.
    pub fn name(&self) -> &'static str {
        match self {
            Task::Trial(_) => "trial",
            Task::ExpectedState(_) => "expected-state",
            Task::Probe(_) => "probe",
            Task::Ledger(_) => "ledger",
            Task::Failover(_) => "failover",
            Task::Proxy(_) => "proxy",
        }
    }

    /// Where the child reaches servers, and by how many clients at most. Programs of the user's are none of it.
    pub fn asks_servers(&self) -> Option<&Launch> {
        let launch = match self {
            Task::Trial(trial) if trial.program.is_none() => &trial.launch,
            Task::Probe(task) => &task.launch,
            Task::Ledger(task) => &task.launch,
            _ => return None,
        };
        matches!(launch.place, Place::Tcp { .. } | Place::Unix(_)).then_some(launch)
    }

    /// Whether the child runs what the user has typed.
    pub fn runs_users_program(&self) -> bool {
        let program = if let Task::Trial(trial) = self { trial.program.as_ref() } else { None };
        program.is_some_and(|program| program.batch.is_none())
    }

    /// Whether the child ends itself, and all that it has started, when its standard input is closed.
    pub fn is_supervisor(&self) -> bool {
        matches!(self, Task::Trial(trial) if trial.program.is_some())
    }
}

/// One trial of one target.
#[derive(Clone, Serialize, Deserialize)]
pub struct TrialTask {
    pub store: String,
    pub launch: Launch,
    /// Where the server is reached through the proxy that stands for the network: what is measured goes there. Looking
    /// before and reading back do not.
    pub through: Option<Place>,
    /// How long a part may take, where the others go on without it.
    pub limit_s: Option<f64>,
    /// What the most clients do is done once more with twice the threads.
    pub doubles: bool,
    /// The processors that it may run on are its own.
    pub pinned: bool,
    /// Its points, one after another.
    pub points: Vec<At>,
    pub job: JobSettings,
    /// Where the job's data lies.
    pub input: PathBuf,
    /// What is in it.
    pub stream: Stream,
    /// Where the expected state lies, and how much of it to compare.
    pub expected: PathBuf,
    /// Where the keys are noted that are drawn to be read, for the trials that follow.
    pub drawn: PathBuf,
    pub verify: Verify,
    /// No time to live of a recording is left out.
    pub is_strict: bool,
    /// A store by URL: it must be empty, and what we wrote is taken away again.
    pub guest: bool,
    /// And there must be room in it.
    pub room: MemoryQuery,
    /// Nothing else is to be done: the trial itself was cut off.
    pub only_take_back: bool,
    /// What of it is this child's.
    pub step: TrialStep,
    pub cache: Option<Cache>,
    /// What is run instead of a job.
    pub program: Option<Program>,
    /// Who drives the clients of what is measured instead of this process; nobody where it does so itself.
    pub agents: Vec<AgentCommand>,
    /// Whether agents that start too far apart make the trial one that does not count: not in a pilot.
    pub judges_start: bool,
}

/// What an agent is told, a line of JSON each. It answers `Clock` by `Event::Clock`; `Drive` by `Event::Begins` once
/// its clients are connected; `Begin` by `Event::Progress` now and then and `Event::ShareEnded` at the end. When its
/// standard input is closed it ends.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AgentOrder {
    Clock,
    /// Once, before everything that follows.
    Work(Box<AgentTask>),
    /// The clients of its share of this part of that point are to be connected.
    Drive {
        part: Part,
        at: At,
    },
    /// They are to begin at this moment of the agent's own clock, in nanoseconds.
    Begin(u64),
}

/// All that an agent needs to know of a trial. Its files are those of the head's machine.
#[derive(Serialize, Deserialize)]
pub struct AgentTask {
    pub trial: TrialTask,
    pub share: AgentShare,
    /// How many agents share the processors of its machine.
    pub beside: u32,
    /// The head looks at its own machine; what goes on at another one only an agent there can tell.
    pub is_elsewhere: bool,
    /// The processes of all agents of its machine, where it is to look at that for all of them.
    pub watches: Option<Vec<u32>>,
}

/// What an agent says first, in every version in this form: of another one no more can be read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Hello {
    pub kvfair: String,
    pub method: u32,
    pub debug_build: bool,
    /// The machine, until it is started anew.
    pub boot: String,
    /// Processes of one machine that do not see each other have different ones.
    pub process_namespace: String,
    pub process: u32,
    pub processors: u32,
    /// The rank that its command line named.
    pub rank: Option<u32>,
}

/// What was seen of a part of a point, by one process or by all agents together.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct PartSeen {
    pub phase: Phase,
    /// The limit came first.
    pub cut_off: bool,
    /// How many questions each client has drawn, by its number among all clients.
    pub asked: Vec<(u32, u64)>,
    /// Of threads that ended with the part.
    pub waits: Waits,
}

/// What an agent saw of its share of a part.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct ShareEnd {
    /// Of its clients alone, with its own CPU.
    pub seen: PartSeen,
    /// When it began, by its own clock, in nanoseconds.
    pub began_ns: u64,
}

/// What a child does of a trial, where one fills a store and another one reads it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialStep {
    Whole,
    Fill,
    Read,
    /// One of several that read at once, by its number.
    Reader(u32),
}

/// The probes of a check.
#[derive(Clone, Serialize, Deserialize)]
pub struct ProbeTask {
    pub store: String,
    /// For one client.
    pub launch: Launch,
    pub cache: Option<Cache>,
    /// A store by URL: only keys below our own name, and all of them deleted again.
    pub guest: bool,
    /// For sockets, the journal of keys, and what was asked last.
    pub directory: PathBuf,
    pub room: MemoryQuery,
    /// Nothing else is to be done: the check itself was cut off.
    pub only_take_back: bool,
}

impl ProbeTask {
    /// The store's own code runs in the child.
    pub fn holds_store(&self) -> bool {
        matches!(self.launch.place, Place::Memory | Place::Path(_))
    }
}

/// The clients of a store that is to be killed.
#[derive(Serialize, Deserialize)]
pub struct LedgerTask {
    pub store: String,
    pub launch: Launch,
    pub work: LedgerWork,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LedgerWork {
    /// Each client writes from its number on, at most so often.
    Write { first: Vec<u64>, at_most: Option<u64> },
    /// One client reads these keys of each client.
    Read { slots: Vec<Vec<u64>> },
}

/// The clients of a primary that is to be killed.
#[derive(Serialize, Deserialize)]
pub struct FailoverTask {
    pub store: String,
    /// The primary, then its replicas.
    pub servers: Vec<Launch>,
    pub clients: u32,
    /// How long a client may find no server that takes its writes.
    pub limit: Duration,
}

/// What these clients tell. Times are microseconds of the epoch.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailoverEvent {
    /// Some writes of the client were acknowledged.
    Works { client: u32 },
    /// Its connection to the primary is broken.
    Broken { client: u32, at_us: u64, why: String },
    /// Its writes are refused: told now and then as long as that lasts.
    Waits { client: u32, why: String },
    /// A write of it was acknowledged again.
    Resumed { client: u32, at_us: u64 },
    /// What each client wrote to each primary: the last that they tell.
    Wrote(Vec<ClientWrites>),
}

/// A proxy before one server, until its standard input is closed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProxyTask {
    pub server: Place,
    /// Each way.
    pub delay: Duration,
    /// Connections that there may be at once.
    pub clients: u32,
    /// Clients of this user may connect too, besides those of ours.
    pub lets_in: Option<u32>,
    /// For its socket.
    pub directory: PathBuf,
}

/// What a proxy passed on, both ways together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Passed {
    pub bytes: u64,
    /// What came at once.
    pub chunks: u64,
    /// How much later than they were due all chunks together were passed on.
    pub late_s: f64,
}

/// What a child tells its parent.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// The store is open.
    Facts(Facts),
    /// What a server that is not ours said of its memory.
    Room(Headroom),
    /// A phase is about to begin. Before it the child waits for a line.
    Begins(Part),
    /// A probe of a check is about to begin.
    Probe(String),
    /// Units finished so far in this phase.
    Progress(u64),
    /// A phase has ended, and with it these threads: the child waits for a line. Usage is the parent's to fill in.
    Ended(Box<Phase>, Waits),
    /// An embedded store is closed, its files as it leaves them: the child waits for a line.
    Closed,
    /// What a program's processes held at most.
    Peak(Peak),
    /// What was counted beside the clients.
    Counters(BTreeMap<String, u64>),
    /// The store's own counters, before what is measured and after it, or why they could not be read.
    StoreStats(Result<BTreeMap<String, [f64; 2]>, String>),
    /// How many seconds after the final flush each replica had all that the primary had.
    CaughtUp(Vec<f64>),
    /// Nothing that it wrote is left in a store that is not ours.
    TakenBack,
    /// Keys compared so far.
    Verifying(u64),
    /// And the first wrong key as it is, if there is one.
    Verdict(Verdict, Option<Vec<u8>>),
    /// A probe has ended.
    Probed(ProbeEnd),
    /// A limit of the store that a probe found.
    Limit(String),
    /// The store has answered something.
    Alive,
    /// Where a proxy takes clients.
    Listens(Place),
    /// What it wrote and could not remove from a store that is not ours.
    LeftBehind(String),
    /// A write, at that second of the epoch.
    Acknowledged {
        client: u32,
        sequence: u64,
        at_s: f64,
    },
    Found {
        client: u32,
        slot: u64,
        found: FoundValue,
    },
    /// The first word of an agent.
    Hello(Hello),
    /// An agent's own clock, in nanoseconds from a moment of its own.
    Clock(u64),
    ShareEnded(Box<ShareEnd>),
    /// Who drives the clients, with the processes of those that run on this machine.
    Agents(Vec<Agent>, Vec<u32>),
    /// They began too far apart, by so many milliseconds: the trial is refused.
    AgentsApart(f64),
    /// What was said is no event: its beginning.
    Strange(String),
    Failover(FailoverEvent),
    // One of these is the last of a child.
    /// A limit of the store, an op that it lacks, or a library that is not here.
    Refused(String),
    Failed(String),
    /// A client heard a wrong answer while it worked.
    Wrong(Wrong),
    ExpectedState(Box<Summary>),
    Passed(Passed),
    Done,
}
