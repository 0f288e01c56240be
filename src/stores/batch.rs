//! The batch engines: programs that count all of `ngrams` at once and leave one file of counts. They show what
//! counting incrementally in a store costs over that, and are never ranked with stores. The programs are in
//! `examples/batch`, and in kvfair itself.

use std::collections::HashMap;
use std::io::{self, Write};

use super::read_only::{self, Counts};
use super::{Adapter, Role};
use crate::model::trial::{Durability, Transport};

/// How a batch engine is run.
pub struct Engine {
    pub name: &'static str,
    /// The program on PATH that reads `text`.
    pub interpreter: &'static str,
    /// Its name as a file, and what it says. It takes where the messages are, where the counts go, order and unit.
    pub file: &'static str,
    pub text: &'static str,
    /// The command whose first line ends with the engine's version.
    pub version: &'static [&'static str],
    /// It knows no characters beyond ASCII, so that it counts no runs of them.
    pub words_only: bool,
}

const ENGINES: &[Engine] = &[
    Engine {
        name: "duckdb",
        interpreter: "python3",
        file: "count_duckdb.py",
        text: include_str!("../../examples/batch/count_duckdb.py"),
        version: &["python3", "-c", "import duckdb; print(duckdb.__version__)"],
        words_only: false,
    },
    Engine {
        name: "polars",
        interpreter: "python3",
        file: "count_polars.py",
        text: include_str!("../../examples/batch/count_polars.py"),
        version: &["python3", "-c", "import polars; print(polars.__version__)"],
        words_only: false,
    },
    Engine {
        name: "ray-data",
        interpreter: "python3",
        file: "count_ray.py",
        text: include_str!("../../examples/batch/count_ray.py"),
        version: &["python3", "-c", "import ray.data; print(ray.__version__)"],
        words_only: false,
    },
    Engine {
        name: "sort",
        interpreter: "sh",
        file: "count_sort.sh",
        text: include_str!("../../examples/batch/count_sort.sh"),
        version: &["sort", "--version"],
        words_only: true,
    },
];

/// The file of the counts, in a directory that is the trial's own.
pub const COUNTS: &str = "counts.tsv";

/// How the batch engine of that name is run.
pub fn engine(name: &str) -> Option<&'static Engine> {
    ENGINES.iter().find(|engine| engine.name == name)
}

pub static DUCKDB: Adapter = Adapter { about: "DuckDB counts in one query", ..adapter("duckdb", "pip install duckdb") };

pub static POLARS: Adapter =
    Adapter { about: "Polars counts in one pass over data frames", ..adapter("polars", "pip install polars") };

pub static RAY_DATA: Adapter = Adapter {
    about: "Ray Data counts on the nodes of a cluster that runs",
    ..adapter("ray-data", "pip install 'ray[data]', and start a cluster: docs/ray.md")
};

pub static SORT: Adapter = Adapter {
    about: "`sort | uniq -c` counts sorted words",
    ..adapter("sort", "the packages coreutils, sed and mawk of your system")
};

const fn adapter(name: &'static str, get_it: &'static str) -> Adapter {
    Adapter {
        name,
        about: "",
        role: Role::Batch,
        transports: &[Transport::InProcess],
        schemes: &[],
        settings: &[],
        keeps: |level| match level {
            Durability::None => Ok("one file, written once"),
            _ => Err("its counts are written once and not synced"),
        },
        stays: |_| false,
        lacks: |_| read_only::LACKS,
        open: read_only::open::<CountsFile>,
        server: None,
        version: || Err("its program tells its version".to_string()),
        get_it,
    }
}

/// What a program leaves behind: one line a term, `TERM<tab>COUNT`, in any order.
pub struct CountsFile(HashMap<Box<[u8]>, u64>);

impl Counts for CountsFile {
    const NAME: &'static str = "tsv";
    const LIBRARY: &'static str = "none";

    fn write(counts: &[(Box<[u8]>, u64)], out: &mut dyn Write) -> io::Result<()> {
        counts.iter().try_for_each(|(term, count)| {
            out.write_all(term)?;
            writeln!(out, "\t{count}")
        })
    }

    fn read(bytes: Vec<u8>) -> Result<CountsFile, String> {
        let mut counts = HashMap::new();
        for (number, line) in (1..).zip(bytes.split_inclusive(|byte| *byte == b'\n')) {
            let no_count = || format!("line {number} is no term and count, with a tab between them and a line end");
            let line = line.strip_suffix(b"\n").ok_or_else(no_count)?;
            let tab = line.iter().rposition(|byte| *byte == b'\t').ok_or_else(no_count)?;
            let count = str::from_utf8(&line[tab + 1..]).ok().and_then(|text| text.parse().ok());
            if counts.insert(line[..tab].into(), count.ok_or_else(no_count)?).is_some() {
                return Err(format!("line {number} has a term that an earlier line has"));
            }
        }
        Ok(CountsFile(counts))
    }

    fn get(&self, key: &[u8]) -> Option<u64> {
        self.0.get(key).copied()
    }

    fn entries(&self) -> u64 {
        self.0.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<CountsFile, String> {
        CountsFile::read(text.as_bytes().to_vec())
    }

    #[test]
    fn counts_are_read_as_they_are_written() {
        crate::stores::read_only::tests::is_filled_once(&DUCKDB);
        let counts = read("a b\t3\nc\t1\n").expect("counts");
        assert_eq!((counts.entries(), counts.get(b"a b"), counts.get(b"a")), (2, Some(3), None));
        assert_eq!(read("").expect("none").entries(), 0);
    }

    #[test]
    fn a_broken_line_is_told_by_its_number() {
        for (text, line) in
            [("a\t1\nb\n", "line 2"), ("a\t-1\n", "line 1"), ("a\t1\nb\t2", "line 2"), ("a\t1\na\t1\n", "line 2")]
        {
            let why = read(text).err().unwrap_or_else(|| panic!("{text:?}"));
            assert!(why.starts_with(line), "{text:?}: {why}");
        }
    }

    #[test]
    fn every_engine_has_a_store_of_its_name() {
        let named = [&DUCKDB, &POLARS, &RAY_DATA, &SORT].map(|adapter| adapter.name);
        assert_eq!(ENGINES.iter().map(|engine| engine.name).collect::<Vec<_>>(), named);
    }
}
