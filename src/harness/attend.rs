//! Who attends a running trial: takes down what the child says, looks at the processes from outside, watches the clock.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::Result;

use super::child::Child;
use super::dataset::DataSet;
use super::energy::Energy;
use super::gates::queue::Waits;
use super::gates::window::{PhaseNoise, Window};
use super::guest::EvictionWatch;
use super::listeners;
use super::oracle;
use super::plan::Chosen;
use super::replicas::{Replica, Servers};
use super::signals::INTERRUPTED;
use super::task::Event;
use super::trial::{Bench, Live};
use super::visits::{Visit, VisitEntry};
use super::watch::{self, Peaks, Series, UsageReading};
use crate::jobs::Part;
use crate::model::agents::Agent;
use crate::model::noise::Noise;
use crate::model::op::readable;
use crate::model::record::{LOOKED_AT, Outcome, Phase, Record, ReplicaFacts, StoreFacts, UNREAD, Usage, Verdict};
use crate::model::room::Headroom;
use crate::stores::{Facts, Launch, Place};

/// The most bytes of why counters could not be read: they may be a stranger's words.
const LONGEST_REASON: usize = 300;

/// What ends itself at its time-out is given so long until what is under way then is answered.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// What client, server and proxy had used up.
#[derive(Default)]
struct Readings {
    client: UsageReading,
    server: UsageReading,
    proxy: UsageReading,
    machine: Energy,
}

/// A replica of the server, as it is seen from outside.
struct Follower {
    id: u32,
    data: PathBuf,
    before: UsageReading,
    peaks: Peaks,
}

impl Follower {
    fn of(replica: &Replica) -> Follower {
        let (id, data) = (replica.served.id(), replica.data.clone());
        Follower { id, data, before: UsageReading::default(), peaks: Peaks::default() }
    }
}

/// Who listens to one child and looks at its processes.
pub struct Attendant<'a> {
    child: u32,
    /// The store's servers: ours, or a foreign one on this machine that we may look at. None where there are none, or
    /// where not all of them can be looked at.
    servers: Vec<u32>,
    /// Between the two, where it stands for a network.
    proxy: Option<u32>,
    replicas: Vec<Follower>,
    record: &'a mut Record,
    /// Of a server that was started here, and the sha256 of its program.
    command: (Vec<String>, Option<String>),
    /// Where the store's files are, if they are ours to see.
    files: Option<&'a Path>,
    beside_guest: bool,
    bench: &'a Bench<'a>,
    began: Instant,
    before: Readings,
    nodes_before: Vec<UsageReading>,
    window: Window,
    client_peaks: Peaks,
    server_peaks: Peaks,
    /// Of the phase that goes on.
    series: Option<Series>,
    units: u64,
    /// The one that began last.
    phase: Option<Part>,
    /// What is to be written down before the first key of a store that is not ours is written.
    visit: Option<Visit>,
    /// That it was: struck out once all is taken back.
    entry: Option<VisitEntry>,
    /// What is under trial and how it is reached.
    target: (&'a Chosen, &'a Launch),
    /// Of a server that is not ours and may drop records.
    evictions: Option<EvictionWatch>,
}

impl<'a> Attendant<'a> {
    pub fn new(
        child: u32,
        (servers, proxy): (Option<&Servers>, Option<u32>),
        record: &'a mut Record,
        command: (Vec<String>, Option<String>),
        files: Option<&'a Path>,
        bench: &'a Bench<'a>,
        target: (&'a Chosen, &'a Launch),
    ) -> Self {
        let chosen = target.0;
        let replicas = servers.map_or(&[][..], |servers| servers.replicas.as_slice());
        let servers = servers.map_or_else(Vec::new, |servers| servers.primary.ids());
        let told = |replica: &Replica| {
            let (name, command) = (replica.name.clone(), replica.served.command.clone());
            ReplicaFacts { name, command, ..ReplicaFacts::default() }
        };
        record.replicas = replicas.iter().map(told).collect();
        let (place, database) = (chosen.place.clone(), chosen.login.database.clone());
        let visit = Visit::of_record(record).map(|visit| Visit { place, database, ..visit });
        // Of a server that kvfair did not start nothing is known, and our own process is not the store.
        let beside_guest = servers.is_empty() && files.is_none();
        Attendant {
            window: Window::around(child, servers.clone(), proxy, record, beside_guest),
            beside_guest,
            child,
            servers,
            proxy,
            replicas: replicas.iter().map(Follower::of).collect(),
            record,
            command,
            files,
            bench,
            began: Instant::now(),
            before: Default::default(),
            nodes_before: Vec::new(),
            client_peaks: Peaks::default(),
            server_peaks: Peaks::default(),
            series: None,
            units: 0,
            phase: None,
            visit,
            entry: None,
            target,
            evictions: None,
        }
    }

