//! CPU, memory, and bytes read and written of other processes, seen from outside so that watching costs them nothing.

use crate::model::record::{Peak, Usage};

mod series;

pub use series::Series;

/// What a process tree had used up at one moment; two of them make a [`Usage`].
#[derive(Clone, Copy, Debug, Default)]
pub struct UsageReading {
    cpu_s: f64,
    user_ticks: u64,
    system_ticks: u64,
    bytes_written: Option<u64>,
    bytes_read: Option<u64>,
}

impl UsageReading {
    /// Of both together. Where nothing is known of one, nothing is known of both.
    fn and(&self, other: &UsageReading) -> UsageReading {
        let both = |one: Option<u64>, other: Option<u64>| Some(one? + other?);
        UsageReading {
            cpu_s: self.cpu_s + other.cpu_s,
            user_ticks: self.user_ticks + other.user_ticks,
            system_ticks: self.system_ticks + other.system_ticks,
            bytes_written: both(self.bytes_written, other.bytes_written),
            bytes_read: both(self.bytes_read, other.bytes_read),
        }
    }

    /// What was used up since `earlier`. The sum is exact to the nanosecond where the kernel has a CPU clock for other
    /// processes; its split into user and system is as fine as the kernel's ticks.
    pub fn since(&self, earlier: &UsageReading) -> Usage {
        let user = self.user_ticks.saturating_sub(earlier.user_ticks) as f64;
        let system = self.system_ticks.saturating_sub(earlier.system_ticks) as f64;
        let cpu_s = (self.cpu_s - earlier.cpu_s).max(0.0);
        // A phase too short for a tick is split as the process' whole life is.
        let share = match user + system {
            0.0 => self.user_ticks as f64 / (self.user_ticks + self.system_ticks).max(1) as f64,
            ticks => user / ticks,
        };
        let more = |now: Option<u64>, then: Option<u64>| Some(now?.saturating_sub(then?));
        Usage {
            user_s: cpu_s * share,
            system_s: cpu_s * (1.0 - share),
            bytes_written: more(self.bytes_written, earlier.bytes_written),
            bytes_read: more(self.bytes_read, earlier.bytes_read),
            run_delay_s: None,
        }
    }
}

/// The processes of several trees, none of which is part of another one.
pub fn families(roots: &[u32]) -> Vec<u32> {
    roots.iter().flat_map(|&root| family(root)).collect()
}

/// What several trees had used up together.
pub fn reading_of_all(roots: &[u32]) -> UsageReading {
    roots.iter().map(|&root| reading(root)).reduce(|sum, one| sum.and(&one)).unwrap_or_default()
}

/// Who belongs to a tree is asked at one look in so many: it costs several times what their memory does.
const LOOKS_A_FAMILY: u32 = 5;

/// The highest memory seen so far of a process tree. Looks are cheap, and see only what each process has of its own. A
/// count walks all page tables, and stops the processes meanwhile: only between phases.
#[derive(Debug, Default)]
pub struct Peaks {
    pub peak: Peak,
    family: Vec<u32>,
    looks: u32,
    /// Anonymous memory that looks see in several processes of the tree, as the last count found: pages that a fork
    /// shares.
    twice_bytes: u64,
    /// Somebody else's processes, which are not to be stopped for a count: their status tells less and stops nobody.
    is_guest: bool,
}

impl Peaks {
    /// What somebody else has seen.
    pub fn of(peak: Peak) -> Peaks {
        Peaks { peak, ..Peaks::default() }
    }

    /// Of somebody else's processes.
    pub fn of_guest() -> Peaks {
        Peaks { is_guest: true, ..Peaks::default() }
    }

    /// Looks once more.
    pub fn look(&mut self, roots: &[u32]) {
        if self.looks.is_multiple_of(LOOKS_A_FAMILY) {
            self.family = families(roots);
        }
        self.looks += 1;
        let anonymous_bytes = memory_of(&self.family).anonymous_bytes.saturating_sub(self.twice_bytes);
        self.take(Peak { anonymous_bytes, ..Peak::default() });
    }

