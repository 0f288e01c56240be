//! Protocols as bytes to words and words to bytes: no sockets, no clock, and no allocation an op once warm.

use crate::model::op::{Alike, Fault, Op, Pattern, Reply};

mod asked;
pub mod memcache;
pub mod mysql;
pub mod postgres;
mod prepared;
pub mod requests;
pub mod resp;
mod scram;
pub mod sql;
mod text;
pub mod tyrant;
mod waiting;

/// One connection's side of a protocol. It remembers which ops are unanswered, and answers come in their order.
///
/// What a server sends is hostile until checked: a length is never trusted with memory before its bytes have come.
pub trait Codec: Send {
    /// Appends what must be said before the first op (AUTH, SELECT). Its answers are heard first, as
    /// `Decoded::Greeted`.
    fn hello(&mut self, out: &mut Vec<u8>);
    /// Appends the bytes that ask `op`.
    fn say(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault>;
    /// How questions are said that are all alike, and counts them as said: whoever asks writes them by himself. `None`
    /// is for `say`.
    #[inline(always)]
    fn pattern(&mut self, _alike: &Alike<'_>) -> Option<Pattern<'_>> {
        None
    }
    /// How many sets the bytes begin to answer as plainly as can be, and the bytes that these answers took. What
    /// follows is for `hear_plain`.
    #[inline(always)]
    fn hear_done(&mut self, _bytes: &[u8]) -> (u32, usize) {
        (0, 0)
    }
    /// The first answer in `bytes` where it is the plainest of its kind and all there: the bytes it took. `None` is for
    /// `hear`.
    #[inline(always)]
    fn hear_plain<'b>(&mut self, _bytes: &'b [u8]) -> Option<(usize, Reply<'b>)> {
        None
    }
    /// Reads the first answer in `bytes`, if it is all there: the bytes it took, and what it said. May append to `out`
    /// what has to be asked next where one op takes two questions, or what was held back until this answer: it must be
    /// sent. A fault means that the connection is of no more use.
    fn hear<'b>(&'b mut self, bytes: &'b [u8], out: &mut Vec<u8>) -> Result<Option<(usize, Decoded<'b>)>, Fault>;
    /// Itself, where it is one of those.
    fn known(&mut self) -> Option<KnownCodec<'_>> {
        None
    }
    /// What a server is told before its connection is closed.
    fn goodbye(&self) -> &'static [u8] {
        b""
    }
    /// Ops (and greetings) still unanswered.
    fn pending(&self) -> usize;
    /// Commands sent so far: an op may take several.
    fn commands(&self) -> u64;
}

/// The codecs that are asked most, as what they are: whoever asks much then asks them directly.
pub enum KnownCodec<'a> {
    Resp(&'a mut resp::Resp),
    Text(&'a mut memcache::Memcache),
    Postgres(&'a mut postgres::Postgres),
    Mysql(&'a mut mysql::Mysql),
}

/// Who a connection says it is, and to which database it wants to speak.
pub struct Credentials {
    pub user: String,
    pub password: Option<String>,
    pub database: String,
    /// Random text for this one login.
    pub nonce: String,
}

/// How a login stands in a URL, of a server whose users have names and of one that has a password alone.
pub const OF_A_USER: &str = "USER:PASSWORD";
pub const OF_NO_USER: &str = ":PASSWORD";

/// What some of a connection's bytes said.
#[derive(Debug, PartialEq)]
pub enum Decoded<'b> {
    Reply(Reply<'b>),
    /// The server will not do this one op; the connection is still good.
    Refused(String),
    /// The server wants a password, or another one: how a login stands in its URL, and its own words.
    PasswordNeeded {
        login: &'static str,
        words: String,
    },
    /// Part of the answer: these bytes are dealt with, the reply is still to come (or `out` asks on).
    Again,
    /// The server took a greeting.
    Greeted,
}
