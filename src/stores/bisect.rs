//! `bisect`: counts in one sorted array, in which a key is searched by bisection. As bytes, each number in four, lowest
//! first: how many keys there are, where each of them ends, their counts, and the keys one behind the other.

use std::cmp::Ordering;
use std::io::{self, Write};

use super::read_only::{self, Counts, short, short_at};
use super::{Adapter, Role};
use crate::model::trial::Transport;

pub static BISECT: Adapter = Adapter {
    name: Bisect::NAME,
    about: "counts in a sorted array that is searched by bisection, filled once and then only read",
    role: Role::ReadOnly,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: read_only::keeps,
    stays: |_| true,
    lacks: |_| read_only::LACKS,
    open: read_only::open::<Bisect>,
    server: None,
    version: || Ok(env!("CARGO_PKG_VERSION").to_string()),
    get_it: "built in",
};

const NUMBER_BYTES: usize = 4;

struct Bisect {
    bytes: Vec<u8>,
    len: usize,
}

impl Bisect {
    fn number(&self, place: usize) -> usize {
        short_at(&self.bytes, place * NUMBER_BYTES).unwrap_or(0)
    }

    fn key(&self, place: usize) -> &[u8] {
        let keys = (1 + 2 * self.len) * NUMBER_BYTES;
        let begin = if place == 0 { 0 } else { self.number(place) };
        self.bytes.get(keys + begin..keys + self.number(1 + place)).unwrap_or_default()
    }
}

impl Counts for Bisect {
    const NAME: &'static str = "bisect";
    const LIBRARY: &'static str = "none";

    fn write(counts: &[(Box<[u8]>, u64)], out: &mut dyn Write) -> io::Result<()> {
        out.write_all(&short(counts.len() as u64)?)?;
        let mut end = 0;
        for (key, _) in counts {
            end += key.len() as u64;
            out.write_all(&short(end)?)?;
        }
        for (_, count) in counts {
            out.write_all(&short(*count)?)?;
        }
        counts.iter().try_for_each(|(key, _)| out.write_all(key))
    }

    fn read(bytes: Vec<u8>) -> Result<Bisect, String> {
        let len = short_at(&bytes, 0).ok_or("it holds no number of keys")?;
        let all = Bisect { bytes, len };
        let keys = (1 + 2 * len) * NUMBER_BYTES;
        let end = if len == 0 { 0 } else { all.number(len) };
        if all.bytes.len() != keys + end {
            return Err(format!("it has {} bytes, and {len} keys would take others", all.bytes.len()));
        }
        Ok(all)
    }

    fn get(&self, key: &[u8]) -> Option<u64> {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low + (high - low) / 2;
            match self.key(middle).cmp(key) {
                Ordering::Less => low = middle + 1,
                Ordering::Greater => high = middle,
                Ordering::Equal => return Some(self.number(1 + self.len + middle) as u64),
            }
        }
        None
    }

    fn entries(&self) -> u64 {
        self.len as u64
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_filled_once_and_read() {
        crate::stores::read_only::tests::is_filled_once(&super::BISECT);
    }
}
