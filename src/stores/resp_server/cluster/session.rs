//! One client's way to a cluster: a connection to each node. A question about one key goes to the node that has its
//! slot. The keys of a question about many are split by slot, since a node takes no command with keys of two slots; all
//! commands are on their way before the first answer is read.
//!
//! A node that refuses a command by MOVED, ASK or TRYAGAIN has not carried it out. So it is asked again elsewhere, as
//! one command by itself: no part of it can have been done before. A command whose answer is lost is never asked again.

use std::thread::sleep;
use std::time::Duration;

use polonius_the_crab::prelude::*;

use super::super::RespServer;
use super::{Cluster, NODES_MAX, Topology};
use crate::model::op::{Fault, KeyList, Keys, Op, Pairs, Reply, ValueList};
use crate::protocol::Codec;
use crate::protocol::resp::{Address, Redirect, Resp, slot};
use crate::stores::blocking::Blocking;
use crate::stores::deadline::Deadline;
use crate::stores::{Place, Session};

/// A question is sent elsewhere at most so often. A slot that has just been moved needs one redirect.
const REDIRECTS_MAX: u32 = 16;
/// After so many redirects a question waits a moment: nodes that disagree hear of each other soon.
const REDIRECTS_AT_ONCE: u32 = 2;
const PAUSE_MIN: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(64);
/// A session asks at most so often whether the cluster has a node that it does not know.
const RELOADS_MAX: u32 = 16;
/// The bits of a version that hold the index of its node: [`NODES_MAX`] fit.
const NODE_BITS: u32 = 10;
const _: () = assert!(NODES_MAX <= 1 << NODE_BITS);

pub(super) struct ClusterSession<'c> {
    cluster: &'c Cluster,
    nodes: Vec<Node>,
    /// For each slot the index of its node.
    node_of_slot: Vec<Option<u16>>,
    reloads: u32,
    /// The commands of a question about many keys, and those of them that are asked again.
    parts: Vec<Part>,
    again: Vec<Part>,
    /// The slots of its keys and where each key stands in the question, in the order of the slots.
    order: Vec<(u16, u32)>,
    /// Keys and values, or records and fields, of one command.
    keys: KeyList,
    values: KeyList,
    found: ValueList,
    numbers: Vec<Option<i64>>,
}

/// A connection to a node.
struct Node {
    place: Place,
    session: Blocking<Resp>,
    /// Commands of its greeting, which are no part of the work.
    greeted: u64,
}

/// One command of a question about many keys.
#[derive(Clone, Copy)]
struct Part {
    slot: u16,
    to: To,
    /// Its keys, in the order of the slots.
    first: u32,
    end: u32,
}

/// The node that a command goes to.
#[derive(Clone, Copy)]
struct To {
    node: u16,
    /// The slot is on its way there.
    asking: bool,
}

impl Node {
    fn open(server: &RespServer) -> Result<Node, Fault> {
        let session = server.connect()?;
        let greeted = session.commands().unwrap_or(0);
        Ok(Node { place: server.launch.place.clone(), session, greeted })
    }

    fn say(&mut self, op: &Op<'_>, asking: bool) -> Result<(), Fault> {
        self.session.write(|codec, out| {
            if asking {
                codec.asking(out);
            }
            codec.say(op, out)
        })
    }

