//! `fst`: counts in a finite state transducer, whose keys share their beginnings and ends. About the least that keys
//! and counts need in memory.

use std::io::{self, Write};

use super::read_only::{self, Counts};
use super::{Adapter, Role};
use crate::model::trial::Transport;

pub static FST: Adapter = Adapter {
    name: Fst::NAME,
    about: "counts in a finite state transducer, filled once and then only read: about the least that they need",
    role: Role::ReadOnly,
    transports: &[Transport::InProcess],
    schemes: &[],
    settings: &[],
    keeps: read_only::keeps,
    stays: |_| true,
    lacks: |_| read_only::LACKS,
    open: read_only::open::<Fst>,
    server: None,
    version: || Ok(env!("CARGO_PKG_VERSION").to_string()),
    get_it: "built in",
};

struct Fst(fst::Map<Vec<u8>>);

impl Counts for Fst {
    const NAME: &'static str = "fst";
    const LIBRARY: &'static str = "fst";

    fn write(counts: &[(Box<[u8]>, u64)], out: &mut dyn Write) -> io::Result<()> {
        let mut map = fst::MapBuilder::new(out).map_err(io::Error::other)?;
        counts.iter().try_for_each(|(key, count)| map.insert(key, *count)).map_err(io::Error::other)?;
        map.finish().map_err(io::Error::other)
    }

    fn read(bytes: Vec<u8>) -> Result<Fst, String> {
        let map = fst::Map::new(bytes).map_err(|error| error.to_string())?;
        Ok(Fst(map))
    }

    fn get(&self, key: &[u8]) -> Option<u64> {
        self.0.get(key)
    }

    fn entries(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn it_is_filled_once_and_read() {
        crate::stores::read_only::tests::is_filled_once(&super::FST);
    }
}
