//! Counting syncs in what `strace -f -y -ttt` wrote: calls that return when data has reached the disk, as the kernel
//! answered them, and nothing that merely sounds like one.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::Audit;
use super::calls::{self, CALLS, Effect};

/// What strace is to look at, as `-e trace=` takes it: all but changes of names.
pub fn traced() -> String {
    let matter = CALLS.iter().filter(|(_, effect)| *effect != Effect::Renames);
    matter.map(|(name, _)| *name).collect::<Vec<_>>().join(",")
}

/// A descriptor as `-y` shows it: `7</tmp/data/log>`.
type File = String;

/// Counts the syncs that began between two moments (seconds of the epoch), while `writes` were acknowledged.
pub fn count(trace: &str, writes: u64, from_s: f64, until_s: f64) -> Audit {
    let mut seen = Seen::default();
    for line in trace.lines() {
        seen.line(line, from_s, until_s);
    }
    match seen.hidden {
        Some(what) => Audit::Unknown(what.to_string()),
        None if seen.lines == 0 => Audit::Unknown("strace saw nothing".to_string()),
        None => Audit::Counted { writes, by: seen.by },
    }
}

#[derive(Default)]
struct Seen {
    lines: u64,
    by: BTreeMap<String, u64>,
    /// Files opened so that each write to them is a sync.
    synced: BTreeSet<File>,
    /// The beginning of a call that another thread's interrupted, by thread.
    begun: HashMap<String, (f64, String)>,
    /// Why what was counted would be no count.
    hidden: Option<&'static str>,
}

impl Seen {
    /// "4711 1700000000.123456 fdatasync(5</x>) = 0", whole or in two parts: "... <unfinished ...>" and, later,
    /// "... <... fdatasync resumed>) = 0". A call counts from its beginning.
    fn line(&mut self, line: &str, from_s: f64, until_s: f64) {
        let Some((thread, rest)) = line.split_once(' ') else { return };
        let Some((time, call)) = rest.trim_start().split_once(' ') else { return };
        let Ok(time_s) = time.parse::<f64>() else { return };
        self.lines += 1;
        if let Some(beginning) = call.strip_suffix("<unfinished ...>") {
            self.begun.insert(thread.to_string(), (time_s, beginning.trim_end().to_string()));
            return;
        }
        let (time_s, call) = match call.strip_prefix("<... ") {
            Some(end) => {
                let Some((began_s, beginning)) = self.begun.remove(thread) else { return };
                let end = end.split_once(" resumed>").map_or("", |(_, end)| end);
                (began_s, format!("{beginning}{end}"))
            }
            None => (time_s, call.to_string()),
        };
        self.call(&call, (from_s..=until_s).contains(&time_s));
    }

    fn call(&mut self, call: &str, is_within: bool) {
        // Written data never stands in a line (-s 0), so that the last sign of equality is the answer's.
        let Some((asked, answer)) = call.rsplit_once(" = ") else { return };
        let Some((name, arguments)) = asked.split_once('(') else { return };
        if answer.starts_with('-') || answer.starts_with('?') {
            return;
        }
        match calls::effect(name) {
            Some(Effect::SetsUpRing) => self.hidden = Some(calls::RING),
            Some(Effect::Submits) if arguments.contains("SYNC") => self.hidden = Some(calls::SUBMITTED),
            Some(Effect::Opens) => self.opened(asked, answer),
            Some(Effect::Writes) => {
                let file = arguments.split_inclusive('>').next().unwrap_or_default();
                let each = arguments.contains("RWF_DSYNC") || arguments.contains("RWF_SYNC");
                if is_within && (each || self.synced.contains(file)) {
                    *self.by.entry("O_DSYNC write".to_string()).or_default() += 1;
                }
            }
            Some(Effect::SyncsMapped) if is_within && arguments.contains("MS_SYNC") => self.count(name),
            Some(Effect::SyncsFile | Effect::SyncsAll) if is_within => self.count(name),
            _ => {}
        }
    }

    fn opened(&mut self, asked: &str, answer: &str) {
        // O_SYNC is O_DSYNC and more; a file opened again without either under the same number is another.
        let flags = asked.rsplit_once('"').map_or("", |(_, flags)| flags);
        let file = answer.split_inclusive('>').next().unwrap_or_default().to_string();
        if flags.contains("O_DSYNC") || flags.contains("O_SYNC") {
            self.synced.insert(file);
        } else {
            self.synced.remove(&file);
        }
    }