    fn ask(&mut self, op: &Op<'_>, asking: bool) -> Result<Reply<'_>, Fault> {
        self.session.begin()?;
        self.say(op, asking)?;
        self.session.send()?;
        self.session.answer()
    }
}

impl<'c> ClusterSession<'c> {
    pub(super) fn open(cluster: &'c Cluster) -> Result<ClusterSession<'c>, Fault> {
        Ok(ClusterSession {
            cluster,
            nodes: cluster.each(Node::open)?,
            node_of_slot: cluster.node_of_slot.clone(),
            reloads: 0,
            parts: Vec::new(),
            again: Vec::new(),
            order: Vec::new(),
            keys: KeyList::default(),
            values: KeyList::default(),
            found: ValueList::default(),
            numbers: Vec::new(),
        })
    }

    /// The node that has a slot, as far as this session knows.
    fn owner(&self, slot: u16) -> To {
        // Every slot had a node when the cluster was opened.
        To { node: self.node_of_slot[usize::from(slot)].unwrap_or(0), asking: false }
    }

    /// A question about one key.
    fn ask_one(&mut self, op: &Op<'_>, slot: u16) -> Result<Reply<'_>, Fault> {
        let mut this = self;
        let (mut tries, mut to) = (Tries::default(), this.owner(slot));
        loop {
            let words = polonius!(|this| -> Result<Reply<'polonius>, Fault> {
                match this.nodes[usize::from(to.node)].ask(op, to.asking) {
                    Err(Fault::Refused(words)) => exit_polonius!(words),
                    answered => polonius_return!(answered),
                }
            });
            let (next, waits) = this.next(slot, to, &words)?;
            tries.again(waits, &words, this.patience())?;
            to = next;
        }
    }

    fn patience(&self) -> Duration {
        self.cluster.seed.launch.patience
    }

    /// Where a command goes that was refused, and whether it waits before: the words of any other refusal are an error.
    fn next(&mut self, slot: u16, asked: To, words: &str) -> Result<(To, bool), Fault> {
        match Redirect::read(words) {
            Some(Redirect::Moved(told, at)) if told == slot => {
                let node = self.node_at(&at, asked, words)?;
                self.node_of_slot[usize::from(slot)] = Some(node);
                Ok((To { node, asking: false }, false))
            }
            Some(Redirect::Ask(told, at)) if told == slot => {
                Ok((To { node: self.node_at(&at, asked, words)?, asking: true }, false))
            }
            Some(Redirect::TryAgain) => Ok((self.owner(slot), true)),
            _ => Err(Fault::Refused(words.to_string())),
        }
    }

    /// The index of the node that another one names; a connection to it, where the cluster's topology names it too.
    fn node_at(&mut self, at: &Address, by: To, words: &str) -> Result<u16, Fault> {
        let cluster = self.cluster;
        let seed = &cluster.seed;
        let place = seed.place_of(at, &self.nodes[usize::from(by.node)].place);
        let known = |nodes: &[Node]| nodes.iter().position(|node| node.place == place);
        if let Some(node) = known(&self.nodes) {
            return Ok(node as u16);
        }
        seed.check_started(&place, words)?;
        self.reloads += 1;
        let named = self.reloads <= RELOADS_MAX && Topology::ask(seed)?.nodes.contains(&place);
        if !named || self.nodes.len() >= NODES_MAX {
            let seed = format!("{} at {}", seed.name, seed.launch.place);
            return Err(Fault::Refused(format!("{words}: CLUSTER SLOTS of {seed} names no such node")));
        }
        self.nodes.push(Node::open(&seed.at(place))?);
        Ok(self.nodes.len() as u16 - 1)
    }

    /// A value with a version. A watch holds on the node that has the key: where the slot is on its way to another one,
    /// the question waits until it is there.
    fn get_version(&mut self, key: &[u8]) -> Result<Reply<'_>, Fault> {
        let (slot, op) = (slot(key), Op::GetVersion(key));
        let mut this = self;
        let (mut tries, mut to) = (Tries::default(), this.owner(slot));
        loop {
            let words = polonius!(|this| -> Result<Reply<'polonius>, Fault> {
                match this.nodes[usize::from(to.node)].ask(&op, false) {
                    Ok(Reply::Versioned(value, epoch)) => {
                        polonius_return!(Ok(Reply::Versioned(value, epoch << NODE_BITS | u64::from(to.node))))
                    }
                    Err(Fault::Refused(words)) => exit_polonius!(words),
                    answered => polonius_return!(answered),
                }
            });
            let (next, waits) = this.next(slot, to, &words)?;
            tries.again(waits || next.asking, &words, this.patience())?;
            to = if next.asking { to } else { next };
        }
    }

