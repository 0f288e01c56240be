//! `dict`: a dictionary that is saved to a file and loaded again, as programs do with a pickle: the table of `ram`. As
//! bytes: for each key its length in four, itself, and its count in eight, lowest first.

use std::io::{self, Write};

use super::records::{Cell, Map, hash};
use crate::model::trial::Transport;
use crate::stores::read_only::{self, Counts, short, short_at};
use crate::stores::{Adapter, Role};

pub static DICT: Adapter = Adapter {
    name: Dict::NAME,
    about: "a dictionary that is saved to a file and loaded again, filled once and then only read",
    role: Role::ReadOnly,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: read_only::keeps,
    stays: |_| true,
    lacks: |_| read_only::LACKS,
    open: read_only::open::<Dict>,
    server: None,
    version: || Ok(env!("CARGO_PKG_VERSION").to_string()),
    get_it: "built in",
};

struct Dict(Map);

impl Counts for Dict {
    const NAME: &'static str = "dict";
    const LIBRARY: &'static str = "none";

    fn write(counts: &[(Box<[u8]>, u64)], out: &mut dyn Write) -> io::Result<()> {
        counts.iter().try_for_each(|(key, count)| {
            out.write_all(&short(key.len() as u64)?)?;
            out.write_all(key)?;
            out.write_all(&count.to_le_bytes())
        })
    }

    fn read(bytes: Vec<u8>) -> Result<Dict, String> {
        let (mut map, mut rest) = (Map::default(), bytes.as_slice());
        while !rest.is_empty() {
            let cut = || "it ends within a key or a count".to_string();
            let length = short_at(rest, 0).ok_or_else(cut)?;
            let (key, behind) = rest[4..].split_at_checked(length).ok_or_else(cut)?;
            let (count, behind) = behind.split_first_chunk().ok_or_else(cut)?;
            let count = i64::try_from(u64::from_le_bytes(*count)).map_err(|error| error.to_string())?;
            map.add(hash(key), key, count).map_err(|fault| fault.to_string())?;
            rest = behind;
        }
        Ok(Dict(map))
    }

    fn get(&self, key: &[u8]) -> Option<u64> {
        match self.0.find(hash(key), key)?.0 {
            Cell::Number(count) => u64::try_from(count).ok(),
            _ => None,
        }
    }

    fn entries(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_filled_once_and_read() {
        crate::stores::read_only::tests::is_filled_once(&super::DICT);
    }
}
