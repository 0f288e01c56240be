//! What is said for each op.

use super::super::super::text::{CRLF, push_number};
use super::super::frames::escape;
use super::{Awaited, Dialect, Memcache};
use crate::model::op::{Fault, Keys, Op, Pairs, Pattern};

/// What to ask.
impl Memcache {
    #[inline]
    pub(super) fn say_into(&mut self, op: &Op<'_>, out: &mut Vec<u8>) -> Result<(), Fault> {
        let awaited = match *op {
            Op::Get(key) if self.limits.goes_plainly(key) => self.get(key, out),
            Op::Get(key) => self.read(b"get", key, Awaited::Value, out)?,
            Op::Number(key) => self.read(b"get", key, Awaited::Count, out)?,
            Op::GetMany(keys) => self.read_many(op, keys, Awaited::Values(keys.len()), out)?,
            Op::NumberMany(keys) => self.read_many(op, keys, Awaited::Counts(keys.len()), out)?,
            Op::Set { ttl_s: Some(_), .. } | Op::GetVersion(_) | Op::Cas { .. }
                if self.dialect == Dialect::Borrowed =>
            {
                return Err(Fault::unsupported(self.limits.store, op));
            }
            Op::GetVersion(key) => self.read(b"gets", key, Awaited::Version, out)?,
            Op::Set { key, value, ttl_s: None } if self.limits.goes_plainly(key) => self.set(key, value, out)?,
            Op::Set { key, value, ttl_s } => {
                self.store(b"set", key, value, self.limits.lifetime_s(ttl_s)?, None, out)?;
                Awaited::Stored { commands: 1, largest: value.len() }
            }
            Op::SetMany(pairs) => self.set_many(op, pairs, out)?,
            Op::SetIfAbsent { key, value } => {
                self.store(b"add", key, value, 0, None, out)?;
                Awaited::Added { size: value.len() }
            }
            Op::Cas { key, version, value } => {
                self.store(b"cas", key, value, 0, Some(version), out)?;
                Awaited::Swapped { size: value.len() }
            }
            Op::Delete(key) => {
                self.limits.check_key(key)?;
                out.extend_from_slice(b"delete ");
                escape(key, out);
                out.extend_from_slice(b"\r\n");
                Awaited::Deleted
            }
            Op::Increment { key, by } => self.increment(op, key, by, out)?,
            Op::Add { key, by } => {
                self.add(op, key, by, out)?;
                Awaited::Sums(1)
            }
            Op::AddMany(sums) => self.add_many(op, sums, out)?,
            Op::Tally { .. } | Op::ReadTally(_) | Op::Scan { .. } => {
                return Err(Fault::unsupported(self.limits.store, op));
            }
        };
        self.commands += match awaited {
            Awaited::Stored { commands, .. } => commands as u64,
            Awaited::Sum { added: true } | Awaited::Lowered { .. } => 2,
            Awaited::Sums(count) => 2 * count as u64,
            _ => 1,
        };
        self.waiting.push(awaited);
        Ok(())
    }

    /// A key that needs no escaping, as nearly all do.
    #[inline(always)]
    fn get(&mut self, key: &[u8], out: &mut Vec<u8>) -> Awaited {
        self.prepared_get.say(key, out, |head| {
            head.extend_from_slice(b"get ");
            head.extend_from_slice(key);
            head.extend_from_slice(b"\r\n");
            4
        });
        self.asked.push(key);
        Awaited::Value
    }

    #[inline(always)]
    fn set(&mut self, key: &[u8], value: &[u8], out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.limits.check_value(value)?;
        self.prepared_set.say_with(key, value, CRLF, out, set_of(key, value));
        Ok(Awaited::Stored { commands: 1, largest: value.len() })
    }

    /// How many sets of such keys and values are said, which then count as said.
    #[inline(always)]
    pub(super) fn sets(&mut self, count: u32, key: &[u8], value: &[u8]) -> Option<Pattern<'_>> {
        let is_free = !matches!(self.waiting.front(), Some(Awaited::Sum { added: false }));
        if !is_free || self.limits.check_value(value).is_err() {
            return None;
        }
        let pattern = self.prepared_set.pattern_with(key, value, CRLF, set_of(key, value))?;
        self.commands += u64::from(count);
        self.waiting.push_many(Awaited::Stored { commands: 1, largest: value.len() }, count);
        Some(pattern)
    }

    #[inline]
    fn read(&mut self, command: &[u8], key: &[u8], awaited: Awaited, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        self.limits.check_key(key)?;
        out.extend_from_slice(command);
        self.name_asked(key, out);
        out.extend_from_slice(b"\r\n");
        Ok(awaited)
    }

    fn read_many(
        &mut self,
        op: &Op<'_>,
        keys: Keys<'_>,
        awaited: Awaited,
        out: &mut Vec<u8>,
    ) -> Result<Awaited, Fault> {
        if keys.is_empty() {
            return Err(self.limits.nothing(op));
        }
        keys.iter().try_for_each(|key| self.limits.check_key(key))?;
        out.extend_from_slice(b"get");
        keys.iter().for_each(|key| self.name_asked(key, out));
        out.extend_from_slice(b"\r\n");
        Ok(awaited)
    }

    fn name_asked(&mut self, key: &[u8], out: &mut Vec<u8>) {
        out.push(b' ');
        let start = out.len();
        escape(key, out);
        self.asked.push(&out[start..]);
    }

    /// The protocol sets one key a command. One op, many commands: all are on their way before the first answer is
    /// read.
    fn set_many(&mut self, op: &Op<'_>, pairs: Pairs<'_>, out: &mut Vec<u8>) -> Result<Awaited, Fault> {
        if pairs.keys.is_empty() {
            return Err(self.limits.nothing(op));
        }
        let before = out.len();
        let stored = pairs.iter().try_for_each(|(key, value)| match self.limits.goes_plainly(key) {
            true => self.set(key, value, out).map(drop),
            false => self.store(b"set", key, value, 0, None, out),
        });
        if let Err(fault) = stored {
            out.truncate(before);
            return Err(fault);
        }
        let largest = pairs.values.iter().map(<[u8]>::len).max().unwrap_or(0);
        Ok(Awaited::Stored { commands: pairs.keys.len(), largest })
    }

    #[inline]
    fn store(
        &self,
        command: &[u8],
        key: &[u8],
        value: &[u8],
        lifetime_s: u32,
        version: Option<u64>,
        out: &mut Vec<u8>,
    ) -> Result<(), Fault> {
        self.limits.check_key(key)?;
        self.limits.check_value(value)?;
        out.extend_from_slice(command);
        out.push(b' ');
        escape(key, out);
        out.extend_from_slice(b" 0 ");
        push_number(lifetime_s, out);
        out.push(b' ');
        push_number(value.len(), out);
        if let Some(version) = version {
            out.push(b' ');
            push_number(version, out);
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
        Ok(())
    }
}

/// Writes a set up to its value, and says where its key begins.
#[inline(always)]
fn set_of(key: &[u8], value: &[u8]) -> impl FnOnce(&mut Vec<u8>) -> usize {
    move |head| {
        head.extend_from_slice(b"set ");
        head.extend_from_slice(key);
        head.extend_from_slice(b" 0 0 ");
        push_number(value.len(), head);
        head.extend_from_slice(b"\r\n");
        4
    }
}