    /// A check-and-set that is sent elsewhere has written nothing, and its version means nothing there: whoever asks
    /// reads anew.
    fn check_and_set(&mut self, key: &[u8], version: u64, value: &[u8]) -> Result<Reply<'_>, Fault> {
        let slot = slot(key);
        let to = self.owner(slot);
        if version & ((1 << NODE_BITS) - 1) != u64::from(to.node) {
            return Ok(Reply::Conflict);
        }
        let op = Op::Cas { key, version: version >> NODE_BITS, value };
        match self.nodes[usize::from(to.node)].ask(&op, false) {
            Ok(Reply::Done) => Ok(Reply::Done),
            Ok(Reply::Conflict) => Ok(Reply::Conflict),
            Ok(other) => Err(Fault::Garbled(format!("a check-and-set was answered {other:?}"))),
            Err(Fault::Refused(words)) => self.next(slot, to, &words).map(|_| Reply::Conflict),
            Err(fault) => Err(fault),
        }
    }

    /// A question about many keys, the index of each of which stands for it; `alone` where each is a command of its
    /// own. The answers are in `found` and `numbers`.
    fn ask_many(&mut self, op: &Op<'_>, keys: impl Iterator<Item = u16>, alone: bool) -> Result<(), Fault> {
        self.split(keys, alone);
        if self.order.is_empty() {
            return Err(Fault::Unsupported(format!("{} has no {} of nothing", self.cluster.seed.name, op.name())));
        }
        self.found.reset(self.order.len());
        self.numbers.clear();
        self.numbers.resize(self.order.len(), None);
        let mut tries = Tries::default();
        loop {
            self.say_parts(op)?;
            let Some((waits, words)) = self.hear_parts(op)? else { return Ok(()) };
            std::mem::swap(&mut self.parts, &mut self.again);
            tries.again(waits, &words, self.patience())?;
        }
    }

    /// Puts keys of the same slot into one command, unless each is one alone.
    fn split(&mut self, keys: impl Iterator<Item = u16>, alone: bool) {
        self.order.clear();
        self.order.extend(keys.zip(0..));
        self.order.sort_unstable();
        self.parts.clear();
        for index in 0..self.order.len() {
            let (slot, end) = (self.order[index].0, index as u32 + 1);
            match self.parts.last_mut() {
                Some(last) if last.slot == slot && !alone => last.end = end,
                _ => {
                    let to = self.owner(slot);
                    self.parts.push(Part { slot, to, first: index as u32, end });
                }
            }
        }
    }

    /// Says all commands, and sends those for one node in one piece.
    fn say_parts(&mut self, op: &Op<'_>) -> Result<(), Fault> {
        for node in &mut self.nodes {
            node.session.begin()?;
        }
        for place in 0..self.parts.len() {
            let part = self.parts[place];
            self.say_part(op, part)?;
        }
        self.nodes.iter_mut().try_for_each(|node| node.session.send())
    }

    fn say_part(&mut self, op: &Op<'_>, part: Part) -> Result<(), Fault> {
        let ClusterSession { nodes, order, keys, values, .. } = self;
        let indexes = order[part.first as usize..part.end as usize].iter().map(|&(_, index)| index as usize);
        let node = &mut nodes[usize::from(part.to.node)];
        keys.clear();
        values.clear();
        let op = match *op {
            Op::GetMany(all) => {
                indexes.for_each(|index| keys.push(all.get(index)));
                Op::GetMany(keys.lend())
            }
            Op::NumberMany(all) => {
                indexes.for_each(|index| keys.push(all.get(index)));
                Op::NumberMany(keys.lend())
            }
            Op::SetMany(Pairs { keys: all, values: all_values }) => {
                for index in indexes {
                    keys.push(all.get(index));
                    values.push(all_values.get(index));
                }
                Op::SetMany(Pairs { keys: keys.lend(), values: values.lend() })
            }
            Op::AddMany(sums) => {
                let (key, by) = sums.get(order[part.first as usize].1 as usize);
                Op::Add { key, by }
            }
            Op::Tally { records, fields, by } => {
                let index = order[part.first as usize].1 as usize;
                keys.push(records.get(index / fields.len()));
                values.push(fields.get(index % fields.len()));
                Op::Tally { records: keys.lend(), fields: values.lend(), by }
            }
            _ => unreachable!("it is about one key"),
        };
        node.say(&op, part.to.asking)
    }

    /// Hears all answers, so that no connection is out of step, and gathers the commands that are asked again: whether
    /// they wait before, and why.
    fn hear_parts(&mut self, op: &Op<'_>) -> Result<Option<(bool, String)>, Fault> {
        self.again.clear();
        let (mut refused, mut why) = (None, None);
        for place in 0..self.parts.len() {
            let part = self.parts[place];
            match self.hear_part(op, part) {
                Ok(()) => {}
                Err(Fault::Refused(words)) => match self.next(part.slot, part.to, &words) {
                    Ok((to, waits)) => {
                        self.again.push(Part { to, ..part });
                        let waits = waits || why.as_ref().is_some_and(|(waits, _)| *waits);
                        why = Some((waits, words));
                    }
                    Err(fault) => {
                        refused.get_or_insert(fault);
                    }
                },
                Err(fault) => return Err(fault),
            }
        }
        refused.map_or(Ok(why), Err)
    }

    fn hear_part(&mut self, op: &Op<'_>, part: Part) -> Result<(), Fault> {
        let ClusterSession { nodes, order, found, numbers, .. } = self;
        let indexes = order[part.first as usize..part.end as usize].iter().map(|&(_, index)| index as usize);
        match nodes[usize::from(part.to.node)].session.answer()? {
            Reply::Done => Ok(()),
            Reply::Values(values) => {
                let values = indexes.zip(values.iter()).filter_map(|(index, value)| Some((index, value?)));
                values.for_each(|(index, value)| found.put(index, value));
                Ok(())
            }
            Reply::Numbers(told) => {
                indexes.zip(told).for_each(|(index, number)| numbers[index] = *number);
                Ok(())
            }
            other => Err(Fault::Garbled(format!("a part of {} was answered {other:?}", op.name()))),
        }
    }
}

