//! What a wake-up comes down to once its bytes are here: hear all answers that are whole, and make the next batch of
//! questions. Written once for all clients and codecs, and compiled anew for those that are known by their types.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::super::pace::{Lateness, Moments};
use super::super::{LoadStats, Stopped};
use crate::jobs::{Ask, Client, Heard};
use crate::model::hist::Times;
use crate::model::op::{Fault, Reply};
use crate::protocol::{self, Codec};

/// Where one client stands.
pub(super) struct State {
    /// Questions that are not answered yet.
    pub(super) under_way: u32,
    /// Of each of these, where they come at a rate: when it was due and sent, oldest first.
    pub(super) stamps: VecDeque<Stamp>,
    /// Of requests whose first question is answered and whose next one is to be asked at once.
    pub(super) owed: VecDeque<Stamp>,
    /// And when the last of those before was answered.
    answered_ns: u64,
    /// When they were asked.
    asked: Instant,
    /// Bytes that were read of an answer whose end is still to come: the codec keeps what they said.
    pub(super) gathered: usize,
    /// It has nothing more to ask.
    ended: bool,
    /// How often its connection was opened anew since the last answer.
    pub(super) tries: u32,
}

impl State {
    pub(super) fn new() -> State {
        let (stamps, owed) = (VecDeque::new(), VecDeque::new());
        let (under_way, answered_ns, gathered, ended, tries) = (0, 0, 0, false, 0);
        State { under_way, stamps, owed, answered_ns, asked: Instant::now(), gathered, ended, tries }
    }

    /// Since when the oldest of what is under way is waited for; `began` is when times at a rate begin.
    pub(super) fn waiting_since(&self, began: Instant) -> Option<Instant> {
        if self.under_way == 0 {
            return None;
        }
        let at_a_rate = |stamp: &Stamp| {
            let since_ns = if stamp.sent_ns == NOT_SENT { stamp.due_ns } else { stamp.sent_ns };
            began + Duration::from_nanos(since_ns)
        };
        Some(self.stamps.front().map_or(self.asked, at_a_rate))
    }

    /// Nothing more is asked, and nothing is awaited.
    pub(super) fn over(&self) -> bool {
        self.ended && self.under_way == 0
    }
}

/// When one request was due and sent, in nanoseconds from the beginning.
#[derive(Clone, Copy)]
pub(super) struct Stamp {
    pub(super) due_ns: u64,
    /// `NOT_SENT` until it is.
    pub(super) sent_ns: u64,
    /// When its service began, once a question of it is answered.
    pub(super) first_ns: Option<u64>,
}

pub(super) const NOT_SENT: u64 = u64::MAX;

/// What all clients of a thread share while they talk.
pub(super) struct Talk<'a> {
    /// Questions that are asked at once when all before are answered; none where they come when they are due.
    pub(super) depth: u32,
    /// When the bytes came.
    pub(super) now: Instant,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) counts: &'a mut Counts,
}

/// What is counted while working. Nothing of it allocates.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) seen: LoadStats,
    pub(super) waited: Duration,
    pub(super) times: Times,
    /// Where requests come at a rate: what is counted of it, and since when.
    pub(super) lateness: Option<(Lateness, Instant)>,
    /// At a rate: requests that are answered to their end.
    pub(super) answered: u64,
    /// At a rate: which of the answers that came together were not the last of their requests.
    pub(super) unfinished: Vec<u32>,
    /// Clients that are not at their end.
    pub(super) live: usize,
}

/// Why a conversation cannot go on.
pub(super) enum Trouble {
    /// The connection is of no more use.
    Connection(Fault),
    Other(Stopped),
}

/// The bytes that were taken: the beginning of an answer stays until its end has come.
#[inline]
pub(super) fn exchange<C: Client + ?Sized, K: Codec + ?Sized>(
    client: &mut C,
    codec: &mut K,
    state: &mut State,
    bytes: &[u8],
    talk: &mut Talk<'_>,
) -> Result<usize, Trouble> {
    let was_over = state.over();
    let (used, news) = hear(client, codec, &mut state.gathered, bytes, talk)?;
    if news.answers > 0 {
        take_times(state, news.answers, talk);
        state.under_way -= news.answers;
        state.tries = 0;
        talk.counts.seen.metrics.bytes_in += news.bytes_in;
        talk.counts.seen.metrics.units += news.units;
    }
    if state.under_way == 0 && !state.ended && talk.depth > 0 {
        ask(client, codec, state, talk)?;
    }
    talk.counts.live -= usize::from(state.over() && !was_over);
    Ok(used)
}

#[inline(always)]
fn hear<C: Client + ?Sized, K: Codec + ?Sized>(
    client: &mut C,
    codec: &mut K,
    gathered: &mut usize,
    bytes: &[u8],
    talk: &mut Talk<'_>,
) -> Result<(usize, News), Trouble> {
    let (mut used, mut news) = (0, News::default());
    if client.sets_only() {
        (news.answers, used) = codec.hear_done(bytes);
        news.units = client.done(news.answers);
    }
    while used < bytes.len() {
        let rest = &bytes[used..];
        let taken = match codec.hear_plain(rest) {
            Some((taken, reply)) => {
                news.take(client, reply, talk.counts)?;
                *gathered = 0;
                taken
            }
            None => {
                let (taken, is_part) = hear_in_full(client, codec, rest, talk, &mut news)?;
                *gathered = if is_part { *gathered + taken } else { 0 };
                taken
            }
        };
        if taken == 0 {
            break;
        }
        used += taken;
    }
    Ok((used, news))
}

