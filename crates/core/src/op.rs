//! What a client may ask of a store, and what it may hear: bytes lent, never owned, so that asking allocates nothing.

use std::fmt;
use std::io;

use super::plain::is_harmful;

/// One question to a store. All keys, fields and values are bytes.
#[derive(Clone, Copy, Debug)]
pub enum Op<'a> {
    /// The value of a key: `Value` or `Missing`.
    Get(&'a [u8]),
    /// The values of many keys, in their order: `ManyValues`.
    GetMany(Keys<'a>),
    /// Puts a value in place of whatever there was: `Done`. With `ttl_s` it is gone after so many seconds.
    Set { key: &'a [u8], value: &'a [u8], ttl_s: Option<u32> },
    /// Sets many keys: `Done`. Not necessarily all or nothing.
    SetMany(Pairs<'a>),
    /// Sets a key that is not there: `Done`, or `Conflict` where it is.
    SetIfAbsent { key: &'a [u8], value: &'a [u8] },
    /// Removes a key: `Done`, or `Missing` where there is none.
    Delete(&'a [u8]),
    /// Adds to a counter, which starts at 0: `Number`, its new value.
    Increment { key: &'a [u8], by: i64 },
    /// Adds 0 or more to a counter, which starts at 0, and does not answer with its new value: `Done`. A sum past the
    /// last number that the store counts to may go unnoticed.
    Add { key: &'a [u8], by: i64 },
    /// Adds to many counters as `Add` does, each key once: `Done`. Not necessarily all or nothing.
    AddMany(Sums<'a>),
    /// A counter's value: `Number` or `Missing`. Not every store keeps counters as text that `Get` would understand.
    Number(&'a [u8]),
    /// Many counters' values, in the order of the keys: `Numbers`.
    NumberMany(Keys<'a>),
    /// A value with a version to be given to `Cas`: `Versioned` or `Missing`.
    GetVersion(&'a [u8]),
    /// Sets a key if nobody has changed it since `GetVersion` answered `version`: `Done` or `Conflict`.
    Cas { key: &'a [u8], version: u64, value: &'a [u8] },
    /// Adds `by` to every one of `fields` in every one of `records`, by the store's own means (HINCRBY, $inc, upsert):
    /// `Done`.
    Tally { records: Keys<'a>, fields: Keys<'a>, by: i64 },
    /// The fields of one tallied record and their counts in decimal: `Rows`, in no particular order, or `Missing`.
    ReadTally(&'a [u8]),
    /// At most `limit` pairs from the first key that is not less than `from`, in byte order: `Rows`.
    Scan { from: &'a [u8], limit: u32 },
}

/// Many questions that differ in the bytes of their keys and values only.
#[derive(Clone, Copy, Debug)]
pub struct Alike<'a> {
    pub count: u32,
    /// Of one of them.
    pub op: Op<'a>,
}

/// A question as a protocol says it, with places for its key and value.
#[derive(Clone, Copy, Debug)]
pub struct Pattern<'a> {
    pub bytes: &'a [u8],
    pub key_at: usize,
    /// Where there is a value.
    pub value_at: usize,
}

impl Op<'_> {
    /// Whether it leaves what the store holds as it is.
    #[inline]
    pub fn is_read(&self) -> bool {
        matches!(
            self,
            Op::Get(_)
                | Op::GetMany(_)
                | Op::Number(_)
                | Op::NumberMany(_)
                | Op::GetVersion(_)
                | Op::ReadTally(_)
                | Op::Scan { .. }
        )
    }

    /// The op's name as reports and messages say it.
    #[inline]
    pub fn name(&self) -> &'static str {
        match self {
            Op::Get(_) => "get",
            Op::GetMany(_) => "get-many",
            Op::Set { ttl_s: None, .. } => "set",
            Op::Set { ttl_s: Some(_), .. } => "set with a time to live",
            Op::SetMany(_) => "set-many",
            Op::SetIfAbsent { .. } => "set-if-absent",
            Op::Delete(_) => "delete",
            Op::Increment { .. } => "increment",
            Op::Add { .. } => "add",
            Op::AddMany(_) => "add-many",
            Op::Number(_) => "number",
            Op::NumberMany(_) => "number-many",
            Op::GetVersion(_) => "get-version",
            Op::Cas { .. } => "check-and-set",
            Op::Tally { .. } => "tally",
            Op::ReadTally(_) => "read-tally",
            Op::Scan { .. } => "scan",
        }
    }

    /// The key that a message about this op names: its first one.
    #[inline]
    pub fn key(&self) -> &[u8] {
        match self {
            Op::Get(key) | Op::Delete(key) | Op::Number(key) | Op::GetVersion(key) | Op::ReadTally(key) => key,
            Op::Set { key, .. } | Op::SetIfAbsent { key, .. } | Op::Cas { key, .. } => key,
            Op::Increment { key, .. } | Op::Add { key, .. } => key,
            Op::GetMany(keys) | Op::NumberMany(keys) => keys.first(),
            Op::SetMany(pairs) => pairs.keys.first(),
            Op::AddMany(sums) => sums.keys().first(),
            Op::Tally { records, .. } => records.first(),
            Op::Scan { from, .. } => from,
        }
    }

    /// Bytes of keys, fields and values that the client hands over, whatever the store's protocol makes of them.
    #[inline]
    pub fn bytes(&self) -> usize {
        match self {
            Op::Get(key) | Op::Delete(key) | Op::Number(key) | Op::GetVersion(key) | Op::ReadTally(key) => key.len(),
            Op::Set { key, value, .. } | Op::SetIfAbsent { key, value } | Op::Cas { key, value, .. } => {
                key.len() + value.len()
            }
            Op::Increment { key, .. } | Op::Add { key, .. } => key.len() + size_of::<i64>(),
            Op::AddMany(sums) => sums.keys().bytes() + sums.len() * size_of::<i64>(),
            Op::GetMany(keys) | Op::NumberMany(keys) => keys.bytes(),
            Op::SetMany(pairs) => pairs.keys.bytes() + pairs.values.bytes(),
            Op::Tally { records, fields, .. } => records.bytes() + fields.bytes(),
            Op::Scan { from, .. } => from.len(),
        }
    }
}

/// A store's answer. It borrows from the session and lives until the next question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Reply<'a> {
    Done,
    Value(&'a [u8]),
    Missing,
    Number(i64),
    Values(ManyValues<'a>),
    Numbers(&'a [Option<i64>]),
    /// A value and its version, which means something to `Cas` on the same session only.
    Versioned(&'a [u8], u64),
    /// Somebody was there first: the key exists, or has changed.
    Conflict,
    Rows(Pairs<'a>),
}

impl Reply<'_> {
    /// Bytes of values that came back, whatever the store's protocol made of them.
    #[inline]
    pub fn bytes(&self) -> usize {
        match self {
            Reply::Done | Reply::Missing | Reply::Conflict => 0,
            Reply::Value(value) | Reply::Versioned(value, _) => value.len(),
            Reply::Number(_) => size_of::<i64>(),
            Reply::Numbers(numbers) => numbers.len() * size_of::<i64>(),
            Reply::Values(values) => values.0.bytes.len(),
            Reply::Rows(pairs) => pairs.keys.bytes() + pairs.values.bytes(),
        }
    }
}

/// A list of byte strings, lent. One pointer wide: ops are handed on by value in the hot path, and every word of them
/// costs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Keys<'a>(&'a KeyList);

impl<'a> Keys<'a> {
    pub fn len(&self) -> usize {
        self.0.ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.ends.is_empty()
    }

    #[inline]
    pub fn get(&self, index: usize) -> &'a [u8] {
        let start = if index == 0 { 0 } else { self.0.ends[index - 1] };
        &self.0.bytes[start..self.0.ends[index]]
    }

    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &'a [u8]> + use<'a> {
        let keys = *self;
        (0..keys.len()).map(move |index| keys.get(index))
    }

    fn first(&self) -> &'a [u8] {
        if self.is_empty() { b"" } else { self.get(0) }
    }

    #[inline]
    fn bytes(&self) -> usize {
        self.0.bytes.len()
    }
}

impl Default for Keys<'_> {
    fn default() -> Self {
        static NONE: KeyList = KeyList { bytes: Vec::new(), ends: Vec::new() };
        NONE.lend()
    }
}

/// An owned list of byte strings that lends itself as [`Keys`]: string `i` ends at `ends[i]` and begins where the one
/// before it ends. Clearing keeps its memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyList {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl KeyList {
    #[inline]
    pub fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    pub fn lend(&self) -> Keys<'_> {
        Keys(self)
    }
}

impl<'a> FromIterator<&'a [u8]> for KeyList {
    #[inline]
    fn from_iter<T: IntoIterator<Item = &'a [u8]>>(keys: T) -> Self {
        let mut list = KeyList::default();
        keys.into_iter().for_each(|key| list.push(key));
        list
    }
}

/// Keys and their values, as many of the one as of the other.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Pairs<'a> {
    pub keys: Keys<'a>,
    pub values: Keys<'a>,
}

impl<'a> Pairs<'a> {
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a [u8], &'a [u8])> + use<'a> {
        self.keys.iter().zip(self.values.iter())
    }
}

/// Keys and what is added to each, no key twice. One pointer wide, as [`Keys`] is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sums<'a>(&'a SumList);

impl<'a> Sums<'a> {
    pub fn len(&self) -> usize {
        self.0.by.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.by.is_empty()
    }

    #[inline]
    pub fn keys(&self) -> Keys<'a> {
        self.0.keys.lend()
    }

    #[inline]
    pub fn get(&self, index: usize) -> (&'a [u8], i64) {
        (self.keys().get(index), self.0.by[index])
    }

    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&'a [u8], i64)> + use<'a> {
        self.keys().iter().zip(self.0.by.iter().copied())
    }
}

/// An owned list that lends itself as [`Sums`]. Clearing keeps its memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SumList {
    keys: KeyList,
    by: Vec<i64>,
}

impl SumList {
    /// Puts a key at the end, which must not be there yet.
    #[inline]
    pub fn push(&mut self, key: &[u8], by: i64) {
        self.keys.push(key);
        self.by.push(by);
    }

    pub fn len(&self) -> usize {
        self.by.len()
    }

    pub fn is_empty(&self) -> bool {
        self.by.is_empty()
    }

    pub fn clear(&mut self) {
        self.keys.clear();
        self.by.clear();
    }

    pub fn lend(&self) -> Sums<'_> {
        Sums(self)
    }
}

