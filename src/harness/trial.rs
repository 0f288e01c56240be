//! The parent's side of a trial: a place for it, the server, the child, what is seen from outside, and the record.

mod blank;
mod together;

use std::cell::RefCell;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use super::attend::Attendant;
use super::child::Child;
use super::dataset::DataSet;
use super::gates::processor_probe::{self, ProcessorProbe};
use super::gates::programs::Programs;
use super::network::Proxy;
use super::password;
use super::plan::{Chosen, Plan};
use super::replicas::{Servers, Start};
use super::serve::{self, Site, Unserved};
use super::signals::Interrupt;
use super::task::{Event, Task, TrialStep, TrialTask};
use super::visits::VisitEntry;
use super::{agents, counts, digest, guest, kept_data, machine, pin, signals};
use crate::model::logins;
use crate::model::names::file_name;
use crate::model::noise::Noise;
use crate::model::preflight::Preflight;
use crate::model::record::{Outcome, Record};
use crate::model::trial::{Durability, JobSettings};
use crate::stores::{Launch, Login, Place};

/// How often memory is looked at, and how soon a Ctrl-C is seen.
const LOOK: Duration = Duration::from_millis(20);
/// The longest that a server may take to answer for the first time.
const START: Duration = Duration::from_secs(60);
/// How long after a failure a server's own end is waited for.
const ENDING: Duration = Duration::from_millis(200);
/// How long a server that kvfair did not start may be silent while what a trial wrote is deleted again: Ctrl-C waits
/// for it.
const PATIENCE_AFTERWARDS: Duration = Duration::from_secs(5);
/// Opening and closing must not use up a trial's time: so much is added before a silent child counts as stuck.
const SLACK: Duration = Duration::from_secs(5);

/// What all trials of a run share: the data, the expected state, and a place for their files.
pub struct Bench<'a> {
    pub plan: &'a Plan,
    pub scratch: &'a Path,
    /// The job's data with the expected state about it, for each seed: one at least.
    data: Rc<[DataSet]>,
    /// The same for the numbers of clients that some targets have of their own.
    by_clients: Vec<(u32, Rc<[DataSet]>)>,
    pub interrupt: &'a Interrupt,
    /// What was seen of the machine before the run, for whoever looked.
    pub preflight: Option<Preflight>,
    /// How fast the processor was before each trial.
    pub processor_probe: ProcessorProbe,
    /// How programs were seen last.
    pub programs: RefCell<Option<Programs>>,
}

/// How far a running trial is, for whoever watches.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Live {
    Starting,
    /// Units done of the job's.
    Working(u64),
    FinalFlush,
    /// What was built is asked for.
    Asking,
    /// Keys compared of the expected state.
    Verifying(u64),
}

/// A run that was told to stop. What is finished is kept.
#[derive(Debug)]
pub struct Interrupted {
    /// What could not be cleaned up.
    pub left_behind: Option<String>,
}