    /// Counts every page once, as far as the processes' maps may be read.
    pub fn count(&mut self, roots: &[u32]) {
        self.family = families(roots);
        let counted = if self.is_guest { statuses_of(&self.family) } else { shares_of(&self.family) };
        self.twice_bytes = memory_of(&self.family).anonymous_bytes.saturating_sub(counted.anonymous_bytes);
        self.take(counted);
    }

    /// Looks once more, at these processes.
    pub fn look_at(&mut self, processes: &[u32]) {
        self.take(memory_of(processes));
    }

    fn take(&mut self, now: Peak) {
        self.peak.anonymous_bytes = self.peak.anonymous_bytes.max(now.anonymous_bytes);
        self.peak.shared_bytes = self.peak.shared_bytes.max(now.shared_bytes);
        self.peak.file_bytes = self.peak.file_bytes.max(now.file_bytes);
    }
}

#[cfg(target_os = "linux")]
mod tree;
#[cfg(target_os = "linux")]
mod used;

#[cfg(target_os = "linux")]
pub use linux::{memory_of, name_of, runs, shares_of, statuses_of};
#[cfg(target_os = "linux")]
pub use tree::{children, family};
#[cfg(target_os = "linux")]
pub use used::reading;

#[cfg(target_os = "linux")]
mod linux {
    use procfs::process::{MMPermissions, MMapPath, MemoryMap, MemoryMaps, Process};

    use crate::model::record::Peak;

    /// What the kernel calls a process: fifteen bytes that it may have chosen itself.
    pub fn name_of(pid: u32) -> Option<String> {
        Some(Process::new(pid as i32).ok()?.stat().ok()?.comm)
    }

    /// Whether it has not ended. One that nobody has waited for has ended too.
    pub fn runs(pid: u32) -> bool {
        let stat = Process::new(pid as i32).and_then(|process| process.stat());
        stat.is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'))
    }

    /// What processes hold together. What several of them map whole, such as a shared segment or pages of a larger
    /// size, counts once: the largest is taken.
    #[derive(Default)]
    struct Sum {
        added: Peak,
        largest_shared_bytes: u64,
        largest_file_bytes: u64,
    }

    impl Sum {
        fn add(&mut self, share: Share) {
            self.added.anonymous_bytes += share.own.anonymous_bytes;
            self.added.shared_bytes += share.own.shared_bytes;
            self.added.file_bytes += share.own.file_bytes;
            self.largest_shared_bytes = self.largest_shared_bytes.max(share.huge_bytes);
        }

        fn add_status(&mut self, process: &Process) {
            let Ok(status) = process.status() else { return };
            let bytes = |kilobytes: Option<u64>| kilobytes.unwrap_or(0) << 10;
            self.added.anonymous_bytes += bytes(status.rssanon);
            self.largest_shared_bytes = self.largest_shared_bytes.max(bytes(status.rssshmem));
            self.largest_file_bytes = self.largest_file_bytes.max(bytes(status.rssfile));
        }

        fn peak(self) -> Peak {
            Peak {
                shared_bytes: self.added.shared_bytes + self.largest_shared_bytes,
                file_bytes: self.added.file_bytes + self.largest_file_bytes,
                ..self.added
            }
        }
    }

    fn sum_of(processes: &[u32], add: impl Fn(&mut Sum, &Process)) -> Peak {
        let mut sum = Sum::default();
        processes.iter().flat_map(|&pid| Process::new(pid as i32)).for_each(|process| add(&mut sum, &process));
        sum.peak()
    }

    /// What processes hold together, each page once: the kernel's proportional shares. Of a process whose maps are not
    /// ours to read, or on a kernel that does not tell these shares, its status counts.
    pub fn shares_of(processes: &[u32]) -> Peak {
        sum_of(processes, |sum, process| match share_of(process) {
            Some(share) => sum.add(share),
            None => sum.add_status(process),
        })
    }

    /// What processes hold together, by their status alone: pages that a fork shares count for each.
    pub fn statuses_of(processes: &[u32]) -> Peak {
        sum_of(processes, Sum::add_status)
    }

