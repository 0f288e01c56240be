//! CPU, memory and bytes written of other processes, seen from outside so that watching costs them nothing.

use std::time::Instant;

use crate::words::record::{Peak, Second, Usage};

/// What a process tree had used up at one moment; two of them make a [`Usage`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Reading {
    cpu_s: f64,
    user_ticks: u64,
    system_ticks: u64,
    bytes_written: Option<u64>,
}

/// A store's processes by whole seconds.
pub struct Series {
    seconds: Vec<Second>,
    began: Instant,
    before: Reading,
}

impl Series {
    /// Begins now, with the second that is to come.
    pub fn begin(before: Reading) -> Series {
        Series { seconds: Vec::new(), began: Instant::now(), before }
    }

    /// Looks whether another second is over. A look that comes late makes one second a little longer, not a gap.
    pub fn look(&mut self, root: u32) {
        if self.began.elapsed().as_secs() as usize > self.seconds.len() {
            let now = reading(root);
            let cpu_s = now.since(&self.before).cpu_s();
            self.seconds.push(Second { cpu_s, anonymous_bytes: memory_of(&family(root)).anonymous_bytes });
            self.before = now;
        }
    }

    pub fn end(self) -> Vec<Second> {
        self.seconds
    }
}

impl Reading {
    /// What was used up since `earlier`. The sum is exact to the nanosecond where the kernel has a CPU clock for other
    /// processes; its split into user and system is as fine as the kernel's ticks.
    pub fn since(&self, earlier: &Reading) -> Usage {
        let user = self.user_ticks.saturating_sub(earlier.user_ticks) as f64;
        let system = self.system_ticks.saturating_sub(earlier.system_ticks) as f64;
        let cpu_s = (self.cpu_s - earlier.cpu_s).max(0.0);
        // A phase too short for a tick is split as the process' whole life is.
        let share = match user + system {
            0.0 => self.user_ticks as f64 / (self.user_ticks + self.system_ticks).max(1) as f64,
            ticks => user / ticks,
        };
        let written = self.bytes_written.zip(earlier.bytes_written).map(|(now, then)| now.saturating_sub(then));
        Usage { user_s: cpu_s * share, system_s: cpu_s * (1.0 - share), bytes_written: written, run_delay_s: None }
    }
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
}

impl Peaks {
    /// What somebody else has seen.
    pub fn of(peak: Peak) -> Peaks {
        Peaks { peak, ..Peaks::default() }
    }

    /// Looks once more.
    pub fn look(&mut self, root: u32) {
        if self.looks.is_multiple_of(LOOKS_A_FAMILY) {
            self.family = family(root);
        }
        self.looks += 1;
        let anonymous_bytes = memory_of(&self.family).anonymous_bytes.saturating_sub(self.twice_bytes);
        self.take(Peak { anonymous_bytes, ..Peak::default() });
    }

