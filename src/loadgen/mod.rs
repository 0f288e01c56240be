//! The generator: clients against sessions, with a clock. The only hot module; it knows no store and no job by name.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::jobs::{InputFault, Job, Part, Source};
use crate::model::hist::Times;
use crate::model::load::At;
use crate::model::metrics::Metrics;
use crate::model::op::{Fault, Wrong, readable};
use crate::stores::Store;

use pace::{Lateness, Pace};

pub mod ahead;
pub mod pace;
pub mod replicated;
pub mod sockets;
pub mod staleness;
mod tally;
pub mod threads;

/// What is to be driven.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    pub store: &'a dyn Store,
    pub job: &'a dyn Job,
    pub source: &'a dyn Source,
    pub part: Part,
    pub at: At,
    /// When each request is due; where there is none, clients ask as soon as they are answered.
    pub pace: Option<&'a Pace>,
    /// How long it may take: then no client draws another question, and what is under way is waited for.
    pub limit: Option<Duration>,
    /// Where each client leaves word of the units that it has finished.
    pub progress: &'a Progress<'a>,
}

/// What was seen while driving.
#[derive(Debug, Default)]
pub struct LoadStats {
    /// Threads that the clients shared.
    pub threads: u32,
    /// From the first client's start to the last one's end.
    pub took_s: f64,
    pub metrics: Metrics,
    pub timed_one_in: u32,
    pub clock_ns: f64,
    pub times: Times,
    /// Of requests that came at a rate.
    pub lateness: Option<Lateness>,
    /// How many questions each client has drawn, by its number, where it draws them.
    pub asked: Vec<(u32, u64)>,
    /// The limit came first.
    pub cut_off: bool,
}

impl LoadStats {
    /// Adds what was seen by others at the same time.
    fn add(&mut self, other: LoadStats) {
        self.metrics.add(&other.metrics);
        self.clock_ns = self.clock_ns.max(other.clock_ns);
        self.times.merge(&other.times);
        self.cut_off |= other.cut_off;
        self.asked.extend(other.asked);
        match (&mut self.lateness, other.lateness) {
            (Some(all), Some(more)) => all.add(&more),
            (all, more) => *all = all.take().or(more),
        }
    }
}

/// Units finished so far, a counter for each client, so that watching costs the clients nothing.
pub struct Progress<'a> {
    counters: Vec<Padded>,
    /// Hears of them now and then from who drives many clients on a thread, so that none is needed for watching: a
    /// process with one thread alone spares its system calls what sharing costs.
    heard: Option<&'a (dyn Fn(u64) + Sync)>,
    /// Hears from each thread that ends with the work, on that thread, when its clock has stopped: what the system
    /// knows of a thread is gone with it.
    left: Option<&'a (dyn Fn() + Sync)>,
}

/// A counter with its cache line for itself.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Padded(AtomicU64);

impl<'a> Progress<'a> {
    pub fn new(clients: u32) -> Progress<'a> {
        let counters = (0..clients).map(|_| Padded::default()).collect();
        Progress { counters, heard: None, left: None }
    }

    pub fn heard_by(clients: u32, heard: &'a (dyn Fn(u64) + Sync)) -> Progress<'a> {
        Progress { heard: Some(heard), ..Progress::new(clients) }
    }

    pub fn left_by(self, left: &'a (dyn Fn() + Sync)) -> Progress<'a> {
        Progress { left: Some(left), ..self }
    }

    /// Lets whoever listens hear of it.
    fn tell(&self) {
        if let Some(heard) = self.heard {
            heard(self.units());
        }
    }

    /// This thread has done its part.
    fn leave(&self) {
        if let Some(left) = self.left {
            left();
        }
    }

    pub fn units(&self) -> u64 {
        self.counters.iter().map(|counter| counter.0.load(Ordering::Relaxed)).sum()
    }

    fn client(&self, index: u32) -> &AtomicU64 {
        &self.counters[index as usize].0
    }
}

/// Why driving stopped before its end.
#[derive(Debug)]
pub enum Stopped {
    Input(InputFault),
    /// A session could not be opened.
    Session(Fault),
    /// A connection with many questions under way is of no more use.
    Connection {
        name: String,
        fault: Fault,
    },
    /// A store did not answer a question as a store does.
    Store {
        op: &'static str,
        key: String,
        fault: Fault,
    },
    /// A client heard what cannot be.
    Wrong(Wrong),
    /// Another client stopped first.
    Another,
}

impl fmt::Display for Stopped {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Stopped::Input(fault) => write!(out, "{fault}"),
            Stopped::Session(fault) => write!(out, "could not open a session: {fault}"),
            Stopped::Connection { name, fault } => write!(out, "{name}: {fault}"),
            Stopped::Store { op, key, fault } if key.is_empty() => write!(out, "{op}: {fault}"),
            Stopped::Store { op, key, fault } => write!(out, "{op} \"{key}\": {fault}"),
            Stopped::Wrong(wrong) => {
                write!(out, "wrong answer for \"{}\": expected {}, found {}", wrong.key, wrong.expected, wrong.found)
            }
            Stopped::Another => write!(out, "another client stopped"),
        }
    }
}

impl Stopped {
    fn store(op: &'static str, key: &[u8], fault: Fault) -> Stopped {
        Stopped::Store { op, key: readable(key, 80), fault }
    }
}
