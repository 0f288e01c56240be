//! The process of the clients, seen from its parent: each step has a limit.

use std::path::Path;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

use super::{CLIENTS, not_interrupted, since_s};
use crate::harness::child::Child;
use crate::harness::crash::untried::Untried;
use crate::harness::crash::{LOOK, PATIENCE, ground};
use crate::harness::signals::Interrupt;
use crate::harness::task::{Event, FailoverEvent, FailoverTask, Task};
use crate::model::crash::failover::ClientWrites;
use crate::stores::Launch;

/// How long clients of a killed server may take to notice.
const DETECTION: Duration = Duration::from_secs(10);
/// How long clients may find no server that takes their writes: longer than promotion and following together.
const RESUMPTION: Duration = Duration::from_secs(90);
/// How long clients write to the new primary.
const AFTERWARDS: Duration = Duration::from_millis(500);

/// The process that writes.
pub struct Clients<'a> {
    child: Child,
    interrupt: &'a Interrupt,
    /// When the first of them saw that its connection is broken, in microseconds of the epoch.
    broken_us: Option<u64>,
}

impl<'a> Clients<'a> {
    /// Has clients write to the first of `servers`, and to the others once it is gone.
    pub fn start(
        store: &str,
        servers: Vec<Launch>,
        log: &Path,
        interrupt: &'a Interrupt,
    ) -> Result<Clients<'a>, Untried> {
        let task = FailoverTask { store: store.to_string(), servers, clients: CLIENTS, limit: RESUMPTION };
        let child = Child::start(&[], &Task::Failover(task), log);
        let child = child.map_err(|error| Untried::Failed(format!("{error:#}")))?;
        Ok(Clients { child, interrupt, broken_us: None })
    }

    /// What they tell next; nothing where that is not until then.
    fn hear(&mut self, until: Instant) -> Result<Option<FailoverEvent>, Untried> {
        loop {
            let told = self.child.next(LOOK);
            not_interrupted(self.interrupt)?;
            match told {
                Ok(Event::Failover(FailoverEvent::Waits { client, why })) => {
                    // It would be waited for to the end, and nothing of the store could be said then.
                    let why = format!("client {client}: {why}");
                    ground::full(&why, None).map_or(Ok(()), |why| Err(Untried::Full(why)))?;
                }
                Ok(Event::Failover(event)) => {
                    if let FailoverEvent::Broken { at_us, .. } = event {
                        self.broken_us = Some(self.broken_us.map_or(at_us, |first_us| first_us.min(at_us)));
                    }
                    return Ok(Some(event));
                }
                Ok(Event::Failed(why)) => return Err(Untried::Failed(why)),
                Ok(told) => return Err(Untried::Failed(format!("its clients said {told:?}"))),
                Err(RecvTimeoutError::Timeout) if Instant::now() >= until => return Ok(None),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(Untried::Failed(format!("the process of its clients died: {}", self.child.ending())));
                }
            }
        }
    }

    /// Returns so long after all clients have begun to write.
    pub fn work_until(&mut self, moment: Duration) -> Result<(), Untried> {
        let mut working = 0;
        let mut end = Instant::now() + PATIENCE;
        loop {
            match self.hear(end)? {
                Some(FailoverEvent::Works { .. }) => {
                    working += 1;
                    if working == CLIENTS {
                        end = Instant::now() + moment;
                    }
                }
                Some(FailoverEvent::Broken { client, why, .. }) => {
                    return Err(Untried::Failed(format!("before the primary was killed: client {client}: {why}")));
                }
                Some(told) => return Err(Untried::Failed(format!("before the primary was killed: {told:?}"))),
                None if working == CLIENTS => return Ok(()),
                None => {
                    let within_s = PATIENCE.as_secs();
                    let what = format!("{working} of {CLIENTS} clients could write within {within_s} s");
                    return Err(Untried::Failed(format!("{what}, before the primary was killed")));
                }
            }
        }
    }

    /// Returns when a client has seen that its connection is broken.
    pub fn detect(&mut self) -> Result<(), Untried> {
        let end = Instant::now() + DETECTION;
        while self.hear(end)?.is_some() {
            if self.broken_us.is_some() {
                return Ok(());
            }
        }
        Err(Untried::Failed(format!("no client noticed the kill within {} s", DETECTION.as_secs())))
    }

    /// After how many seconds the first client saw the kill, and the first write was acknowledged again. Returns when
    /// all clients have written for a while.
    pub fn resume(&mut self, killed_us: u64) -> Result<(f64, f64), Untried> {
        let mut end = Instant::now() + RESUMPTION;
        let mut first_us = u64::MAX;
        let mut resumed = 0;
        loop {
            match self.hear(end)? {
                Some(FailoverEvent::Resumed { at_us, .. }) => {
                    resumed += 1;
                    first_us = first_us.min(at_us);
                    if resumed == CLIENTS {
                        end = Instant::now() + AFTERWARDS;
                    }
                }
                Some(_) => {}
                None if resumed == CLIENTS => {
                    let broken_us = self.broken_us.unwrap_or(killed_us);
                    return Ok((since_s(killed_us, broken_us), since_s(killed_us, first_us)));
                }
                None => {
                    let within_s = RESUMPTION.as_secs();
                    return Err(Untried::Failed(format!("{resumed} of {CLIENTS} clients went on within {within_s} s")));
                }
            }
        }
    }

    /// Ends them, and tells what each wrote, by their numbers.
    pub fn stop(&mut self) -> Result<Vec<ClientWrites>, Untried> {
        self.child.go();
        let end = Instant::now() + PATIENCE;
        while let Some(told) = self.hear(end)? {
            if let FailoverEvent::Wrote(mut writes) = told {
                writes.sort_by_key(|client| client.client);
                return Ok(writes);
            }
        }
        Err(Untried::Failed(format!("the clients did not stop within {} s", PATIENCE.as_secs())))
    }
}