impl Session for ClusterSession<'_> {
    fn ask<'s>(&'s mut self, op: &Op<'_>) -> Result<Reply<'s>, Fault> {
        match *op {
            Op::GetVersion(key) => self.get_version(key),
            Op::Cas { key, version, value } => self.check_and_set(key, version, value),
            Op::GetMany(keys) => {
                self.ask_many(op, slots_of(keys), false)?;
                Ok(Reply::Values(self.found.lend()))
            }
            Op::NumberMany(keys) => {
                self.ask_many(op, slots_of(keys), false)?;
                Ok(Reply::Numbers(&self.numbers))
            }
            Op::SetMany(pairs) => self.ask_many(op, slots_of(pairs.keys), false).map(|()| Reply::Done),
            Op::AddMany(sums) => self.ask_many(op, slots_of(sums.keys()), true).map(|()| Reply::Done),
            Op::Tally { records, fields, .. } => {
                let each = (0..records.len()).flat_map(|record| {
                    let slot = slot(records.get(record));
                    std::iter::repeat_n(slot, fields.len())
                });
                self.ask_many(op, each, true).map(|()| Reply::Done)
            }
            _ => self.ask_one(op, slot(op.key())),
        }
    }

    fn flush(&mut self) -> Result<(), Fault> {
        Ok(())
    }

    fn commands(&self) -> Option<u64> {
        let of = |node: &Node| node.session.commands().map(|all| all - node.greeted);
        self.nodes.iter().map(of).sum()
    }
}

fn slots_of(keys: Keys<'_>) -> impl Iterator<Item = u16> + '_ {
    (0..keys.len()).map(move |index| slot(keys.get(index)))
}

/// How often one question was sent again, and since when it waits.
#[derive(Default)]
struct Tries {
    redirects: u32,
    pauses: u32,
    deadline: Option<Deadline>,
}

impl Tries {
    /// Returns when it may be sent again. An error has the last refusal.
    fn again(&mut self, waits: bool, words: &str, patience: Duration) -> Result<(), Fault> {
        if !waits {
            self.redirects += 1;
            if self.redirects > REDIRECTS_MAX {
                return Err(Fault::Refused(format!("{REDIRECTS_MAX} redirects led to no node; the last one: {words}")));
            }
            if self.redirects <= REDIRECTS_AT_ONCE {
                return Ok(());
            }
        }
        let deadline = *self.deadline.get_or_insert_with(|| Deadline::within(patience));
        if deadline.left().is_err() {
            return Err(Fault::Refused(format!("not answered within {} s: {words}", patience.as_secs_f64())));
        }
        sleep((PAUSE_MIN * (1 << self.pauses.min(6))).min(PAUSE_MAX));
        self.pauses += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redirects_end() {
        let mut tries = Tries::default();
        let patience = Duration::from_secs(60);
        for _ in 0..REDIRECTS_MAX {
            tries.again(false, "MOVED 1 h:1", patience).unwrap();
        }
        let words = tries.again(false, "MOVED 1 h:1", patience).unwrap_err().to_string();
        assert!(words.contains("16 redirects") && words.contains("MOVED 1 h:1"), "{words}");
    }

    #[test]
    fn waiting_ends() {
        let mut tries = Tries::default();
        let patience = Duration::from_millis(20);
        let waited = (0..1_000).map(|_| tries.again(true, "TRYAGAIN", patience)).find_map(Result::err);
        let words = waited.expect("it ends").to_string();
        assert!(words.contains("not answered within 0.02 s: TRYAGAIN"), "{words}");
    }
}
