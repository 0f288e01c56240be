//! The forms in which recorded traffic comes, a row at a time out of its bytes. It must not know where the bytes come
//! from, nor what is done about a row.

use super::fields::{Fields, long};
use kvfair_core::op::readable;
use kvfair_core::units;

/// A form of recorded traffic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// <https://github.com/twitter/cache-trace>
    Twitter,
    /// <https://github.com/1a1a11a/libCacheSim>, as is the next one.
    LibCacheSim,
    Oracle,
    /// The README of the traces that ARC's authors gave out (Megiddo and Modha, FAST 2003).
    Arc,
}

/// By their names, as `--format` takes them.
pub const FORMS: &[(&str, Form)] =
    &[("twitter", Form::Twitter), ("libcachesim", Form::LibCacheSim), ("oracle", Form::Oracle), ("arc", Form::Arc)];

/// The names of `FORMS`.
pub const NAMES: &[&str] = &["twitter", "libcachesim", "oracle", "arc"];

impl Form {
    /// The first row of these bytes and its length; nothing where it is not whole, or bad. A line is whole with its LF.
    #[inline(always)]
    pub fn first(self, bytes: &[u8]) -> Option<(TraceRow<'_>, usize)> {
        match self {
            Form::Twitter => twitter(bytes),
            Form::LibCacheSim => libcachesim(bytes),
            Form::Oracle => oracle(bytes),
            Form::Arc => arc(bytes),
        }
    }

    /// The length of the first row of these bytes, good or bad; nothing where it is not whole.
    pub fn length_of_first(self, bytes: &[u8]) -> Option<usize> {
        match self {
            Form::Oracle => (bytes.len() >= ORACLE_BYTES).then_some(ORACLE_BYTES),
            _ => memchr::memchr(b'\n', bytes).map(|end| end + 1),
        }
    }

    /// Whether a line has as many fields as a row of this form, and a number as its first: good or bad, it is meant
    /// for one.
    pub fn is_meant_by(self, line: &[u8]) -> bool {
        let (separator, fields) = match self {
            Form::Twitter => (b',', TWITTER),
            Form::LibCacheSim => (b',', LIBCACHESIM),
            Form::Arc => (b' ', ARC),
            Form::Oracle => return false,
        };
        let mut parts = line.split(|byte| *byte == separator);
        parts.clone().count() == fields.len() && parts.next().is_some_and(|first| long(first).is_some())
    }

    /// Whether a row is a line.
    pub fn has_lines(self) -> bool {
        self != Form::Oracle
    }

    /// What is wrong with a row that was none; nothing where it says nothing.
    #[cold]
    pub fn fault_of(self, row: &[u8]) -> Option<String> {
        let line = row.strip_suffix(b"\n").unwrap_or(row);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match self {
            Form::Twitter => Some(wrong(line, b',', TWITTER)),
            Form::LibCacheSim if line.first() == Some(&b'#') => None,
            // A comma may be followed by a blank.
            Form::LibCacheSim => {
                let bare = String::from_utf8_lossy(line).replace(", ", ",");
                Some(wrong(bare.as_bytes(), b',', LIBCACHESIM))
            }
            Form::Arc => Some(wrong(line, b' ', ARC)),
            Form::Oracle => Some(match row.first_chunk::<ORACLE_BYTES>() {
                Some(record) => too_large(u64::from(number_in(record, 12))),
                None => {
                    let found = row.len();
                    format!("only {found} of the {ORACLE_BYTES} bytes of a record: the input is cut short")
                }
            }),
        }
    }
}

/// What one row says.
pub struct TraceRow<'a> {
    /// Seconds since the recording's own beginning; 0 in a form that has no times (`arc`).
    pub time_s: u64,
    pub key: Key<'a>,
    pub value_bytes: u32,
    /// What is asked for it; nothing where no store is asked.
    pub operation: Option<Operation>,
    /// 0 for a value that stays.
    pub ttl_s: u32,
    /// Requests that it stands for: of this object and those that follow it.
    pub count: u32,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Key<'a> {
    Text(&'a [u8]),
    Object(u64),
}