impl<'a> Bench<'a> {
    /// Prepares the data of each seed and computes the expected state about it.
    pub fn set_up(plan: &'a Plan, scratch: &'a Path, interrupt: &'a Interrupt) -> Result<Bench<'a>> {
        let mut bench = Bench::with(plan, Bench::data_of(plan, scratch, interrupt)?, scratch, interrupt);
        let mut own: Vec<u32> = plan.chosen.iter().filter_map(|chosen| chosen.asking.clients).collect();
        own.sort_unstable();
        own.dedup();
        for clients in own {
            bench.by_clients.push((clients, Bench::data_of(&plan.with_clients(clients), scratch, interrupt)?));
        }
        Ok(bench)
    }

    /// The same data for another plan, which differs in nothing that they depend on.
    pub fn with_plan(&self, plan: &'a Plan) -> Bench<'a> {
        let bench = Bench::with(plan, self.data.clone(), self.scratch, self.interrupt);
        Bench { by_clients: self.by_clients.clone(), ..bench }
    }

    /// The data of each seed, and the expected state about it: one at least.
    pub fn data_of(plan: &Plan, scratch: &Path, interrupt: &Interrupt) -> Result<Rc<[DataSet]>> {
        plan.jobs().into_iter().map(|job| DataSet::prepare(plan, job, scratch, interrupt)).collect()
    }

    /// The same where the data is there already.
    pub fn with(plan: &'a Plan, data: Rc<[DataSet]>, scratch: &'a Path, interrupt: &'a Interrupt) -> Bench<'a> {
        let (processor_probe, programs) = (ProcessorProbe::default(), RefCell::default());
        Bench { plan, scratch, data, by_clients: Vec::new(), interrupt, preflight: None, processor_probe, programs }
    }

    /// The data of a block: that of each seed in turn.
    pub fn data(&self, block: u32) -> &DataSet {
        &self.data[block as usize % self.data.len()]
    }

    /// The same as the clients of this target have it.
    pub fn data_for(&self, chosen: &Chosen, block: u32) -> &DataSet {
        let own = self.by_clients.iter().find(|(clients, _)| Some(*clients) == chosen.asking.clients);
        own.map_or(self.data(block), |(_, data)| &data[block as usize % data.len()])
    }

    /// The job of a block as the clients of this target do it.
    fn job_for(&self, chosen: &Chosen, block: u32) -> JobSettings {
        let mut job = JobSettings { via: chosen.via, ..self.data_for(chosen, block).job.clone() };
        job.fans.encoding = chosen.encoding;
        if let (Some(load), Some(depth)) = (&mut job.load, chosen.asking.depth) {
            load.depth = depth;
        }
        job
    }

    /// Tries a trial whose record is blank.
    fn tried(&self, chosen: &Chosen, mut record: Record, watch: &mut dyn FnMut(Live)) -> Result<Record, Interrupted> {
        watch(Live::Starting);
        let (block, position) = (record.block, record.position);
        let directory = self.scratch.join(format!("{block}-{position}"));
        if let Err(outcome) = self.attempt(chosen, &directory, &mut record, watch) {
            record.outcome = self.without_logins(outcome);
        }
        // What cannot be removed now goes with the run's scratch directory.
        let _ = fs::remove_dir_all(&directory);
        match record.outcome {
            Outcome::Failed { reason } if self.interrupt.is_set() => {
                let left_behind =
                    (reason != signals::INTERRUPTED).then(|| format!("{}: {reason}", chosen.target.label));
                Err(Interrupted { left_behind })
            }
            _ if self.interrupt.is_set() => Err(Interrupted { left_behind: None }),
            _ => Ok(record),
        }
    }

    /// What no record may hold: the passwords of all targets, as they may be written.
    fn secrets(&self) -> Vec<String> {
        let passwords = self.plan.chosen.iter().filter_map(|chosen| chosen.login.password.as_deref());
        passwords.flat_map(logins::forms).collect()
    }

    /// Libraries and servers may repeat what they were told.
    fn without_logins(&self, outcome: Outcome) -> Outcome {
        let hidden = |reason: String| logins::without(reason, &self.secrets());
        match outcome {
            Outcome::Failed { reason } => Outcome::Failed { reason: hidden(reason) },
            Outcome::Refused { reason } => Outcome::Refused { reason: hidden(reason) },
            Outcome::Missing { reason, get_it } => Outcome::Missing { reason: hidden(reason), get_it },
            other => other,
        }
    }

    /// A place, a server if need be, the child; then everything is stopped, in any case.
    fn attempt(
        &self,
        chosen: &Chosen,
        directory: &Path,
        record: &mut Record,
        watch: &mut dyn FnMut(Live),
    ) -> Result<(), Outcome> {
        self.plan.may_run(chosen).map_err(|reason| Outcome::Refused { reason })?;
        let data = self.data_directory(chosen, directory).map_err(failed)?;
        record.noise = self.noise_before(&data);
        let mut launch = self.launch(chosen, record.block, &data);
        if let Some(kept) = &chosen.kept {
            launch.settings = kept_data::fitting(kept, record).map_err(|reason| Outcome::Refused { reason })?;
        }
        let mut served = match chosen.adapter.server {
            Some(_) if chosen.place.is_none() => Some(self.serve(chosen, &launch, &data, directory)?),
            _ => None,
        };
        let worked = self.work(chosen, &launch, &mut served, (&data, directory), record, watch);
        let login = served.as_ref().map_or_else(|| launch.login.clone(), |served| served.primary.login.clone());
        let worked = worked.map_err(|outcome| with_servers_end(outcome, served.as_mut()));
        let worked = worked.and_then(|()| is_alive(served.as_mut()));
        let stopped = served.map_or(Ok(()), Servers::stop);
        worked.and(stopped.map_err(|reason| Outcome::Failed { reason }))?;
        counts::check(self.plan, &self.data_for(chosen, record.block).summary, record)
            .map_err(|reason| Outcome::Failed { reason })?;
        self.note_if_kept(chosen, &data, &login, record).map_err(failed)
    }

    /// All steps of a trial, each by a child of its own.
    fn work(
        &self,
        chosen: &Chosen,
        launch: &Launch,
        served: &mut Option<Servers>,
        (data, directory): (&Path, &Path),
        record: &mut Record,
        watch: &mut dyn FnMut(Live),
    ) -> Result<(), Outcome> {
        for &step in self.steps(chosen) {
            if step != TrialStep::Fill && self.plan.job.lookup.cold {
                self.make_cold(chosen, launch, served, (data, directory), record)?;
            }
            let launch = served.as_ref().map_or_else(|| launch.clone(), |served| served.reached(launch));
            // What fills the store is not measured.
            let proxy =
                if step == TrialStep::Fill { None } else { self.proxy(chosen, &launch, directory).map_err(failed)? };
            let worked =
                self.attend(chosen, &launch, served.as_mut(), proxy.as_ref(), data, directory, record, watch, step);
            let passed = proxy.map_or(Ok(()), |proxy| proxy.end(record));
            worked.and(passed.map_err(failed))?;
        }
        Ok(())
    }

    /// What processor and disk are like just now.
    fn noise_before(&self, data: &Path) -> Noise {
        let beside = data.parent().filter(|_| self.plan.durability == Durability::Power);
        let disk_sync_ns = beside.and_then(|directory| processor_probe::disk_sync(directory).ok());
        Noise { processor_probe_ns: self.processor_probe.look(), disk_sync_ns, ..Noise::default() }
    }

    /// What `kvfair query` must know to open the data again.
    fn note_if_kept(&self, chosen: &Chosen, data: &Path, login: &Login, record: &Record) -> Result<()> {
        // What a program has left there it knows best.
        if self.plan.keep.is_none() || self.plan.kind.is_none() {
            return Ok(());
        }
        if let Some(password) = login.password.as_deref().filter(|_| chosen.place.is_none()) {
            password::note(data, password).with_context(|| format!("cannot note a password in {}", data.display()))?;
        }
        kept_data::note(
            data,
            &kept_data::Note {
                store: chosen.adapter.name.to_string(),
                durability: self.plan.durability,
                configuration: self.plan.configuration,
                via: chosen.via,
                settings: chosen.target.settings.clone(),
                job: Some(record.job.clone()),
                sha256: record.stream.sha256.clone(),
            },
        )
    }

    /// Where the store's files go: in the trial's own directory, or where they are to be kept.
    fn data_directory(&self, chosen: &Chosen, directory: &Path) -> Result<PathBuf> {
        fs::create_dir_all(directory).with_context(|| format!("cannot make {}", directory.display()))?;
        if let Some(kept) = &chosen.kept {
            return kept.canonicalize().with_context(|| format!("there is nothing at {}", kept.display()));
        }
        let data = match &self.plan.keep {
            Some(keep) => keep.join(file_name(&chosen.target.label)),
            None => directory.join("data"),
        };
        if data.exists() {
            // Of an earlier block of this run: the last one is kept. Before the run nothing was here.
            fs::remove_dir_all(&data).with_context(|| format!("cannot empty {}", data.display()))?;
        }
        fs::create_dir_all(&data).with_context(|| format!("cannot make {}", data.display()))?;
        data.canonicalize().with_context(|| format!("cannot find {}", data.display()))
    }

    fn launch(&self, chosen: &Chosen, block: u32, data: &Path) -> Launch {
        Launch {
            durability: self.plan.durability,
            configuration: self.plan.configuration,
            clients: self.plan.clients_of(chosen),
            data_bytes: self.plan.kind.map(|_| self.data_for(chosen, block).summary.data_bytes),
            answer_bytes: self.plan.kind.and_then(|_| self.data_for(chosen, block).longest_answer()),
            ..chosen.launch(data, self.plan.timeout)
        }
    }

    pub(super) fn serve(
        &self,
        chosen: &Chosen,
        launch: &Launch,
        data: &Path,
        directory: &Path,
    ) -> Result<Servers, Outcome> {
        let transport = chosen.target.transport;
        let limit = self.plan.at_most(self.plan.timeout.min(START));
        let under = pin::server(&self.plan.pinned);
        let prepared = self.scratch.join("prepared");
        let site = Site { data, scratch: directory, prepared: Some(&prepared), is_guarded: self.plan.kind.is_some() };
        let (adapter, interrupt) = (chosen.adapter, self.interrupt);
        let served = serve::start(&under, adapter, transport, launch, site, limit, interrupt);
        let how = Start { under: &under, adapter, transport, directory, limit, interrupt };
        let served = served.and_then(|primary| Servers::follow(primary, launch, &how));
        served.map_err(|unserved| match unserved {
            Unserved::Failed(_) if self.plan.is_over() => {
                Outcome::left_out("it had not started when the time of the run was over")
            }
            Unserved::Missing(reason) => Outcome::Missing { reason, get_it: chosen.adapter.get_it.to_string() },
            Unserved::Failed(reason) => Outcome::Missing { reason, get_it: String::new() },
            Unserved::Interrupted => Outcome::Failed { reason: signals::INTERRUPTED.to_string() },
        })
    }

    /// The proxy that stands for the network, where the run has one and the target is reached over one: on the client's
    /// processors.
    fn proxy(&self, chosen: &Chosen, launch: &Launch, directory: &Path) -> Result<Option<Proxy>> {
        let Some(network) = self.plan.network_of(chosen) else { return Ok(None) };
        let (under, rtt) = (pin::clients(&self.plan.pinned), Duration::from_micros(network.rtt_us));
        Proxy::start(&under, &launch.place, rtt, self.plan.clients, directory).map(Some)
    }

    /// Starts the child and listens to it until it is done, dead or out of time. A supervisor has a moment to end its
    /// program.
    #[allow(clippy::too_many_arguments)] // The plot of one trial: each of these is one of its actors.
    fn attend(
        &self,
        chosen: &Chosen,
        launch: &Launch,
        served: Option<&mut Servers>,
        proxy: Option<&Proxy>,
        data: &Path,
        directory: &Path,
        record: &mut Record,
        watch: &mut dyn FnMut(Live),
        step: TrialStep,
    ) -> Result<(), Outcome> {
        let through = proxy.map(|proxy| proxy.place.clone());
        let reached = through.as_ref().unwrap_or(&launch.place);
        let program = self.program_of(chosen, reached, (data, directory), record)?;
        let keeps = program.is_some();
        let task = TrialTask { program, through, step, ..self.task(chosen, launch, record.block) };
        let (under, log) = (pin::clients(&self.plan.pinned), directory.join("trial.log"));
        let command = served.as_ref().map(|served| served.primary.command.clone()).unwrap_or_default();
        // Read once a run, and not beside a trial.
        let sha256 = command.first().and_then(|program| digest::of_program(Path::new(program)));
        let mut child = Child::start(&under, &Task::Trial(Box::new(task)), &log).map_err(failed)?;
        let servers = (served.as_deref(), proxy.map(Proxy::id));
        let files = match &launch.place {
            Place::Path(path) => Some(path.as_path()),
            _ if chosen.place.is_some() => None,
            _ => Some(data),
        };
        let mut attendant =
            Attendant::new(child.id(), servers, record, (command, sha256), files, self, (chosen, launch));
        let mut deadline = Instant::now() + self.plan.timeout + SLACK;
        let cut_off = loop {
            match attendant.wait(&child, LOOK) {
                Ok(told) => {
                    if attendant.is_limited_anew(&told) {
                        deadline = attendant.deadline(&told, deadline);
                    }
                    let go = matches!(told, Event::Begins(_) | Event::Ended(..) | Event::Closed);
                    if let Some(end) = attendant.hear(told, watch) {
                        return if keeps { self.ended(end, &attendant) } else { end };
                    }
                    if go {
                        child.go();
                    }
                }
                Err(RecvTimeoutError::Timeout) => attendant.look(),
                Err(RecvTimeoutError::Disconnected) => {
                    break Outcome::Failed { reason: format!("the trial's process died: {}", child.ending()) };
                }
            }
            if self.interrupt.is_set() {
                break Outcome::Failed { reason: signals::INTERRUPTED.to_string() };
            }
            if Instant::now() >= deadline || (self.plan.is_over() && !keeps) {
                break attendant.out_of_time();
            }
        };
        if keeps {
            // It ends what it keeps, however far that has gone from its group.
            child.end();
        }
        child.kill();
        if !self.plan.agents.commands.is_empty() {
            agents::let_go();
        }
        let owes = self.plan.is_guest(chosen) && attendant.has_begun() && !keeps;
        let entry = attendant.entry();
        Err(if owes { self.take_back(entry, chosen, launch, record.block, directory, cut_off) } else { cut_off })
    }

    /// How a command ended. One that was ended because the time of the run was over has not failed.
    fn ended(&self, end: Result<(), Outcome>, attendant: &Attendant<'_>) -> Result<(), Outcome> {
        end.map_err(|why| if self.plan.is_over() { attendant.out_of_time() } else { why })
    }

    /// A guest that was cut off could not take back what it wrote: a process of its own does so now.
    fn take_back(
        &self,
        entry: Option<VisitEntry>,
        chosen: &Chosen,
        launch: &Launch,
        block: u32,
        directory: &Path,
        cut_off: Outcome,
    ) -> Outcome {
        let patience = launch.patience.min(PATIENCE_AFTERWARDS);
        let task = self.task(chosen, &Launch { patience, ..launch.clone() }, block);
        let task = TrialTask { only_take_back: true, ..task };
        let Err(what) = self.taken_back(task, &launch.place, directory) else {
            entry.into_iter().for_each(VisitEntry::strike);
            return cut_off;
        };
        let first = match cut_off {
            Outcome::Failed { reason } => reason,
            _ => format!("cut off after {} s", self.plan.timeout.as_secs_f64()),
        };
        Outcome::Failed { reason: format!("{first}; {what}") }
    }

    fn taken_back(&self, task: TrialTask, place: &Place, directory: &Path) -> Result<(), String> {
        let unfinished = |why: &str| format!("what this trial wrote to {place} could not all be removed: {why}");
        let child = Child::start(&[], &Task::Trial(Box::new(task)), &directory.join("sweep.log"));
        let child = child.map_err(|error| unfinished(&format!("{error:#}")))?;
        // No trial writes for longer than its time-out, and deleting is no slower than writing.
        match child.next(self.plan.timeout.max(START)) {
            Ok(Event::Done) => Ok(()),
            Ok(Event::Failed(what)) => Err(what),
            _ => Err(unfinished("deleting was cut off")),
        }
    }

    fn task(&self, chosen: &Chosen, launch: &Launch, block: u32) -> TrialTask {
        let (data, job) = (self.data_for(chosen, block), self.job_for(chosen, block));
        TrialTask {
            store: chosen.adapter.name.to_string(),
            launch: launch.clone(),
            through: None,
            doubles: self.plan.doubles(machine::processors()),
            pinned: self.plan.pinned.is_some(),
            limit_s: self.plan.limit().map(|limit| limit.as_secs_f64()),
            points: self.plan.points(&job, block),
            input: data.input.clone(),
            stream: data.summary.stream.clone(),
            expected: data.expected.clone(),
            drawn: self.scratch.join(format!("drawn-{}", file_name(&chosen.target.label))),
            verify: self.plan.verify,
            is_strict: self.plan.is_strict,
            guest: self.plan.is_guest(chosen),
            room: guest::MemoryQuery::of(self.plan, chosen, &job, &data.summary),
            job,
            only_take_back: false,
            step: TrialStep::Whole,
            cache: chosen.target.cache,
            program: None,
            agents: self.plan.agents.commands.clone(),
            judges_start: self.plan.agents.judges_start,
        }
    }
}

/// A connection is lost a moment before its server's end can be seen.
fn with_servers_end(outcome: Outcome, served: Option<&mut Servers>) -> Outcome {
    match (outcome, served) {
        (Outcome::Failed { reason }, Some(served)) => match served.ending_within(ENDING) {
            Some(ending) => Outcome::Failed { reason: format!("{reason}; the server ended: {ending}") },
            None => Outcome::Failed { reason },
        },
        (outcome, _) => outcome,
    }
}

/// What was done on a server that is gone by the end may have been done on another one in its place.
fn is_alive(served: Option<&mut Servers>) -> Result<(), Outcome> {
    match served.and_then(|served| served.ending_within(Duration::ZERO)) {
        Some(ending) => Err(Outcome::Failed { reason: format!("the server ended before the trial did: {ending}") }),
        None => Ok(()),
    }
}

pub(super) fn failed(error: anyhow::Error) -> Outcome {
    Outcome::Failed { reason: format!("{error:#}") }
}