    fn count(&mut self, name: &str) {
        *self.by.entry(name.to_string()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(trace: &str) -> Vec<(String, u64)> {
        match count(trace, 10, 100.0, 200.0) {
            Audit::Counted { by, writes: 10 } => by.into_iter().collect(),
            other => panic!("{other:?}"),
        }
    }

    fn one(name: &str, count: u64) -> Vec<(String, u64)> {
        vec![(name.to_string(), count)]
    }

    #[test]
    fn syncs_count_between_the_first_and_the_last_write() {
        let trace = "7 99.999999 fsync(3</d/log>) = 0\n7 100.000001 fsync(3</d/log>) = 0\n\
            8 199.9 fsync(3</d/log>) = 0\n7 200.1 fsync(3</d/log>) = 0\n7 201.0 +++ exited with 0 +++\n";
        assert_eq!(by(trace), one("fsync", 2));
    }

    #[test]
    fn calls_in_two_parts_count_once_from_their_beginning() {
        let trace = "7 99.0 fdatasync(3</d/log> <unfinished ...>\n8 150.0 fdatasync(3</d/log> <unfinished ...>\n\
            7 151.0 <... fdatasync resumed>) = 0\n8 250.0 <... fdatasync resumed>) = 0\n\
            9 150.0 <... fdatasync resumed>) = 0\n";
        assert_eq!(by(trace), one("fdatasync", 1));
    }

    #[test]
    fn what_fails_or_syncs_nothing_does_not_count() {
        let trace = "7 150.0 fsync(3</d/log>) = -1 EIO (Input/output error)\n7 150.0 fsync(3</d/log>) = ?\n\
            7 150.0 msync(0x7f00, 4096, MS_ASYNC) = 0\n7 150.0 write(3</d/log>, \"\"..., 10) = 10\n\
            7 150.0 sync_file_range(3</d/log>, 0, 0, SYNC_FILE_RANGE_WRITE) = 0\n\
            7 150.0 openat(AT_FDCWD</d>, \"O_DSYNC\", O_RDWR) = 3</d/O_DSYNC>\n\
            7 150.0 pwrite64(3</d/O_DSYNC>, \"\"..., 10, 0) = 10\n";
        assert_eq!(by(trace), []);
        assert_eq!(by("7 150.0 msync(0x7f00, 4096, MS_SYNC) = 0\n"), one("msync", 1));
    }

    #[test]
    fn writes_count_where_each_of_them_syncs() {
        let trace = "7 50.0 openat(AT_FDCWD</d>, \"log\", O_RDWR|O_CREAT|O_DSYNC, 0600) = 3</d/log>\n\
            7 50.0 openat(AT_FDCWD</d>, \"log\", O_RDWR) = 4</d/log>\n\
            7 150.0 pwrite64(3</d/log>, \"\"..., 10, 0) = 10\n7 150.0 pwrite64(4</d/log>, \"\"..., 10, 0) = 10\n\
            7 151.0 pwritev2(4</d/log>, [{iov_base=\"\"..., iov_len=1}], 1, 0, RWF_DSYNC) = 1\n\
            7 152.0 openat(AT_FDCWD</d>, \"log\", O_RDWR) = 3</d/log>\n7 153.0 write(3</d/log>, \"\"..., 10) = 10\n";
        assert_eq!(by(trace), one("O_DSYNC write", 2));
    }

    #[test]
    fn what_no_tracer_sees_is_unknown() {
        let unknown = |trace: &str| matches!(count(trace, 10, 100.0, 200.0), Audit::Unknown(_));
        assert!(unknown("7 50.0 io_uring_setup(8, {flags=0}) = 5<anon_inode:[io_uring]>\n7 150.0 fsync(3</d>) = 0\n"));
        assert!(!unknown("7 50.0 io_uring_setup(8, {flags=0}) = -1 ENOSYS (Function not implemented)\n"));
        assert!(unknown("7 150.0 io_submit(0x7f, 1, [{aio_lio_opcode=IOCB_CMD_FSYNC, aio_fildes=3}]) = 1\n"));
        assert!(unknown(""));
        assert!(unknown("garbage\n\n7\n7 x\n7 soon fsync(3) = 0\n"));
    }
}
