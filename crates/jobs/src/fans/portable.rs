//! The portable way: for every profile and every page in it the page's record is got, changed and set again, one page
//! after another. What several questions under way must wait for is settled here.

use std::collections::VecDeque;

use super::{Merge, Share, read_fault, shown, wrong};
use crate::merge::Pages;
use crate::people::{Profile, Profiles};
use crate::{Ask, Client, Heard, InputFault};
use kvfair_core::op::{Op, Reply};

/// So many pages are worked on at once at most, in a client: more than a driver keeps under way, and an end to reading
/// ahead.
const TASKS_MAX: usize = 1024;
/// The client who owns the pages whose hash falls to it. Parts and tasks that are finished are used again, the last
/// one first, so that a client with one question under way stays within the same memory.
pub struct Portable {
    merge: Merge,
    share: Share,
    profiles: Profiles,
    profile: Profile,
    ended: bool,
    parts: Vec<Part>,
    idle_parts: Vec<usize>,
    /// The part whose pages are being started.
    reading: usize,
    tasks: Vec<Task>,
    idle_tasks: Vec<usize>,
    /// Tasks whose next question may be asked.
    ready: VecDeque<usize>,
    /// Questions in the order in which they were asked.
    under_way: VecDeque<Question>,
    /// Tasks whose page another task is at work on. Merging is commutative: which of them comes first does not matter.
    held_back: Vec<usize>,
}

/// What a client owns of one profile.
#[derive(Default)]
struct Part {
    pages: Pages,
    owned: Vec<usize>,
    /// How many of the owned pages were started, and how many are not finished.
    started: usize,
    unfinished: usize,
    /// 1 if this is the client who counts the profile: the owner of its first page.
    counted: u64,
}

/// One page of one profile on its way through get, merge and set.
struct Task {
    part: usize,
    page: usize,
    step: Step,
    /// The merged record, from the answer to get until set is asked.
    record: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Step {
    Get,
    Set,
}

/// A question that is under way, and the prefix of its page's name, which spares most comparisons of names.
struct Question {
    task: usize,
    prefix: u64,
}

/// What came next in the input.
enum Next {
    Part,
    Nothing,
    Empty,
    End,
}

impl Portable {
    pub fn new(share: Share, profiles: Profiles, merge: Merge) -> Portable {
        Portable {
            merge,
            share,
            profiles,
            profile: Profile::default(),
            ended: false,
            parts: vec![Part::default()],
            idle_parts: vec![0],
            reading: 0,
            tasks: Vec::new(),
            idle_tasks: Vec::new(),
            ready: VecDeque::new(),
            under_way: VecDeque::new(),
            held_back: Vec::new(),
        }
    }
}

impl Client for Portable {
    fn ask(&mut self) -> Ask<'_> {
        loop {
            if let Some(task) = self.ready.pop_front() {
                return Ask::Op(self.question(task));
            }
            if self.parts[self.reading].is_started() {
                match self.read() {
                    Ok(Next::Part | Next::Nothing) => {}
                    Ok(Next::Empty) if self.share.counts_empty() => return Ask::Unit,
                    Ok(Next::Empty) => {}
                    Ok(Next::End) if self.under_way.is_empty() => return Ask::End,
                    Ok(Next::End) => return Ask::Wait,
                    Err(fault) => return Ask::Fail(fault),
                }
            } else if self.under_way.len() + self.held_back.len() < TASKS_MAX {
                self.start();
            } else {
                return Ask::Wait;
            }
        }
    }

    fn hear(&mut self, reply: &Reply<'_>) -> Heard {
        let Some(Question { task: index, .. }) = self.under_way.pop_front() else {
            return wrong(b"", "no answer, for nothing was asked", shown(*reply));
        };
        let Task { part, page, step, ref mut record } = self.tasks[index];
        let old = match (step, *reply) {
            (Step::Get, Reply::Value(old)) => Some(old),
            (Step::Get, Reply::Missing) => None,
            (Step::Get, other) => return self.give_up(index, "a value or none", shown(other)),
            (Step::Set, Reply::Done) => return self.finish(index),
            (Step::Set, other) => return self.give_up(index, "that it was set", shown(other)),
        };
        match (self.merge)(old, page, &self.parts[part].pages, record) {
            Ok(_) => {
                self.tasks[index].step = Step::Set;
                self.ready.push_back(index);
                Heard::More
            }
            Err(broken) => {
                let found = read_fault(old, &broken);
                self.give_up(index, "a fans record", found)
            }
        }
    }

