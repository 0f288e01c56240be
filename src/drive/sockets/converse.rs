//! What a wake-up comes down to once its bytes are here: hear all answers that are whole, and make the next batch of
//! questions. Written once for all clients and codecs, and compiled anew for those that are known by their types.

use std::time::{Duration, Instant};

use super::super::{Seen, Stopped};
use crate::jobs::{Ask, Client, Heard};
use crate::wire::{self, Codec};
use crate::words::hist::Times;
use crate::words::op::{Fault, Reply};

/// Where one client stands.
pub(super) struct State {
    /// Questions that are not answered yet.
    pub(super) under_way: u32,
    /// When they were asked.
    asked: Instant,
    /// It has nothing more to ask.
    ended: bool,
}

impl State {
    pub(super) fn new() -> State {
        State { under_way: 0, asked: Instant::now(), ended: false }
    }

    /// Nothing more is asked, and nothing is awaited.
    pub(super) fn over(&self) -> bool {
        self.ended && self.under_way == 0
    }
}

/// What all clients of a thread share while they talk.
pub(super) struct Talk<'a> {
    pub(super) depth: u32,
    /// When the bytes came.
    pub(super) now: Instant,
    pub(super) out: &'a mut Vec<u8>,
    pub(super) counts: &'a mut Counts,
}

/// What is counted while working. Nothing of it allocates.
#[derive(Default)]
pub(super) struct Counts {
    pub(super) seen: Seen,
    pub(super) waited: Duration,
    pub(super) times: Times,
    /// Clients that are not at their end.
    pub(super) live: usize,
}

/// Why a conversation cannot go on.
pub(super) enum Trouble {
    /// The connection is of no more use.
    Line(Fault),
    Other(Stopped),
}

/// The bytes that were taken: the beginning of an answer stays until its end has come.
#[inline]
pub(super) fn converse<C: Client + ?Sized, K: Codec + ?Sized>(
    client: &mut C,
    codec: &mut K,
    state: &mut State,
    bytes: &[u8],
    talk: &mut Talk<'_>,
) -> Result<usize, Trouble> {
    let was_over = state.over();
    let used = hear(client, codec, state, bytes, talk)?;
    if state.under_way == 0 && !state.ended {
        ask(client, codec, state, talk)?;
    }
    talk.counts.live -= usize::from(state.over() && !was_over);
    Ok(used)
}

#[inline(always)]
fn hear<C: Client + ?Sized, K: Codec + ?Sized>(
    client: &mut C,
    codec: &mut K,
    state: &mut State,
    bytes: &[u8],
    talk: &mut Talk<'_>,
) -> Result<usize, Trouble> {
    let (mut used, mut news) = (0, News::default());
    while used < bytes.len() {
        let rest = &bytes[used..];
        let taken = match codec.hear_plain(rest) {
            Some((taken, reply)) => {
                news.take(client, reply)?;
                taken
            }
            None => hear_in_full(client, codec, rest, talk.out, &mut news)?,
        };
        if taken == 0 {
            break;
        }
        used += taken;
    }
    if news.answers > 0 {
        let took = talk.now.duration_since(state.asked);
        state.under_way -= news.answers;
        talk.counts.seen.bytes_in += news.bytes_in;
        talk.counts.seen.units += news.units;
        talk.counts.times.record_many(took.as_nanos() as u64, u64::from(news.answers));
        talk.counts.waited += took * news.answers;
    }
    Ok(used)
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
    fn take<C: Client + ?Sized>(&mut self, client: &mut C, reply: Reply<'_>) -> Result<(), Trouble> {
        self.answers += 1;
        self.bytes_in += reply.bytes() as u64;
        match client.hear(reply) {
            Heard::Unit { counted } => self.units += counted,
            Heard::More => {}
            Heard::Wrong(wrong) => return Err(Trouble::Other(Stopped::Wrong(wrong))),
        }
        Ok(())
    }
}

/// An answer that is not of the plainest kind. The bytes that it took: none where its end has not come.
#[inline(never)]
fn hear_in_full<C: Client + ?Sized, K: Codec + ?Sized>(
    client: &mut C,
    codec: &mut K,
    bytes: &[u8],
    out: &mut Vec<u8>,
    news: &mut News,
) -> Result<usize, Trouble> {
    let Some((taken, heard)) = codec.hear(bytes, out).map_err(Trouble::Line)? else {
        return Ok(0);
    };
    match heard {
        wire::Heard::Reply(reply) => news.take(client, reply)?,
        wire::Heard::Refused(words) => return Err(Trouble::Line(Fault::Refused(words))),
        wire::Heard::Again | wire::Heard::Greeted => {}
    }
    Ok(taken)
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
    while asked < talk.depth {
        // Looked at where it lies: moving an op costs more than most of what is done with it.
        match &client.ask() {
            Ask::Op(op) => {
                bytes_out += op.bytes() as u64;
                let said = codec.say(op, talk.out);
                said.map_err(|fault| Trouble::Other(Stopped::store(op.name(), op.key(), fault)))?;
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
    // Making one question takes less than reading the clock once more.
    state.asked = if asked > 1 { Instant::now() } else { talk.now };
    talk.counts.seen.ops += u64::from(asked);
    talk.counts.seen.bytes_out += bytes_out;
    talk.counts.seen.units += units;
    Ok(())
}
