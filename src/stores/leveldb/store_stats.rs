//! What both log-structured trees print of themselves, taken apart into numbers. RocksDB rounds above 10,000 (`20K`).
//!
//! Documentation: <https://github.com/google/leveldb/blob/main/include/leveldb/db.h> (`GetProperty`),
//! <https://github.com/facebook/rocksdb/wiki/Compaction-Stats-and-DB-Status>.

/// RocksDB's properties that are one number. <https://github.com/facebook/rocksdb/blob/main/include/rocksdb/db.h>
pub const NUMBERS: [&str; 14] = [
    "rocksdb.actual-delayed-write-rate",
    "rocksdb.background-errors",
    "rocksdb.block-cache-usage",
    "rocksdb.compaction-pending",
    "rocksdb.estimate-num-keys",
    "rocksdb.estimate-pending-compaction-bytes",
    "rocksdb.estimate-table-readers-mem",
    "rocksdb.is-write-stopped",
    "rocksdb.mem-table-flush-pending",
    "rocksdb.num-immutable-mem-table",
    "rocksdb.num-running-compactions",
    "rocksdb.num-running-flushes",
    "rocksdb.size-all-mem-tables",
    "rocksdb.total-sst-files-size",
];

type Numbers = Vec<(String, f64)>;

/// The numbers of `leveldb.stats`: a line a level, under a heading.
pub fn of_levels(text: &str) -> Numbers {
    let mut lines = text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let Some(heading) = lines.find(|words| words.first() == Some(&"Level")) else { return Numbers::new() };
    let levels = lines.filter(|words| words.len() == heading.len());
    levels.flat_map(|level| row(&format!("Level {}", level[0]), &heading[1..], &level[1..])).collect()
}

/// The cumulative numbers of `rocksdb.stats`: all levels together, writes, the log, merges and stalls.
pub fn of_rocks(text: &str) -> Numbers {
    let mut numbers = Numbers::new();
    let mut heading: Vec<&str> = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.first() {
            Some(&"Level") => heading = words,
            Some(&"Sum") => numbers.extend(row("Sum", &heading, &words)),
            _ => numbers.extend(parts(line)),
        }
    }
    numbers
}

/// Numbers by their headings, counted from the right: a size is a number and its unit.
fn row(name: &str, heading: &[&str], words: &[&str]) -> Numbers {
    let pairs = heading.iter().rev().zip(words.iter().rev());
    pairs.filter_map(|(column, word)| Some((format!("{name} {column}"), number(word)?))).collect()
}

/// `Cumulative WAL: 20K writes, 100 syncs, written: 0.06 GB`: each number by the line's name and its own.
fn parts(line: &str) -> Numbers {
    const LINES: [&str; 4] = ["Cumulative ", "Flush(GB)", "Stalls(count)", "Write Stall (count)"];
    let Some((name, rest)) = line.split_once(':').filter(|_| LINES.iter().any(|begin| line.starts_with(begin))) else {
        return Numbers::new();
    };
    // What has come since the last look is the last looker's, and a rate since the opening is another one later.
    let counts = |part: &&str| !part.trim_start().starts_with("interval") && !part.contains("MB/s");
    rest.split(',').filter(counts).filter_map(|part| one(name, part)).collect()
}

fn one(name: &str, part: &str) -> Option<(String, f64)> {
    let words: Vec<&str> = part.split_whitespace().collect();
    let (place, number) = words.iter().enumerate().find_map(|(place, word)| Some((place, number(word)?)))?;
    let own = words.iter().enumerate().filter(|(other, _)| *other != place).map(|(_, word)| word.trim_end_matches(':'));
    Some((own.fold(name.to_string(), |all, word| format!("{all} {word}")), number))
}