    /// Counts every page once.
    pub fn count(&mut self, root: u32) {
        self.family = family(root);
        let counted = shares_of(&self.family);
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
pub use linux::{children, family, memory_of, reading, shares_of};

#[cfg(target_os = "linux")]
mod linux {
    use nix::sys::time::TimeValLike;
    use nix::time::{clock_getcpuclockid, clock_gettime};
    use nix::unistd::Pid;
    use procfs::ProcResult;
    use procfs::process::{MMPermissions, MMapPath, MemoryMap, Process};

    use super::Reading;
    use crate::words::record::Peak;

    /// A process and all that descend from it and still live.
    pub fn family(root: u32) -> Vec<u32> {
        let mut members = vec![root];
        let mut next = 0;
        while next < members.len() {
            members.extend(children(members[next]));
            next += 1;
        }
        members
    }

    /// The children of a process, dead ones that nobody has waited for included.
    pub fn children(parent: u32) -> Vec<u32> {
        let children = Process::new(parent as i32).and_then(|process| {
            let tasks = process.tasks()?.flatten();
            Ok(tasks.filter_map(|task| task.children().ok()).flatten().collect::<Vec<_>>())
        });
        children.unwrap_or_default()
    }

    /// What a process tree has used up by now, its dead children included. A process that is gone counts nothing.
    pub fn reading(root: u32) -> Reading {
        let mut sum = Reading::default();
        for pid in family(root) {
            let Ok(process) = Process::new(pid as i32) else { continue };
            let Ok(stat) = process.stat() else { continue };
            let dead_user = stat.cutime.max(0) as u64;
            let dead_system = stat.cstime.max(0) as u64;
            sum.cpu_s += cpu_s(pid) + (dead_user + dead_system) as f64 / procfs::ticks_per_second() as f64;
            sum.user_ticks += stat.utime + dead_user;
            sum.system_ticks += stat.stime + dead_system;
            // Another user's /proc/PID/io is not ours to read: then nothing is said of bytes written.
            let written = process.io().ok().map(|io| io.write_bytes.saturating_sub(io.cancelled_write_bytes));
            sum.bytes_written = match (sum.bytes_written, written) {
                (Some(before), Some(more)) => Some(before + more),
                (before, more) => before.or(more),
            };
        }
        sum
    }

    fn cpu_s(pid: u32) -> f64 {
        let clock = clock_getcpuclockid(Pid::from_raw(pid as i32));
        let time = clock.and_then(clock_gettime);
        time.map_or(0.0, |time| time.num_nanoseconds() as f64 / 1e9)
    }

    /// What processes hold together, each page once: the kernel's proportional shares. Of a process whose maps are not
    /// ours to read its status tells less: there the largest of the shared segments counts.
    pub fn shares_of(processes: &[u32]) -> Peak {
        let (mut sum, mut shared_bytes, mut file_bytes) = (Peak::default(), 0, 0);
        for pid in processes {
            let Ok(process) = Process::new(*pid as i32) else { continue };
            match shares(&process) {
                Ok(share) => {
                    sum.anonymous_bytes += share.anonymous_bytes;
                    sum.shared_bytes += share.shared_bytes;
                    sum.file_bytes += share.file_bytes;
                }
                Err(_) => {
                    let Ok(status) = process.status() else { continue };
                    let bytes = |kilobytes: Option<u64>| kilobytes.unwrap_or(0) << 10;
                    sum.anonymous_bytes += bytes(status.rssanon);
                    shared_bytes = bytes(status.rssshmem).max(shared_bytes);
                    file_bytes = bytes(status.rssfile).max(file_bytes);
                }
            }
        }
        sum.shared_bytes += shared_bytes;
        sum.file_bytes += file_bytes;
        sum
    }

    /// The kernel counts files on tmpfs as shared memory: what is a segment is told by its name. proc_pid_smaps(5).
    fn shares(process: &Process) -> ProcResult<Peak> {
        let rollup = process.smaps_rollup()?.memory_map_rollup;
        let of = |map: &MemoryMap, name: &str| map.extension.map.get(name).copied().unwrap_or(0);
        let all = |name: &str| rollup.iter().map(|map| of(map, name)).sum::<u64>();
        let maps = process.smaps()?;
        let shared_bytes: u64 = maps.iter().filter(|map| is_segment(map)).map(|map| of(map, "Pss")).sum();
        let mapped_bytes = all("Pss_File") + all("Pss_Shmem");
        Ok(Peak {
            // What lies on pages of a fixed larger size is in no share.
            anonymous_bytes: all("Pss_Anon") + all("Private_Hugetlb"),
            shared_bytes: shared_bytes + all("Shared_Hugetlb"),
            file_bytes: mapped_bytes.saturating_sub(shared_bytes),
        })
    }

    /// Memory that processes share and that is no file: of mmap(2) without a file, shmget(2), shm_open(3) and
    /// memfd_create(2).
    fn is_segment(map: &MemoryMap) -> bool {
        const NAMES: [&str; 4] = ["/dev/zero", "/dev/shm/", "/memfd:", "/anon_hugepage"];
        map.perms.contains(MMPermissions::SHARED)
            && match &map.pathname {
                MMapPath::Vsys(_) => true,
                MMapPath::Path(path) => {
                    path.to_str().is_some_and(|path| NAMES.iter().any(|name| path.starts_with(name)))
                }
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
}

/// Elsewhere only our own reaped children's CPU could be had: nothing is said rather than something wrong.
#[cfg(not(target_os = "linux"))]
pub fn reading(_: u32) -> Reading {
    Reading::default()
}

#[cfg(not(target_os = "linux"))]
pub fn family(root: u32) -> Vec<u32> {
    vec![root]
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

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::{Read, Write};
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
        peaks.look(shell.id());
        let alone_bytes = peaks.peak.anonymous_bytes;
        shell.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("it listens");
        let began = Instant::now();
        while peaks.peak.anonymous_bytes < 50_000_000 && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
            peaks.look(shell.id());
        }
        let all = family(shell.id());
        for pid in all.into_iter().rev() {
            let _ = nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid as i32), nix::sys::signal::Signal::SIGKILL);
        }
        let _ = shell.wait();
        assert!(alone_bytes < 10_000_000, "{alone_bytes} bytes before");
        assert!(peaks.peak.anonymous_bytes >= 50_000_000, "{:?}", peaks.peak);
    }

    /// As a server forks to write its file: what the child used up is the server's, alive and after its end.
    #[test]
    fn what_a_dead_child_used_up_is_not_lost() {
        let script = "read line; (i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done); echo; read line";
        let mut shell =
            Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("sh");
        let before = reading(shell.id());
        shell.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("it listens");
        let mut done = [0; 1];
        shell.stdout.as_mut().expect("a pipe").read_exact(&mut done).expect("it answers");
        assert_eq!(family(shell.id()), [shell.id()], "the child has ended");
        let own_s = reading(shell.id()).since(&before).cpu_s();
        let _ = shell.kill();
        let _ = shell.wait();
        assert!(own_s > 0.03, "{own_s} s");
    }
}