/// Answers to `GetMany`: a value, or nothing where the key was missing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ManyValues<'a>(&'a ValueList);

impl<'a> ManyValues<'a> {
    pub fn len(&self) -> usize {
        self.0.spans.len()
    }

    pub fn is_empty(&self) -> bool {
        self.0.spans.is_empty()
    }

    #[inline]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.0.spans[index].map(|(start, end)| &self.0.bytes[start..end])
    }

    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Option<&'a [u8]>> + use<'a> {
        let values = *self;
        (0..values.len()).map(move |index| values.get(index))
    }
}

/// An owned list of values, some missing, that lends itself as [`ManyValues`]; clearing keeps its memory.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValueList {
    bytes: Vec<u8>,
    spans: Vec<Option<(usize, usize)>>,
}

impl ValueList {
    #[inline]
    pub fn push(&mut self, value: Option<&[u8]>) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value.unwrap_or_default());
        self.spans.push(value.map(|_| (start, self.bytes.len())));
    }

    /// Makes room for `count` missing values, to be put in place one by one in any order.
    #[inline]
    pub fn reset(&mut self, count: usize) {
        self.clear();
        self.spans.resize(count, None);
    }

    #[inline]
    pub fn put(&mut self, index: usize, value: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(value);
        self.spans[index] = Some((start, self.bytes.len()));
    }

    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    pub fn lend(&self) -> ManyValues<'_> {
        ManyValues(self)
    }
}