impl Key<'_> {
    /// Puts it as a store is given it in place of what was there: as it was recorded, an object's number in decimal.
    #[inline]
    pub fn write(&self, key: &mut Vec<u8>) {
        key.clear();
        match self {
            Key::Text(text) => key.extend_from_slice(text),
            Key::Object(object) => key.extend_from_slice(itoa::Buffer::new().format(*object).as_bytes()),
        }
    }
}

/// What is asked of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// And a set of the same key where nothing was found.
    Get,
    Set,
    /// A set if there is nothing yet.
    Add,
    Delete,
}

/// What is asked for each operation of `twitter`, the frequent ones first. Nothing for those that change a value that
/// the trace does not tell: what must come out would be anybody's guess.
const OPERATIONS: &[(&str, Option<Operation>)] = &[
    ("get", Some(Operation::Get)),
    ("set", Some(Operation::Set)),
    ("gets", Some(Operation::Get)),
    ("add", Some(Operation::Add)),
    ("cas", Some(Operation::Set)),
    ("replace", Some(Operation::Set)),
    ("delete", Some(Operation::Delete)),
    ("incr", None),
    ("decr", None),
    ("append", None),
    ("prepend", None),
];

/// The longest value: what Redis takes, and more than would be kept as one by most.
pub const VALUE_BYTES_MAX: u32 = 512 << 20;

/// The longest time to live that is passed on, 30 days: memcached takes a longer one for a date, and no replay lasts so
/// long.
const TTL_MAX_S: u64 = 30 * 24 * 3600;

/// `u32 time_s, u64 object, u32 size, i64 next_access`, packed, little-endian.
const ORACLE_BYTES: usize = 24;

/// The page of an `arc` trace, and the most of them in one request: as many bytes as the longest value has.
const ARC_PAGE_BYTES: u32 = 512;
pub const ARC_BLOCKS_MAX: u32 = VALUE_BYTES_MAX / ARC_PAGE_BYTES;