    /// What was written down and is not taken back yet.
    pub fn entry(&mut self) -> Option<VisitEntry> {
        self.entry.take()
    }

    /// Whether the child may have written something.
    pub fn has_begun(&self) -> bool {
        self.phase.is_some()
    }

    /// The child is none of what is measured.
    fn keeps_program(&self) -> bool {
        self.bench.plan.kind.is_none() || self.record.target.batch
    }

    /// Waits for the child to say something, and notes where that took far longer than it was to.
    pub fn wait(&mut self, child: &Child, most: Duration) -> Result<Event, RecvTimeoutError> {
        let asleep = Instant::now();
        let told = child.next(most);
        self.window.overslept(asleep.elapsed().saturating_sub(most));
        told
    }

    /// The clock of the time-out starts with the first phase, and with each point of a sweep. What comes after the
    /// final flush counts against no limit, as long as it moves.
    pub fn is_limited_anew(&self, told: &Event) -> bool {
        match told {
            Event::Counters(_) | Event::Closed | Event::Verifying(_) | Event::Verdict(..) => true,
            Event::Begins(_) => matches!(self.phase, None | Some(Part::Load)) || self.record.job.load.is_some(),
            _ => false,
        }
    }

    pub fn deadline(&mut self, told: &Event, deadline: Instant) -> Instant {
        match told {
            Event::Begins(_) => {
                self.began = Instant::now();
                let plan = self.bench.plan;
                let last_answers = plan.limit().map_or(Duration::ZERO, |_| LAST_ANSWERS);
                self.began + plan.at_most(plan.timeout) + last_answers
            }
            _ => deadline.max(Instant::now() + self.bench.plan.at_most(self.bench.plan.timeout)),
        }
    }

    /// Takes down what the child says. Some(end) where it was the last word.
    pub fn hear(&mut self, told: Event, watch: &mut dyn FnMut(Live)) -> Option<Result<(), Outcome>> {
        // Where it waits for us, and at its end, nothing is measured.
        let may_ask = !matches!(told, Event::Facts(_) | Event::Progress(_) | Event::Verifying(_));
        if let Some(why) = self.evictions.as_ref().filter(|_| may_ask).and_then(EvictionWatch::look_now) {
            self.bench.interrupt.stop(why);
        }
        let is_wrong = matches!(told, Event::Wrong(_));
        let end = self.take_down(told, watch)?;
        // Records that were driven out are missing: no answer is wrong for that.
        let stopped = is_wrong && self.bench.interrupt.is_set();
        Some(if stopped { Err(Outcome::Failed { reason: INTERRUPTED.to_string() }) } else { end })
    }