    /// What one process has of a tree's memory.
    #[derive(Debug, PartialEq)]
    struct Share {
        own: Peak,
        /// Pages of a fixed larger size that others map too: they are in no share, and each tells all of them.
        huge_bytes: u64,
    }

    fn share_of(process: &Process) -> Option<Share> {
        share(&process.smaps_rollup().ok()?.memory_map_rollup, || Some(process.smaps().ok()?.0))
    }

    /// The kernel counts files on tmpfs as shared memory: what is a segment is told by its name. proc_pid_smaps(5).
    /// Kernels before 5.3 do not tell the shares apart.
    fn share(rollup: &MemoryMaps, maps: impl FnOnce() -> Option<Vec<MemoryMap>>) -> Option<Share> {
        let of = |map: &MemoryMap, name: &str| map.extension.map.get(name).copied();
        let all = |name: &str| rollup.iter().map(|map| of(map, name)).sum::<Option<u64>>();
        let (anonymous_bytes, file_bytes, shmem_bytes) = (all("Pss_Anon")?, all("Pss_File")?, all("Pss_Shmem")?);
        let maps = maps()?;
        let segments = maps.iter().filter(|map| is_segment(map));
        let shared_bytes: u64 = segments.map(|map| of(map, "Pss").unwrap_or(0)).sum();
        let own = Peak {
            // What lies on pages of a fixed larger size is in no share.
            anonymous_bytes: anonymous_bytes + all("Private_Hugetlb").unwrap_or(0),
            shared_bytes,
            file_bytes: (file_bytes + shmem_bytes).saturating_sub(shared_bytes),
        };
        Some(Share { own, huge_bytes: all("Shared_Hugetlb").unwrap_or(0) })
    }

    /// Memory that processes share and that is no file: of mmap(2) without a file, shmget(2), shm_open(3) and
    /// memfd_create(2). A name of shm_open(3) has no slash in it: what lies deeper in its directory are files on tmpfs.
    fn is_segment(map: &MemoryMap) -> bool {
        const NAMES: [&str; 3] = ["/dev/zero", "/memfd:", "/anon_hugepage"];
        let is_name = |path: &str| {
            let shm_name = path.strip_prefix("/dev/shm/");
            NAMES.iter().any(|name| path.starts_with(name)) || shm_name.is_some_and(|name| !name.contains('/'))
        };
        map.perms.contains(MMPermissions::SHARED)
            && match &map.pathname {
                MMapPath::Vsys(_) => true,
                MMapPath::Path(path) => path.to_str().is_some_and(is_name),
                MMapPath::Other(name) => name.starts_with("anon_shmem"),
                _ => false,
            }
    }

    /// Resident memory of processes now, as cheaply as it can be seen: a page that several have counts for each, and
    /// shared memory counts as mapped.
    pub fn memory_of(processes: &[u32]) -> Peak {
        let mut sum = Peak::default();
        for pid in processes {
            // proc(5): `shared` is RssFile and RssShmem together. /proc/PID/status, which has them apart, is long to
            // write and to read.
            let Ok(pages) = Process::new(*pid as i32).and_then(|process| process.statm()) else { continue };
            sum.anonymous_bytes += pages.resident.saturating_sub(pages.shared) * procfs::page_size();
            sum.file_bytes += pages.shared * procfs::page_size();
        }
        sum
    }

    #[cfg(test)]
    mod tests {
        use procfs::FromBufRead;

        use super::*;

        fn maps(text: &str) -> MemoryMaps {
            MemoryMaps::from_buf_read(text.as_bytes()).expect("maps as the kernel writes them")
        }

        const ROLLUP: &str = "55e0-7ffd ---p 00000000 00:00 0                          [rollup]\n\
            Rss:                 900 kB\nPss:                 600 kB\nPss_Anon:            300 kB\n\
            Pss_File:            100 kB\nPss_Shmem:           200 kB\nShared_Hugetlb:     2048 kB\n\
            Private_Hugetlb:       0 kB\n";

        /// A mapping of 4 MB of which 200 kB are this process's share.
        fn mapped(path: &str) -> Option<Vec<MemoryMap>> {
            let text = format!("7f00-7f10 rw-s 00000000 00:19 5          {path}\nPss:                 200 kB\n");
            Some(maps(&text).0)
        }