    fn skipped(&self) -> u64 {
        self.profiles.skipped()
    }
}

impl Portable {
    fn question(&mut self, index: usize) -> Op<'_> {
        let task = &self.tasks[index];
        let pages = &self.parts[task.part].pages;
        self.under_way.push_back(Question { task: index, prefix: pages.prefix(task.page) });
        let key = pages.names().get(task.page);
        match task.step {
            Step::Get => Op::Get(key),
            Step::Set => Op::Set { key, value: &task.record, ttl_s: None },
        }
    }

    /// Reads the next profile and takes this client's part of it.
    fn read(&mut self) -> Result<Next, InputFault> {
        // It is set for the case of a fault, after which nothing more is read.
        if std::mem::replace(&mut self.ended, true) || !self.profiles.read(&mut self.profile)? {
            return Ok(Next::End);
        }
        self.ended = false;
        let names = self.profile.pages();
        if names.is_empty() {
            return Ok(Next::Empty);
        }
        let index = self.idle_parts.pop().unwrap_or_else(|| {
            self.parts.push(Part::default());
            self.parts.len() - 1
        });
        let part = &mut self.parts[index];
        self.share.owned(names, &mut part.owned);
        part.started = 0;
        part.unfinished = part.owned.len();
        part.counted = u64::from(part.owned.first() == Some(&0));
        self.reading = index;
        if part.owned.is_empty() {
            self.idle_parts.push(index);
            return Ok(Next::Nothing);
        }
        part.pages.set(names);
        Ok(Next::Part)
    }

    /// Starts the next page of the part that is being read, or holds it back while another task is at work on it. All
    /// other tasks are under way or held back themselves.
    fn start(&mut self) {
        let part = &mut self.parts[self.reading];
        let page = part.owned[part.started];
        part.started += 1;
        let index = self.idle_tasks.pop().unwrap_or_else(|| {
            self.tasks.push(Task { part: 0, page: 0, step: Step::Get, record: Vec::new() });
            self.tasks.len() - 1
        });
        let task = &mut self.tasks[index];
        (task.part, task.page, task.step) = (self.reading, page, Step::Get);
        let prefix = self.parts[self.reading].pages.prefix(page);
        let is_same = |question: &Question| question.prefix == prefix && self.name(question.task) == self.name(index);
        match self.under_way.iter().any(is_same) {
            true => self.held_back.push(index),
            false => self.ready.push_back(index),
        }
    }

    fn name(&self, task: usize) -> &[u8] {
        let Task { part, page, .. } = self.tasks[task];
        self.parts[part].pages.names().get(page)
    }

    /// Ends a task whose answer was wrong.
    fn give_up(&mut self, index: usize, expected: &str, found: String) -> Heard {
        let wrong = wrong(self.name(index), expected, found);
        self.finish(index);
        wrong
    }

    /// Ends a task, and readies one that was held back by it.
    fn finish(&mut self, index: usize) -> Heard {
        if let Some(place) = self.held_back.iter().position(|held| self.name(*held) == self.name(index)) {
            self.ready.push_back(self.held_back.swap_remove(place));
        }
        self.idle_tasks.push(index);
        let part = &mut self.parts[self.tasks[index].part];
        part.unfinished -= 1;
        if part.unfinished > 0 {
            return Heard::More;
        }
        self.idle_parts.push(self.tasks[index].part);
        Heard::Unit { counted: part.counted }
    }
}

impl Part {
    fn is_started(&self) -> bool {
        self.started == self.owned.len()
    }
}