/// `20K`, `0.06`, or `00:01:2.500`, in seconds.
fn number(word: &str) -> Option<f64> {
    if let [hours, minutes, seconds] = word.split(':').collect::<Vec<_>>()[..] {
        let part = |text: &str| text.parse::<f64>().ok();
        return Some(part(hours)? * 3600.0 + part(minutes)? * 60.0 + part(seconds)?);
    }
    let scale = match word.bytes().last()? {
        b'K' => 1e3,
        b'M' => 1e6,
        b'G' => 1e9,
        _ => 1.0,
    };
    let digits = if scale > 1.0 { &word[..word.len() - 1] } else { word };
    digits.parse::<f64>().ok().map(|number| number * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(numbers: &Numbers, name: &str) -> Option<f64> {
        numbers.iter().find(|(found, _)| found == name).map(|(_, number)| *number)
    }

    #[test]
    fn levels_are_taken_apart() {
        let text = "                               Compactions
Level  Files Size(MB) Time(sec) Read(MB) Write(MB)
--------------------------------------------------
  0        4        1         0        0         3
  1        1        2         7        3         3
";
        let numbers = of_levels(text);
        assert_eq!(numbers.len(), 10);
        assert_eq!(find(&numbers, "Level 0 Write(MB)"), Some(3.0));
        assert_eq!(find(&numbers, "Level 1 Time(sec)"), Some(7.0));
        assert_eq!(of_levels("Level\n\n1\n"), []);
    }

    /// As version 7.8 prints it, and the stalls also as version 8 does.
    #[test]
    fn what_rocksdb_counts_is_taken_apart() {
        let text = "
** Compaction Stats [default] **
Level    Files   Size     Score Read(GB)  Comp(sec) CompMergeCPU(sec) Comp(cnt) Avg(sec) KeyIn KeyDrop
------------------------------------------------------------------------------------------------------
  L0      2/0    1.20 MB   0.5      0.0      0.10              0.00         3    0.033       0      0
 Sum      2/0    1.20 MB   0.0      0.2      0.30              0.00        12    0.025     15K      0
 Int      0/0    0.00 KB   0.0      0.0      0.00              0.00         0    0.000       0      0

Flush(GB): cumulative 0.125, interval 0.100
Cumulative compaction: 0.50 GB write, 0.00 MB/s write, 0.25 GB read, 0.00 MB/s read, 0.3 seconds
Interval compaction: 0.07 GB write, 0.00 MB/s write, 0.00 GB read, 0.00 MB/s read, 0.0 seconds
Stalls(count): 4 level0_slowdown, 1 stop for pending_compaction_bytes, interval 9 total count
Write Stall (count): cf-l0-file-count-limit-delays: 6, total-stops: 2, interval: 0 total count
Cumulative writes: 20K writes, 20K keys, 20K commit groups, 1.0 writes per commit group, ingest: 0.06 GB, 91.87 MB/s
Cumulative WAL: 20K writes, 100 syncs, 200.00 writes per sync, written: 0.06 GB, 91.87 MB/s
Cumulative stall: 00:01:2.500 H:M:S, 0.0 percent
";
        let numbers = of_rocks(text);
        for (name, number) in [
            ("Sum Comp(cnt)", 12.0),
            ("Sum Comp(sec)", 0.3),
            ("Sum KeyIn", 15_000.0),
            ("Sum Read(GB)", 0.2),
            ("Flush(GB) cumulative", 0.125),
            ("Cumulative compaction GB write", 0.5),
            ("Stalls(count) level0_slowdown", 4.0),
            ("Stalls(count) stop for pending_compaction_bytes", 1.0),
            ("Write Stall (count) total-stops", 2.0),
            ("Cumulative writes commit groups", 20_000.0),
            ("Cumulative WAL syncs", 100.0),
            ("Cumulative WAL written GB", 0.06),
            ("Cumulative stall H:M:S", 62.5),
        ] {
            assert_eq!(find(&numbers, name), Some(number), "{name} of {numbers:?}");
        }
        assert!(numbers.iter().all(|(name, _)| !name.contains("nterval") && !name.contains("Int ")), "{numbers:?}");
    }

    #[test]
    fn what_is_no_number_is_none() {
        for word in ["", "K", "a:b:c", "1:2", "GB", "2/0"] {
            assert_eq!(number(word), None, "{word}");
        }
    }
}