        #[test]
        fn files_below_the_directory_of_segments_are_files() {
            let shared_bytes = |path: &str| share(&maps(ROLLUP), || mapped(path)).expect("a share").own.shared_bytes;
            assert_eq!(shared_bytes("/dev/shm/PostgreSQL.5"), 200 << 10);
            assert_eq!(shared_bytes("/dev/shm/kvfair-1/data/data.mdb"), 0);
            assert_eq!(shared_bytes("/tmp/data.mdb"), 0);
        }

        #[test]
        fn larger_pages_that_a_tree_shares_count_once() {
            let mut sum = Sum::default();
            for _ in 0..3 {
                sum.add(share(&maps(ROLLUP), || mapped("/tmp/file")).expect("a share"));
            }
            let peak = sum.peak();
            assert_eq!((peak.anonymous_bytes, peak.shared_bytes), (900 << 10, 2 << 20), "{peak:?}");
        }

        /// Its status tells then.
        #[test]
        fn a_kernel_without_shares_by_kind_tells_none() {
            let before_5_3: String =
                ROLLUP.lines().filter(|line| !line.contains('_')).map(|l| format!("{l}\n")).collect();
            assert_eq!(share(&maps(&before_5_3), || mapped("/tmp/file")), None);
        }

        #[test]
        fn a_status_tells_our_own_memory() {
            let held = vec![1_u8; 20 << 20];
            // Other tests of this process take and free memory between both readings: the nearest two count.
            let read = || {
                let (by_status, by_shares) = (statuses_of(&[std::process::id()]), shares_of(&[std::process::id()]));
                assert!(by_status.anonymous_bytes > held.len() as u64, "{by_status:?}");
                by_status.anonymous_bytes.abs_diff(by_shares.anonymous_bytes)
            };
            let apart = (0..50).map(|_| read()).min().expect("it was read");
            assert!(apart < 8 << 20, "{apart}");
        }
    }
}

/// Elsewhere only our own reaped children's CPU could be had: nothing is said rather than something wrong.
#[cfg(not(target_os = "linux"))]
pub fn reading(_: u32) -> UsageReading {
    UsageReading::default()
}

#[cfg(not(target_os = "linux"))]
pub fn family(root: u32) -> Vec<u32> {
    vec![root]
}

#[cfg(not(target_os = "linux"))]
pub fn runs(_: u32) -> bool {
    false
}

#[cfg(not(target_os = "linux"))]
pub fn name_of(_: u32) -> Option<String> {
    None
}

#[cfg(not(target_os = "linux"))]
pub fn children(_: u32) -> Vec<u32> {
    Vec::new()
}

#[cfg(not(target_os = "linux"))]
pub fn memory_of(_: &[u32]) -> Peak {
    Peak::default()
}

#[cfg(not(target_os = "linux"))]
pub fn shares_of(_: &[u32]) -> Peak {
    Peak::default()
}

#[cfg(not(target_os = "linux"))]
pub fn statuses_of(_: &[u32]) -> Peak {
    Peak::default()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write;
    use std::process::{Command, Stdio};

    use super::*;

    /// Who joins a tree after it was first looked at counts too.
    #[test]
    fn the_memory_of_who_is_started_later_counts() {
        // Without a line's end tail keeps all of it.
        let script = "read line; { head -c 50000000 /dev/zero; sleep 20; } | tail";
        let mut shell =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::null()).spawn().expect("sh");
        let mut peaks = Peaks::default();
        peaks.look(&[shell.id()]);
        let alone_bytes = peaks.peak.anonymous_bytes;
        shell.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("it listens");
        let began = std::time::Instant::now();
        while peaks.peak.anonymous_bytes < 50_000_000 && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            peaks.look(&[shell.id()]);
        }
        let all = family(shell.id());
        for pid in all.into_iter().rev() {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL);
        }
        let _ = shell.wait();
        assert!(alone_bytes < 10_000_000, "{alone_bytes} bytes before");
        assert!(peaks.peak.anonymous_bytes >= 50_000_000, "{:?}", peaks.peak);
    }
}