    fn take_down(&mut self, told: Event, watch: &mut dyn FnMut(Live)) -> Option<Result<(), Outcome>> {
        match told {
            Event::Facts(facts) => self.note_store(facts),
            Event::Room(room) => self.watch_evictions(room),
            Event::Agents(agents, processes) => self.note_agents(agents, processes),
            Event::Begins(phase) => {
                if let Err(error) = self.write_down() {
                    return Some(Err(Outcome::Failed { reason: format!("{error:#}") }));
                }
                // Once, so that looks during phases know what they see twice.
                if self.phase.is_none() {
                    self.count_memory();
                }
                watch(live(Some(phase), self.units));
                self.window.begins(phase, self.bench.programs.borrow().as_ref());
                self.phase = Some(phase);
                self.before = self.readings();
                self.replicas.iter_mut().for_each(|replica| replica.before = watch::reading(replica.id));
                self.nodes_before = self.nodes();
                let of_store = if self.has_server() { self.before.server } else { self.before.client };
                self.series = (self.has_server() || !self.beside_guest).then(|| Series::begin(of_store));
            }
            Event::Progress(units) => {
                self.units = units;
                watch(live(self.phase, units));
            }
            Event::Ended(phase, left) => self.ended(*phase, left),
            // What a store writes only when it is closed takes up room all the same.
            Event::Closed => self.record.bytes_on_disk = self.bytes_on_disk(),
            Event::Peak(peak) => self.client_peaks = Peaks::of(peak),
            Event::Counters(counters) => self.record.counters.extend(counters),
            Event::StoreStats(Ok(stats)) => self.record.store_stats = stats.into(),
            Event::StoreStats(Err(why)) => {
                if let Some(store) = &mut self.record.store {
                    store.settings.insert(UNREAD.to_string(), readable(why.as_bytes(), LONGEST_REASON));
                }
            }
            Event::CaughtUp(times_s) => self.caught_up(&times_s),
            Event::AgentsApart(apart_ms) => self.record.agents_apart_ms.push(apart_ms),
            Event::TakenBack => self.entry().into_iter().for_each(VisitEntry::strike),
            Event::Verifying(keys) => watch(Live::Verifying(keys)),
            Event::Verdict(verdict, wrong_key) => self.record.verdict = self.explained(verdict, wrong_key),
            Event::Refused(reason) => return Some(Err(Outcome::Refused { reason })),
            Event::Failed(reason) => return Some(Err(Outcome::Failed { reason })),
            Event::Wrong(first) => {
                let reason = format!("wrong answer for \"{}\"", first.key);
                let checked = oracle::nothing_checked(self.bench.plan.verify);
                self.record.verdict = Verdict::Wrong { first, wrong_keys: 1, checked };
                return Some(Err(Outcome::Failed { reason }));
            }
            Event::Done => return Some(Ok(())),
            told => return Some(Err(Outcome::Failed { reason: format!("the trial's process said {told:?}") })),
        }
        None
    }

    /// What the store is, and which processes are its own.
    fn note_store(&mut self, mut facts: Facts) {
        if self.servers.is_empty() && self.record.target.is_guest() {
            self.servers = neighbours(&self.target.1.place, &facts);
            self.server_peaks = Peaks::of_guest();
            let name = self.servers.first().copied().and_then(watch::name_of);
            let name = name.map(|name| readable(name.as_bytes(), LONGEST_REASON));
            facts.settings.extend(name.map(|name| (LOOKED_AT.to_string(), name)));
        }
        if let Some(product) = facts.product {
            let target = &mut self.record.target;
            target.label = target.label.replacen(&target.store, &product, 1);
            target.store = product;
        }
        let (command, program_sha256) = std::mem::take(&mut self.command);
        let Facts { version, client_library, increment, settings, .. } = facts;
        let seen = StoreFacts { version, client_library, increment, settings, command, program_sha256 };
        self.record.store = Some(seen);
    }

    /// Who drives the clients; of these the processes on this machine.
    fn note_agents(&mut self, agents: Vec<Agent>, processes: Vec<u32>) {
        self.record.agents = agents;
        self.window.also_ours(processes);
    }

    fn caught_up(&mut self, times_s: &[f64]) {
        let replicas = self.record.replicas.iter_mut().zip(times_s);
        replicas.for_each(|(replica, time_s)| replica.caught_up_s = Some(*time_s));
    }

    fn watch_evictions(&mut self, room: Headroom) {
        let (chosen, launch) = self.target;
        if chosen.first_used.get().is_none() {
            chosen.first_used.set(room.used_bytes);
        }
        let begin = |before| EvictionWatch::begin(chosen.adapter, launch, &chosen.target.label, before);
        self.evictions = room.evicted.map(begin);
        self.record.room = Some(room);
    }