/// Why a store did not answer. An enum, because code branches on it.
#[derive(Debug)]
pub enum Fault {
    /// The store has no such op; the text says which, or which limit of the store stands in the way.
    Unsupported(String),
    /// The store answered that it will not: its own words.
    Refused(String),
    /// The connection or the file is gone.
    Lost(io::Error),
    /// What came back is not of the store's protocol or format.
    Garbled(String),
}

impl Fault {
    /// An op that `store` has no means for.
    pub fn unsupported(store: &str, op: &Op<'_>) -> Fault {
        Fault::Unsupported(format!("{store} has no {}", op.name()))
    }

    /// An error of a store's library, in its own words.
    pub fn refused(error: impl fmt::Display) -> Fault {
        Fault::Refused(error.to_string())
    }
}

/// Whether a server's words say that it does not know a command.
pub fn is_unknown_command(words: &str) -> bool {
    words == "ERROR" || ["ERR unknown command", "Unknown command"].iter().any(|begins| words.starts_with(begins))
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Unsupported(what) => write!(out, "unsupported: {what}"),
            Fault::Refused(words) => write!(out, "refused: {words}"),
            Fault::Lost(error) if error.kind() == io::ErrorKind::StorageFull => write!(out, "disk full: {error}"),
            Fault::Lost(error) if error.get_ref().is_some_and(|inner| inner.is::<NoConnection>()) => {
                write!(out, "{error}")
            }
            Fault::Lost(error) => write!(out, "connection lost: {error}"),
            Fault::Garbled(what) => write!(out, "garbled answer: {what}"),
        }
    }
}

