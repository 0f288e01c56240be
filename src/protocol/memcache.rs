//! memcached's three protocols: the classic text commands, the meta commands (text as well), and the binary one.
//!
//! The formats: <https://github.com/memcached/memcached/blob/master/doc/protocol.txt> and
//! <https://github.com/memcached/memcached/wiki/BinaryProtocolRevamped>. Nothing here knows a socket or keeps a value:
//! a single value is lent out of the received bytes, many values are copied out of them as they come.

use crate::model::op::{Fault, Op, readable};

mod binary;
mod frames;
mod meta;
mod text;

pub use binary::{Binary, NOOP_QUESTION, noop};
pub use frames::{KEY_MAX, Stats, VERSION_QUESTION, or_refused, stats, version};
pub use meta::Meta;
pub use text::{Dialect, Memcache};

use frames::{TTL_MAX_S, VALUE_MAX, is_escaped, is_plain};

/// What all three refuse by name before it is sent.
#[derive(Clone, Copy)]
struct Limits {
    /// What messages call the store.
    store: &'static str,
}

impl Limits {
    /// A key that is sent as text must fit when what would end it is escaped.
    #[inline]
    fn check_key(self, key: &[u8]) -> Result<(), Fault> {
        let escaped = key.iter().filter(|&&byte| is_escaped(byte)).count();
        let size = key.len() + 2 * escaped;
        if (1..=KEY_MAX).contains(&size) { Ok(()) } else { Err(self.bad_key(key, escaped, size)) }
    }

    /// Whether a key can be sent as text without escaping.
    #[inline]
    fn goes_plainly(self, key: &[u8]) -> bool {
        is_plain(key) && (1..=KEY_MAX).contains(&key.len())
    }

    /// A key that is sent as it is.
    #[inline]
    fn check_plain_key(self, key: &[u8]) -> Result<(), Fault> {
        if (1..=KEY_MAX).contains(&key.len()) { Ok(()) } else { Err(self.bad_key(key, 0, key.len())) }
    }

    #[cold]
    fn bad_key(self, key: &[u8], escaped: usize, size: usize) -> Fault {
        let store = self.store;
        Fault::Unsupported(match escaped {
            _ if key.is_empty() => format!("{store} takes no empty key"),
            0 => format!("{store} takes keys of at most {KEY_MAX} bytes, and '{}' has {size}", readable(key, 40)),
            _ => format!(
                "{store} takes keys of at most {KEY_MAX} bytes, and '{}' has {} and {size} with spaces and control \
                 characters escaped",
                readable(key, 40),
                key.len()
            ),
        })
    }

    #[inline]
    fn check_value(self, value: &[u8]) -> Result<(), Fault> {
        let (store, size) = (self.store, value.len());
        if size <= VALUE_MAX {
            return Ok(());
        }
        let what = format!("{store} can be set to take items of at most {VALUE_MAX} bytes, and this value has {size}");
        Err(Fault::Unsupported(what))
    }

    /// What is added where the sum is not asked for.
    fn step_of(self, op: &Op<'_>, by: i64) -> Result<u64, Fault> {
        let (store, name) = (self.store, op.name());
        let below = || Fault::Unsupported(format!("{store} has no {name} of {by}: it adds 0 or more"));
        u64::try_from(by).map_err(|_| below())
    }

    #[inline]
    fn lifetime_s(self, ttl_s: Option<u32>) -> Result<u32, Fault> {
        let store = self.store;
        match ttl_s {
            None => Ok(0),
            Some(0) => Err(Fault::Unsupported(format!("{store} takes a time to live of 0 s for one without end"))),
            Some(ttl_s) if ttl_s > TTL_MAX_S => Err(Fault::Unsupported(format!(
                "{store} takes a time to live of more than {TTL_MAX_S} s (30 days) for a point in time, and this one has \
                 {ttl_s} s"
            ))),
            Some(ttl_s) => Ok(ttl_s),
        }
    }

    #[cold]
    fn nothing(self, op: &Op<'_>) -> Fault {
        Fault::Unsupported(format!("{} has no {} of nothing", self.store, op.name()))
    }
}

/// A server's refusal with what its words leave out: how large the value was, and what sets the limit.
#[cold]
fn explained(words: &[u8], largest: usize) -> String {
    let words = String::from_utf8_lossy(words);
    if words.to_ascii_lowercase().contains("too large") {
        format!("{words}: a value of {largest} bytes; items are limited to 1 MiB unless the server is started with -I")
    } else {
        words.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { store: "memcached" };

    fn refusal<T: std::fmt::Debug>(checked: Result<T, Fault>) -> String {
        match checked {
            Err(Fault::Unsupported(what)) => what,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn keys_are_as_long_as_the_protocol_takes_them_and_no_longer() {
        let (longest, too_long) = ([b'k'; KEY_MAX], [b'k'; KEY_MAX + 1]);
        let what = "memcached takes keys of at most 250 bytes, and 'kkkk";
        for check in [Limits::check_key, Limits::check_plain_key] {
            check(LIMITS, b"k").expect("it is short");
            check(LIMITS, &longest).expect("it fits");
            let said = refusal(check(LIMITS, &too_long));
            assert!(said.starts_with(what) && said.ends_with(" has 251"), "{said}");
            assert_eq!(refusal(check(LIMITS, b"")), "memcached takes no empty key");
        }
        assert!(LIMITS.goes_plainly(&longest) && LIMITS.goes_plainly(b"k"));
        assert!(![&too_long[..], b"", b" ", b"%", b"\x7f"].iter().any(|key| LIMITS.goes_plainly(key)));
        // Three bytes for one that is escaped.
        LIMITS.check_key(&[b' '; 83]).expect("249 bytes");
        LIMITS.check_plain_key(&[b' '; 84]).expect("it is not escaped");
        let said = refusal(LIMITS.check_key(&[b' '; 84]));
        assert!(said.ends_with(" has 84 and 252 with spaces and control characters escaped"), "{said}");
    }

    #[test]
    fn values_and_lifetimes_are_as_large_as_the_protocol_takes_them_and_no_larger() {
        // Zeros that nobody reads take no memory.
        let value = vec![0; VALUE_MAX + 1];
        LIMITS.check_value(&value[..VALUE_MAX]).expect("it fits");
        let said = refusal(LIMITS.check_value(&value));
        assert!(said.ends_with("at most 1073741824 bytes, and this value has 1073741825"), "{said}");
        for (ttl_s, expected) in [(None, 0), (Some(1), 1), (Some(TTL_MAX_S), TTL_MAX_S)] {
            assert_eq!(LIMITS.lifetime_s(ttl_s).expect("it is short"), expected);
        }
        let said = refusal(LIMITS.lifetime_s(Some(TTL_MAX_S + 1)));
        assert!(said.contains("(30 days)") && said.ends_with("this one has 2592001 s"), "{said}");
        assert!(refusal(LIMITS.lifetime_s(Some(0))).ends_with("one without end"));
    }
}