/// A field of a line, as a message calls it, and what it must be.
type Field = (&'static str, Is);

#[derive(Clone, Copy)]
enum Is {
    Number,
    /// Bytes of a value.
    Size,
    /// Blocks of one request.
    Count,
    Key,
    Operation,
    /// A number that may be negative.
    Signed,
}

const TWITTER: &[Field] = &[
    ("timestamp", Is::Number),
    ("key", Is::Key),
    ("key size", Is::Number),
    ("value size", Is::Size),
    ("client id", Is::Number),
    ("operation", Is::Operation),
    ("TTL", Is::Number),
];
const LIBCACHESIM: &[Field] =
    &[("time", Is::Number), ("object", Is::Number), ("size", Is::Size), ("next_access_vtime", Is::Signed)];
const ARC: &[Field] =
    &[("start_block", Is::Number), ("count", Is::Count), ("ignored", Is::Number), ("request", Is::Number)];

#[inline(always)]
fn twitter(bytes: &[u8]) -> Option<(TraceRow<'_>, usize)> {
    let fields = Fields::<7>::of_first(bytes, b',')?;
    let (time_s, key) = (fields.number(0)?, fields.text(1));
    // What is not needed must be there all the same: a key with a comma has moved it.
    fields.number(2).and(fields.number(4))?;
    let (value_bytes, operation) = (size(fields.number(3)?)?, operation(fields.text(5))?);
    let ttl_s = fields.number(6)?.min(TTL_MAX_S) as u32;
    let row = TraceRow { time_s, key: Key::Text(key), value_bytes, operation, ttl_s, count: 1 };
    (!key.is_empty()).then_some((row, fields.length()))
}

/// A comma may be followed by a blank.
#[inline(always)]
fn libcachesim(bytes: &[u8]) -> Option<(TraceRow<'_>, usize)> {
    let fields = Fields::<4>::of_first(bytes, b',')?;
    let (time_s, object) = (fields.number(0)?, fields.number_behind(b' ', 1)?);
    let value_bytes = size(fields.number_behind(b' ', 2)?)?;
    if fields.number_behind(b' ', 3).is_none() {
        let text = fields.text(3);
        long(text.trim_ascii_start().strip_prefix(b"-")?)?;
    }
    Some((plain_get(time_s, object, value_bytes, 1), fields.length()))
}

#[inline(always)]
fn oracle(bytes: &[u8]) -> Option<(TraceRow<'_>, usize)> {
    let record = bytes.first_chunk::<ORACLE_BYTES>()?;
    let object = u64::from(number_in(record, 4)) | u64::from(number_in(record, 8)) << 32;
    let value_bytes = size(u64::from(number_in(record, 12)))?;
    Some((plain_get(u64::from(number_in(record, 0)), object, value_bytes, 1), ORACLE_BYTES))
}

#[inline(always)]
fn number_in(record: &[u8; ORACLE_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([record[at], record[at + 1], record[at + 2], record[at + 3]])
}

#[inline(always)]
fn arc(bytes: &[u8]) -> Option<(TraceRow<'_>, usize)> {
    let fields = Fields::<4>::of_first(bytes, b' ')?;
    let (start, count) = (fields.number(0)?, u32::try_from(fields.number(1)?).ok()?);
    if count > ARC_BLOCKS_MAX {
        return None;
    }
    fields.number(2).and(fields.number(3))?;
    start.checked_add(u64::from(count))?;
    Some((plain_get(0, start, ARC_PAGE_BYTES, count), fields.length()))
}

#[inline(always)]
fn plain_get<'a>(time_s: u64, object: u64, value_bytes: u32, count: u32) -> TraceRow<'a> {
    TraceRow { time_s, key: Key::Object(object), value_bytes, operation: Some(Operation::Get), ttl_s: 0, count }
}

#[inline(always)]
fn size(bytes: u64) -> Option<u32> {
    u32::try_from(bytes).ok().filter(|bytes| *bytes <= VALUE_BYTES_MAX)
}

#[inline(always)]
fn operation(name: &[u8]) -> Option<Option<Operation>> {
    OPERATIONS.iter().find(|(known, _)| known.as_bytes() == name).map(|(_, operation)| *operation)
}

/// What is wrong with a line that could not be read.
#[cold]
fn wrong(line: &[u8], separator: u8, fields: &[Field]) -> String {
    if line.is_empty() {
        return "an empty line".to_string();
    }
    let found = line.split(|byte| *byte == separator).count();
    if found != fields.len() {
        let names: Vec<&str> = fields.iter().map(|(name, _)| *name).collect();
        let plural = if found == 1 { "" } else { "s" };
        return format!("{found} field{plural} instead of {}: {}", fields.len(), names.join(", "));
    }
    let parts = line.split(|byte| *byte == separator).zip(fields);
    let mut faults = parts.filter_map(|(part, (name, is))| Some(format!("{name}: {}", fault_of(part, *is)?)));
    faults.next().unwrap_or_else(|| "blocks beyond 64 bits".to_string())
}

fn fault_of(part: &[u8], is: Is) -> Option<String> {
    const SHOWN_BYTES: usize = 60;
    let shown = readable(part, SHOWN_BYTES);
    let number = long(part);
    match (is, number) {
        (Is::Key, _) => part.is_empty().then(|| "an empty key".to_string()),
        (Is::Operation, _) if operation(part).is_none() => {
            let known: Vec<&str> = OPERATIONS.iter().map(|(name, _)| *name).collect();
            Some(format!("'{shown}' is none of {}", known.join(", ")))
        }
        (Is::Operation, _) => None,
        (Is::Signed, None) if long(part.strip_prefix(b"-").unwrap_or(part)).is_some() => None,
        (_, None) => Some(format!("'{shown}' is no whole number of 64 bits")),
        (Is::Size, Some(bytes)) => size(bytes).is_none().then(|| too_large(bytes)),
        (Is::Count, Some(count)) if count > u64::from(ARC_BLOCKS_MAX) => {
            let (count, most) = (units::thousands(count), units::thousands(u64::from(ARC_BLOCKS_MAX)));
            Some(format!("{count} blocks in one request, of at most {most}"))
        }
        (Is::Number | Is::Signed | Is::Count, Some(_)) => None,
    }
}

#[cold]
fn too_large(bytes: u64) -> String {
    let (bytes, most) = (units::thousands(bytes), units::thousands(u64::from(VALUE_BYTES_MAX)));
    format!("a value of {bytes} bytes, of at most {most}")
}