    fn ended(&mut self, mut phase: Phase, left: Waits) {
        let now = self.readings();
        let PhaseNoise { client_s, server_s, noise } = self.window.ended(phase.part, left);
        match noise {
            // One verdict is about both: the disturbed one speaks for the trial.
            Some(noise) if phase.part == Part::Ask => self.record.noise = self.record.noise.or_worse(noise),
            // What agents saw of their own machines.
            noise => phase.noise = noise.map(|noise| noise.or_worse(phase.noise.unwrap_or(noise))),
        }
        if phase.agents.is_empty() {
            // A program's processes are counted by who waits for them.
            let client = if self.keeps_program() { phase.client } else { now.client.since(&self.before.client) };
            phase.client = Usage { run_delay_s: client_s, ..client };
        }
        let server = Usage { run_delay_s: server_s, ..now.server.since(&self.before.server) };
        phase.server = self.has_server().then_some(server);
        phase.nodes = self.nodes().iter().zip(&self.nodes_before).map(|(now, before)| now.since(before)).collect();
        let used = |replica: &Follower| watch::reading(replica.id).since(&replica.before);
        phase.replicas = self.replicas.iter().map(used).collect();
        phase.machine_joules = now.machine.joules_since(&self.before.machine);
        phase.proxy = self.proxy.map(|_| now.proxy.since(&self.before.proxy));
        self.look();
        self.count_memory();
        phase.store_by_second = self.series.take().map_or_else(Vec::new, Series::end);
        if phase.part == Part::FinalFlush {
            self.record.memory.client = self.client_peaks.peak;
            self.record.memory.server = self.has_server().then_some(self.server_peaks.peak);
            self.record.bytes_on_disk = self.bytes_on_disk();
            for (facts, replica) in self.record.replicas.iter_mut().zip(&self.replicas) {
                facts.memory = replica.peaks.peak;
                facts.bytes_on_disk = Some(allocated(&replica.data));
            }
            let Noise { processor_probe_ns, disk_sync_ns, .. } = self.record.noise;
            let (noise, programs) = self.window.close();
            let of_agents = self.record.phases.iter().flat_map(|phase| &phase.agents).filter_map(|agent| agent.noise);
            let noise = of_agents.fold(noise, Noise::or_worse);
            self.record.noise = Noise { processor_probe_ns, disk_sync_ns, ..noise };
            *self.bench.programs.borrow_mut() = programs;
        }
        self.record.phases.push(phase);
    }

    /// Before the child is let go on, so that nothing is written before it.
    fn write_down(&mut self) -> Result<()> {
        let (Some(path), Some(visit)) = (&self.bench.plan.visits, self.visit.take()) else { return Ok(()) };
        self.entry = Some(VisitEntry::write(path, &visit)?);
        Ok(())
    }

    fn has_server(&self) -> bool {
        !self.servers.is_empty()
    }

    /// What each of several servers has used up; nothing of one alone.
    fn nodes(&self) -> Vec<UsageReading> {
        let nodes = if self.servers.len() > 1 { self.servers.as_slice() } else { &[] };
        nodes.iter().copied().map(watch::reading).collect()
    }

    fn data(&self) -> &DataSet {
        self.bench.data_for(self.target.0, self.record.block)
    }

    fn readings(&self) -> Readings {
        let server = watch::reading_of_all(&self.servers);
        let proxy = self.proxy.map(watch::reading).unwrap_or_default();
        Readings { client: watch::reading(self.child), server, proxy, machine: Energy::of_machine() }
    }

    /// Between phases, up to the end of the final flush.
    fn count_memory(&mut self) {
        if self.record.phase(Part::FinalFlush).is_none() {
            if !self.keeps_program() {
                self.client_peaks.count(&[self.child]);
            }
            if self.has_server() {
                self.server_peaks.count(&self.servers);
            }
            self.replicas.iter_mut().for_each(|replica| replica.peaks.count(&[replica.id]));
        }
    }

