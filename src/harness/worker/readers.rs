//! `--readers`: processes that read one filled store at once, each as one client. The trial's child starts them, lets
//! them go together and adds up what they saw; it holds no store itself meanwhile.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use super::{Early, boundary, compare, entry, flushed, reach};
use crate::harness::agents::merge;
use crate::harness::child::{Child, tell};
use crate::harness::gates::queue::Waits;
use crate::harness::task::{Event, Task, TrialStep, TrialTask};
use crate::jobs::{Client, Job, JobKind, Part, Source};
use crate::model::load::At;
use crate::stores::{Adapter, Launch, Store};

/// How often a reader that says nothing is looked at: the parent ends a trial that takes too long.
const LOOK: Duration = Duration::from_secs(1);

/// The share of one reader among so many, as a job of one client.
pub(super) struct OneOf<'a> {
    pub job: &'a dyn Job,
    pub index: u32,
    pub of: u32,
}

impl Job for OneOf<'_> {
    fn parts(&self) -> &'static [Part] {
        self.job.parts()
    }

    fn client(&self, part: Part, _: u32, at: At, source: &dyn Source) -> io::Result<Box<dyn Client>> {
        self.job.client(part, self.index, At { clients: self.of, ..at }, source)
    }
}

/// The run and its final flush, told to the parent as one process would.
pub(super) fn work(trial: &TrialTask) -> Result<(), Early> {
    let started: Result<Vec<Reader>, Early> =
        (0..trial.job.lookup.readers).map(|index| Reader::start(trial, index)).collect();
    let mut readers = started?;
    for reader in &mut readers {
        reader.until(|event| matches!(event, Event::Begins(_)).then_some(()))?;
    }
    boundary(&Event::Begins(Part::Run));
    readers.iter_mut().for_each(|reader| reader.0.go());
    let (mut phases, mut waits) = (Vec::new(), Waits::new());
    for reader in &mut readers {
        let (phase, left) = reader.until(|event| match event {
            Event::Ended(phase, left) => Some((phase, left)),
            _ => None,
        })?;
        phases.push(*phase);
        waits.extend(left);
    }
    let all = merge::sum(phases).map_err(Early::Failed)?;
    let units = all.metrics.units;
    // They wait as well, so that the parent sees their memory.
    boundary(&Event::Ended(Box::new(all), waits));
    tell(&Event::Progress(units));
    for mut reader in readers {
        reader.0.go();
        reader.until(|event| matches!(event, Event::Done).then_some(()))?;
    }
    // Nothing was written.
    boundary(&Event::Begins(Part::FinalFlush));
    boundary(&Event::Ended(Box::new(flushed(Part::FinalFlush, 0.0)), Waits::new()));
    Ok(())
}

struct Reader(Child);

impl Reader {
    fn start(trial: &TrialTask, index: u32) -> Result<Reader, Early> {
        let launch = Launch { is_read_by_several: true, ..trial.launch.clone() };
        let task = TrialTask { launch, step: TrialStep::Reader(index), ..trial.clone() };
        let mut log = trial.expected.clone().into_os_string();
        log.push(format!(".reader-{index}.log"));
        let child = Child::start(&[], &Task::Trial(Box::new(task)), &PathBuf::from(log));
        child.map(Reader).map_err(|error| Early::Failed(format!("{error:#}")))
    }

    /// Listens until it says what is wanted.
    fn until<T>(&mut self, wanted: impl Fn(Event) -> Option<T>) -> Result<T, Early> {
        loop {
            match self.0.next(LOOK) {
                Ok(Event::Refused(reason)) => return Err(Early::Refused(reason)),
                Ok(Event::Failed(reason)) => return Err(Early::Failed(reason)),
                Ok(Event::Wrong(wrong)) => return Err(Early::Wrong(wrong)),
                Ok(event) => {
                    if let Some(found) = wanted(event) {
                        return Ok(found);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Early::Failed(format!("a reader's process died: {}", self.0.ending())));
                }
            }
        }
    }
}

/// Several processes read, of which this one is none.
pub(super) fn read_by_several(
    trial: &TrialTask,
    adapter: &Adapter,
    kind: &JobKind,
    store: Box<dyn Store>,
) -> Result<(), Early> {
    let launch = &trial.launch;
    tell(&Event::Facts(store.facts().map_err(|fault| reach(&launch.place, &fault))?));
    drop(store);
    let worked = work(trial);
    let store = (adapter.open)(launch).map_err(|fault| reach(&launch.place, &fault))?;
    worked.map_err(|early| entry::or_empty(early, store.as_ref(), trial))?;
    compare(trial, adapter, kind, store.as_ref())
}