impl std::error::Error for Fault {}

/// A connection that there never was: where to, and why not. It stands in a [`Fault::Lost`].
#[derive(Debug)]
struct NoConnection(String);

impl fmt::Display for NoConnection {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl std::error::Error for NoConnection {}

impl Fault {
    /// "cannot connect to redis at 127.0.0.1:6379: connection refused".
    pub fn no_connection(server: &str, error: &io::Error) -> Fault {
        let words = format!("cannot connect to {server}: {}", plainly(error));
        Fault::Lost(io::Error::new(error.kind(), NoConnection(words)))
    }
}

/// An error of the system without its number, as the end of a sentence.
fn plainly(error: &io::Error) -> String {
    let words = error.to_string();
    // A client library may hand over the system's words alone.
    let Some((words, _)) = words.split_once(" (os error") else { return words };
    let first = words.chars().next().map_or(0, char::len_utf8);
    format!("{}{}", words[..first].to_lowercase(), &words[first..])
}

impl From<io::Error> for Fault {
    fn from(error: io::Error) -> Self {
        Fault::Lost(error)
    }
}

/// An answer that a client knows to be wrong the moment it hears it.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Wrong {
    /// The key, readable: bytes that are not UTF-8 are escaped.
    pub key: String,
    pub expected: String,
    pub found: String,
}

/// Bytes as a person may read them in one line: escaped where they are not plain text, cut at `limit` bytes.
pub fn readable(bytes: &[u8], limit: usize) -> String {
    let cut = bytes.len() > limit;
    let shown = if cut { &bytes[..limit] } else { bytes };
    let mut text = String::new();
    for chunk in shown.utf8_chunks() {
        for character in chunk.valid().chars() {
            if is_harmful(character) {
                text.extend(character.escape_default());
            } else {
                text.push(character);
            }
        }
        if !(cut && chunk.invalid().len() < 4 && chunk.invalid().as_ptr_range().end == shown.as_ptr_range().end) {
            chunk.invalid().iter().for_each(|byte| text.push_str(&format!("\\x{byte:02x}")));
        }
    }
    if cut {
        text.push_str(&format!("... ({} bytes)", bytes.len()));
    }
    text
}