    pub fn look(&mut self) {
        if let Some(why) = self.evictions.as_ref().and_then(EvictionWatch::look) {
            self.bench.interrupt.stop(why);
        }
        if let Some(series) = &mut self.series {
            series.look(if self.servers.is_empty() { std::slice::from_ref(&self.child) } else { &self.servers });
        }
        // Memory counts up to the end of the final flush: reading back is ours, not the store's.
        if self.record.phase(Part::FinalFlush).is_none() {
            if !self.keeps_program() {
                self.client_peaks.look(&[self.child]);
            }
            if self.has_server() {
                self.server_peaks.look(&self.servers);
            }
            self.replicas.iter_mut().for_each(|replica| replica.peaks.look(&[replica.id]));
        }
    }

    fn bytes_on_disk(&self) -> Option<u64> {
        self.files.map(allocated)
    }

    /// Fills in what a wrong key should have held, and the answer where everything was right.
    fn explained(&self, verdict: Verdict, wrong_key: Option<Vec<u8>>) -> Verdict {
        match verdict {
            Verdict::Right(mut checked) => {
                checked.answer = self.data().summary.answer.clone();
                Verdict::Right(checked)
            }
            Verdict::Wrong { mut first, wrong_keys, checked } => {
                if let Some(key) = wrong_key {
                    let Bench { plan, scratch, interrupt, .. } = self.bench;
                    let explained = self.data().ask_oracle(plan.verify, Some(key), scratch, interrupt);
                    first.expected =
                        explained.map_or_else(|error| error.to_string(), |summary| oracle::expected(&summary));
                }
                Verdict::Wrong { first, wrong_keys, checked }
            }
            other => other,
        }
    }

    pub fn out_of_time(&self) -> Outcome {
        let plan = self.bench.plan;
        let worked = self.phase == Some(Part::FinalFlush);
        if plan.is_over() && self.phase.is_none() {
            return Outcome::left_out("it was not open when the time of the run was over");
        }
        if !plan.is_over() && self.phase == Some(Part::Ask) && self.record.asked().is_none() {
            return Outcome::Failed { reason: "did not answer all queries within the time-out".to_string() };
        }
        if !plan.is_over() && self.record.phase(Part::FinalFlush).is_some() {
            return Outcome::Failed { reason: "stopped answering while its answers were read back".to_string() };
        }
        if self.phase.is_none() {
            return Outcome::Failed { reason: "did not open within the time-out".to_string() };
        }
        let all = plan.units_of_a_trial(self.data().summary.stream.measured_units()).max(1) as f64;
        let done_share = if worked { 1.0 } else { self.units as f64 / all };
        // To a tenth of a second: it stands in the table.
        let tenths = |time: Duration| (time.as_secs_f64() * 10.0).round() / 10.0;
        let after_s = if plan.is_over() { tenths(self.began.elapsed()) } else { plan.timeout.as_secs_f64() };
        Outcome::TimedOut { after_s, done_share }
    }
}

/// The processes of a store that is not ours: of several servers all of them, or none.
fn neighbours(place: &Place, facts: &Facts) -> Vec<u32> {
    let alone = [(place.clone(), facts.process_id)];
    let servers = if facts.servers.is_empty() { &alone[..] } else { &facts.servers };
    let found: Option<Vec<u32>> = servers.iter().map(|(place, told)| listeners::neighbour(place, *told)).collect();
    found.unwrap_or_default()
}

/// How far it is in that phase, after so many units.
fn live(phase: Option<Part>, units: u64) -> Live {
    match phase {
        Some(Part::FinalFlush) => Live::FinalFlush,
        Some(Part::Ask) => Live::Asking,
        _ => Live::Working(units),
    }
}

/// Bytes allocated on disk for a file or for all files below a directory: what they use up, holes left out.
fn allocated(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(meta) = fs::symlink_metadata(path) else { return 0 };
    // stat(2): st_blocks counts units of 512 bytes, whatever the filesystem's own.
    let own = if meta.is_file() { meta.blocks() * 512 } else { 0 };
    let entries = if meta.is_dir() { fs::read_dir(path).ok() } else { None };
    own + entries.into_iter().flatten().flatten().map(|entry| allocated(&entry.path())).sum::<u64>()
}
