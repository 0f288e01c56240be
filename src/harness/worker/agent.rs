//! The agent's own side: drives its share of the clients of a trial when it is told to. It opens no store for anything
//! else, and writes no file but its messages. It ends when the head is gone.

use std::io;
use std::path::Path;
use std::time::Duration;

use super::{Drive, Early, Stage, known, last_word, reach};
use crate::harness::agents::clocks::own_ns;
use crate::harness::agents::hello;
use crate::harness::child::{abort_on_panic, tell};
use crate::harness::gates::programs::{self, Programs};
use crate::harness::gates::queue::{self, Waits};
use crate::harness::input::DataFile;
use crate::harness::scratch::{self, Scratch};
use crate::harness::task::{AgentOrder, AgentTask, Event, PartSeen, ShareEnd, TrialTask};
use crate::harness::watch::{self, UsageReading};
use crate::harness::{files, guest, machine, message_range, oracle};
use crate::jobs::{Client, Job, JobKind, Part, Source};
use crate::model::load::At;
use crate::model::noise::Noise;
use crate::model::record::Usage;
use crate::stores::{Launch, Store};

/// A sleeper wakes up some time after it was to: the rest is waited for awake.
const AWAKE: Duration = Duration::from_micros(200);

/// The whole life of an agent, of the rank that its command line named if it did.
pub fn run(rank: Option<u32>) {
    abort_on_panic();
    tell(&Event::Hello(hello(rank)));
    if let Err(early) = serve() {
        tell(&last_word(Err(early)));
    }
}

/// The next order; none at the end. What is asked of the clock is answered at once.
fn next_order() -> Result<Option<AgentOrder>, Early> {
    loop {
        let mut line = String::new();
        let length =
            io::stdin().read_line(&mut line).map_err(|error| Early::Failed(format!("standard input: {error}")))?;
        if length == 0 {
            return Ok(None);
        }
        match serde_json::from_str(&line) {
            Ok(AgentOrder::Clock) => tell(&Event::Clock(own_ns())),
            Ok(order) => return Ok(Some(order)),
            Err(error) => return Err(Early::Failed(format!("standard input has a line that is no order: {error}"))),
        }
    }
}

fn serve() -> Result<(), Early> {
    match next_order()? {
        None => Ok(()),
        Some(AgentOrder::Work(task)) => work(&task),
        Some(_) => Err(out_of_turn()),
    }
}

fn out_of_turn() -> Early {
    Early::Failed("an order came out of turn".to_string())
}

fn work(task: &AgentTask) -> Result<(), Early> {
    let (adapter, kind) = known(&task.trial)?;
    let own = with_own_messages(kind, task)?;
    let trial = own.as_ref().map_or(&task.trial, |own| &own.trial);
    let job = (kind.open)(&trial.job);
    let source = DataFile::new(&trial.input, &trial.job.data).with_expected(oracle::answers_beside(&trial.expected));
    let own = task.share.of(trial.launch.clients.into());
    let clients = (own.end - own.start).max(1) as u32;
    files::allow(clients).map_err(Early::Refused)?;
    let launch = Launch { clients, ..trial.launch.clone() };
    let store = (adapter.open)(&launch).map_err(|fault| reach(&launch.place, &fault))?;
    let stage = Stage { beside: task.beside, ..Stage::new(trial, adapter, job.as_ref(), &source) };
    while let Some(order) = next_order()? {
        let AgentOrder::Drive { part, at } = order else { return Err(out_of_turn()) };
        let end = drive(&stage, task, store.as_ref(), part, at)?;
        tell(&Event::ShareEnded(Box::new(end)));
    }
    Ok(())
}

/// A task that reads the messages of one agent.
struct OwnMessages {
    trial: TrialTask,
    /// Holds their file where the files of the run are on another machine.
    _scratch: Option<Scratch>,
}

/// Writes the messages of this agent to a file. None for a job that reads no messages.
fn with_own_messages(kind: &JobKind, task: &AgentTask) -> Result<Option<OwnMessages>, Early> {
    if task.trial.job.load.is_some() {
        return Ok(None);
    }
    let told = |error: anyhow::Error| Early::Failed(format!("{error:#}"));
    let TrialTask { job, input, stream, expected, .. } = &task.trial;
    // Another machine has no such directory.
    let beside = expected.parent().filter(|directory| directory.is_dir());
    let scratch = if beside.is_none() { Some(scratch::make().map_err(told)?) } else { None };
    let directory = beside.or(scratch.as_ref().map(Scratch::path)).unwrap_or(Path::new("."));
    let out = directory.join(format!("messages-{}.txt", task.share.rank));
    let job = message_range::write(kind, job, input, stream, task.share, &out).map_err(told)?;
    Ok(Some(OwnMessages { trial: TrialTask { job, input: out, ..task.trial.clone() }, _scratch: scratch }))
}