/// A batch has one time for all of it; what came at a rate has each its own. A request's own service begins when it is
/// sent, or when those before it on its connection are answered, whichever comes later; it ends with its last answer.
#[inline(always)]
fn take_times(state: &mut State, answers: u32, talk: &mut Talk<'_>) {
    let Counts { times, waited, lateness, answered, unfinished, .. } = &mut *talk.counts;
    let Some((lateness, began)) = lateness else {
        let took = talk.now.duration_since(state.asked);
        times.record_many(took.as_nanos() as u64, u64::from(answers));
        *waited += took * answers;
        return;
    };
    let answered_ns = talk.now.duration_since(*began).as_nanos() as u64;
    let mut unfinished = unfinished.drain(..).peekable();
    for (place, stamp) in (0..).zip(state.stamps.drain(..answers as usize)) {
        let Stamp { due_ns, sent_ns, .. } = stamp;
        let first_ns = stamp.first_ns.unwrap_or(sent_ns.max(state.answered_ns));
        state.answered_ns = answered_ns;
        if unfinished.next_if_eq(&place).is_some() {
            state.owed.push_back(Stamp { first_ns: Some(first_ns), ..stamp });
            continue;
        }
        *answered += 1;
        if let Some(service_ns) = lateness.note(Moments { due_ns, sent_ns, first_ns, answered_ns }) {
            times.record(service_ns);
            *waited += Duration::from_nanos(service_ns);
        }
    }
}

/// What one read has brought.
#[derive(Default)]
struct News {
    answers: u32,
    bytes_in: u64,
    units: u64,
}

impl News {
    #[inline(always)]
    fn take<C: Client + ?Sized>(
        &mut self,
        client: &mut C,
        reply: Reply<'_>,
        counts: &mut Counts,
    ) -> Result<(), Trouble> {
        self.answers += 1;
        self.bytes_in += reply.bytes() as u64;
        match client.hear(&reply) {
            Heard::Unit { counted } => self.units += counted,
            Heard::More => counts.unfinished.extend(counts.lateness.is_some().then_some(self.answers - 1)),
            Heard::Wrong(wrong) => return Err(Trouble::Other(Stopped::Wrong(wrong))),
        }
        Ok(())
    }
}

/// An answer that is not of the plainest kind. The bytes that it took: none where its end has not come; and whether
/// more of it is to come.
#[inline(never)]
fn hear_in_full<C: Client + ?Sized, K: Codec + ?Sized>(
    client: &mut C,
    codec: &mut K,
    bytes: &[u8],
    talk: &mut Talk<'_>,
    news: &mut News,
) -> Result<(usize, bool), Trouble> {
    let Some((taken, heard)) = codec.hear(bytes, talk.out).map_err(Trouble::Connection)? else {
        return Ok((0, true));
    };
    let is_part = matches!(heard, protocol::Decoded::Again);
    match heard {
        protocol::Decoded::Reply(reply) => news.take(client, reply, talk.counts)?,
        protocol::Decoded::Refused(words) | protocol::Decoded::PasswordNeeded { words, .. } => {
            return Err(Trouble::Connection(Fault::Refused(words)));
        }
        protocol::Decoded::Again | protocol::Decoded::Greeted => {}
    }
    Ok((taken, is_part))
}

/// Makes the next batch of questions, up to the depth.
#[inline(always)]
fn ask<C: Client + ?Sized, K: Codec + ?Sized>(
    client: &mut C,
    codec: &mut K,
    state: &mut State,
    talk: &mut Talk<'_>,
) -> Result<(), Trouble> {
    let (mut asked, mut bytes_out, mut units) = (0, 0, 0);
    if let Some(alike) = client.alike(talk.depth)
        && let Some(pattern) = codec.pattern(&alike)
    {
        (asked, bytes_out) = (alike.count, u64::from(alike.count) * alike.op.bytes() as u64);
        client.write(asked, pattern, talk.out);
    }
    while asked < talk.depth {
        // Looked at where it lies: moving an op costs more than most of what is done with it.
        match &client.ask() {
            Ask::Op(op) => {
                bytes_out += op.bytes() as u64;
                let written = codec.say(op, talk.out);
                written.map_err(|fault| Trouble::Other(Stopped::store(op.name(), op.key(), fault)))?;
                asked += 1;
            }
            Ask::Unit => units += 1,
            Ask::Wait => break,
            Ask::Fail(fault) => return Err(Trouble::Other(Stopped::Input(fault.clone()))),
            Ask::End => {
                state.ended = true;
                break;
            }
        }
    }
    state.under_way = asked;
    // Since the answers before came: reading the clock once more would cost more than one question takes to make.
    state.asked = talk.now;
    talk.counts.seen.metrics.ops += u64::from(asked);
    talk.counts.seen.metrics.bytes_out += bytes_out;
    talk.counts.seen.metrics.units += units;
    Ok(())
}