/// Its share of a part: the same clients with the same questions and due times as in one process.
fn drive(stage: &Stage<'_>, task: &AgentTask, store: &dyn Store, part: Part, at: At) -> Result<ShareEnd, Early> {
    let own = task.share.of(at.clients.into());
    if own.is_empty() {
        return Err(Early::Failed(format!("{} clients are too few for {} agents", at.clients, task.share.world)));
    }
    let first = own.start as u32;
    let share = ShareOf { job: stage.job, first, all: at };
    // The messages are split over agents already: the clients of this agent share its own.
    let job: &dyn Job = if stage.trial.job.load.is_none() { stage.job } else { &share };
    let pace = stage.pace(part, at).map(|pace| pace.of_clients(&own, at.clients.into()));
    let own_at = At { clients: (own.end - own.start) as u32, ..at };
    let drive = Drive { job, part, at: own_at, pace, doubled: false, always_beats: true };
    // Looking at all programs takes a while: before anybody waits for this agent.
    let programs = task.watches.as_ref().and_then(|others| programs::look(others, None));
    let (mut began_ns, mut before) = (0, Before::default());
    let mut seen = stage.load(store, drive, || {
        tell(&Event::Begins(part));
        let begin_ns = told_to_begin();
        before = Before::now(programs);
        wait_until(begin_ns);
        began_ns = own_ns();
    })?;
    seen.asked.iter_mut().for_each(|(client, _)| *client += first);
    before.note(task, &mut seen, (own_ns() - began_ns) as f64 / 1e9);
    Ok(ShareEnd { seen, began_ns })
}

/// Waits for the moment at which all begin. Nobody hears of it where the head is gone.
fn told_to_begin() -> u64 {
    match next_order() {
        Ok(Some(AgentOrder::Begin(begin_ns))) => begin_ns,
        _ => std::process::exit(1),
    }
}

fn wait_until(moment_ns: u64) {
    loop {
        let left = Duration::from_nanos(moment_ns.saturating_sub(own_ns()));
        match left.checked_sub(AWAKE) {
            _ if left.is_zero() => return,
            Some(long) => std::thread::sleep(long),
            None => std::hint::spin_loop(),
        }
    }
}

/// What was so when its clients began.
#[derive(Default)]
struct Before {
    used: UsageReading,
    waits: Option<Waits>,
    programs: Option<Programs>,
}

impl Before {
    fn now(programs: Option<Programs>) -> Before {
        let own = std::process::id();
        Before { used: watch::reading(own), waits: queue::waits(&[own]), programs }
    }

    /// Notes what was used up since, and what else went on where only this agent can see it.
    fn note(self, task: &AgentTask, seen: &mut PartSeen, wall_s: f64) {
        let own = std::process::id();
        let used = watch::reading(own).since(&self.used);
        let after = queue::waits(&[own]).map(|alive| alive.into_iter().chain(seen.waits.clone()).collect());
        let waited = self.waits.zip(after).map(|(before, after)| queue::between(&before, &after, wall_s));
        seen.phase.client = Usage { run_delay_s: waited.map(|waited| waited.delay_s), ..used };
        if !task.is_elsewhere {
            return;
        }
        let cpus = machine::processors() as u32;
        // Of a server on this machine nothing could be told apart from others.
        let beside_guest = guest::is_here(&task.trial.launch.place);
        let looked = self
            .programs
            .zip(task.watches.as_ref())
            .and_then(|(before, others)| Some(programs::look(others, Some(&before))?.since(&before, beside_guest)));
        let noise = looked.unwrap_or(Noise { seen_s: wall_s, cpus, ..Noise::default() });
        // Where there are more busy threads than processors they wait for each other.
        let judged = waited.filter(|waited| waited.busy * task.beside <= cpus);
        let client_delay_share = judged.map(|waited| waited.worst_s / wall_s.max(1e-9));
        seen.phase.noise = Some(Noise { client_delay_share, ..noise });
    }
}

/// Some clients of a job, each with the number that it has among all.
struct ShareOf<'a> {
    job: &'a dyn Job,
    first: u32,
    all: At,
}

impl Job for ShareOf<'_> {
    fn parts(&self) -> &'static [Part] {
        self.job.parts()
    }

    fn inserts(&self) -> bool {
        self.job.inserts()
    }

    fn fills(&self) -> bool {
        self.job.fills()
    }

    fn may_miss(&self) -> bool {
        self.job.may_miss()
    }

    fn client(&self, part: Part, index: u32, _: At, source: &dyn Source) -> io::Result<Box<dyn Client>> {
        self.job.client(part, self.first + index, self.all, source)
    }
}
