//! Whose work the processors did: ours, the kernel's threads', other programs', and nobody's that can be seen.
//!
//! Programs are looked at one by one, by the kernel's CPU clock of each. The sum that /proc/stat keeps would be less
//! work and does not serve: it guesses by ticks who runs, which missed 10 % of two processors while two processes woke
//! each other; what it says of idling is exact, and gives what is busy but nobody's.

use std::collections::{HashMap, HashSet};
use std::time::Instant;

use crate::model::noise::Noise;

/// All processes that can be seen, at one moment.
#[derive(Clone, Debug)]
pub struct Programs {
    at: Instant,
    processors: Option<Processors>,
    processes: HashMap<u32, Process>,
    /// Ours, also those that we have lost sight of since.
    ours: HashSet<u32>,
}

/// The line "cpu" of /proc/stat.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Processors {
    count: u32,
    idle_s: f64,
    steal_s: f64,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct Process {
    own_ns: u64,
    parent: u32,
    is_kernels: bool,
    /// What children used up whose end it has been told, and theirs.
    reaped_s: f64,
}

impl Process {
    fn all_s(&self) -> f64 {
        self.own_ns as f64 / 1e9 + self.reaped_s
    }
}

/// Looks at everything; ours are `roots` and what descends from them. Who has not run since `earlier` is not read
/// again.
pub fn look(roots: &[u32], earlier: Option<&Programs>) -> Option<Programs> {
    let at = Instant::now();
    let processors = std::fs::read_to_string("/proc/stat").ok().and_then(|text| parse_processors(&text));
    let mut processes = HashMap::new();
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok());
        let Some((pid, own_ns)) = pid.and_then(|pid| Some((pid, clock_ns(pid)?))) else { continue };
        let known = earlier.and_then(|earlier| earlier.processes.get(&pid)).filter(|known| known.own_ns == own_ns);
        let read = || parse_process(&std::fs::read_to_string(entry.path().join("stat")).ok()?, own_ns);
        if let Some(process) = known.copied().or_else(read) {
            processes.insert(pid, process);
        }
    }
    // Who was ours then is ours until its number can be another's.
    let known =
        |earlier: &Programs| earlier.ours.iter().filter(|pid| earlier.processes.contains_key(pid)).copied().collect();
    let mut ours: HashSet<u32> = earlier.map_or_else(HashSet::new, known);
    ours.extend(roots);
    add_descendants(&mut ours, &processes);
    (!processes.is_empty()).then_some(Programs { at, processors, processes, ours })
}

fn add_descendants(ours: &mut HashSet<u32>, processes: &HashMap<u32, Process>) {
    loop {
        let before = ours.len();
        ours.extend(
            processes
                .iter()
                .filter(|(_, process)| ours.contains(&process.parent))
                .map(|(pid, _)| *pid)
                .collect::<Vec<_>>(),
        );
        if ours.len() == before {
            return;
        }
    }
}

impl Programs {
    /// What went on since `earlier`. Of a server that kvfair did not start nothing could be told apart: then
    /// `beside_guest`.
    pub fn since(&self, earlier: &Programs, beside_guest: bool) -> Noise {
        let seen_s = self.at.duration_since(earlier.at).as_secs_f64();
        let Some((now, then)) = self.processors.zip(earlier.processors) else {
            return Noise { seen_s, ..Noise::default() };
        };
        let all_s = (seen_s * f64::from(now.count)).max(f64::MIN_POSITIVE);
        let share = |part_s: f64| Some((part_s / all_s).clamp(0.0, 1.0));
        // Whose end we miss is still one of ours.
        let is_ours = |pid: &u32| self.ours.contains(pid);
        let used = |of: &dyn Fn(&u32, &Process) -> bool| used_s(&earlier.processes, &self.processes, of);
        let ours_s = used(&|pid, _| is_ours(pid));
        let kernels_s = used(&|_, process| process.is_kernels);
        let foreign_s = used(&|pid, process| !process.is_kernels && !is_ours(pid));
        let (idle_s, steal_s) = ((now.idle_s - then.idle_s).max(0.0), (now.steal_s - then.steal_s).max(0.0));
        Noise {
            seen_s,
            cpus: now.count,
            foreign_share: share(foreign_s).filter(|_| !beside_guest),
            kernel_share: share(kernels_s).filter(|_| self.sees_all()),
            unclaimed_share: share(all_s - idle_s - steal_s - ours_s - kernels_s - foreign_s).filter(|_| !beside_guest),
            steal_share: share(steal_s),
            ..Noise::default()
        }
    }

    /// Who sees the kernel's threads sees all programs: they are hidden together, by a container or by `hidepid`.
    pub fn sees_all(&self) -> bool {
        self.processes.values().any(|process| process.is_kernels)
    }
}

/// What those processes used up from one look to the next, in seconds.
///
/// What a process used up is handed to its parent when that one is told of its end, so that the sum over all loses
/// nothing, whenever they began or ended. But where nobody asks how a child ended its sum is lost, together with what
/// was known of it before: then what the survivors used up is at least right about them.
fn used_s(before: &HashMap<u32, Process>, after: &HashMap<u32, Process>, of: &dyn Fn(&u32, &Process) -> bool) -> f64 {
    let sum = |processes: &HashMap<u32, Process>| -> f64 {
        processes.iter().filter(|(pid, process)| of(pid, process)).map(|(_, process)| process.all_s()).sum()
    };
    let survived = after.iter().filter(|(pid, process)| of(pid, process)).map(|(pid, now)| {
        let then_ns = before.get(pid).map_or(0, |then| then.own_ns);
        // A clock that went back is another process' of the same number.
        now.own_ns.checked_sub(then_ns).unwrap_or(now.own_ns) as f64 / 1e9
    });
    survived.sum::<f64>().max(sum(after) - sum(before))
}

/// proc_stat(5): user, nice, system, idle, iowait, irq, softirq, steal, in ticks. Waiting for a disk is idling.
fn parse_processors(text: &str) -> Option<Processors> {
    let all = text.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks = all.split_whitespace().map(|field| field.parse::<u64>().ok()).collect::<Option<Vec<u64>>>()?;
    // Sandboxes that keep no count say 0.
    if ticks.len() < 8 || ticks.iter().all(|&count| count == 0) {
        return None;
    }
    let count = text.lines().filter(|line| line.starts_with("cpu") && !line.starts_with("cpu ")).count() as u32;
    let seconds = |ticks: u64| ticks as f64 / ticks_per_second();
    (count > 0).then_some(Processors { count, idle_s: seconds(ticks[3] + ticks[4]), steal_s: seconds(ticks[7]) })
}

/// proc_pid_stat(5). A program's name may hold whatever it likes, so fields are counted from its closing bracket.
fn parse_process(text: &str, own_ns: u64) -> Option<Process> {
    let fields: Vec<&str> = text.get(text.rfind(')')? + 1..)?.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<i64>().ok();
    let reaped_ticks = field(16)?.max(0) + field(17)?.max(0);
    Some(Process {
        own_ns,
        parent: u32::try_from(field(4)?).ok()?,
        is_kernels: field(9)? & PF_KTHREAD != 0,
        reaped_s: reaped_ticks as f64 / ticks_per_second(),
    })
}

/// A thread of the kernel's own: include/linux/sched.h.
const PF_KTHREAD: i64 = 0x0020_0000;

#[cfg(target_os = "linux")]
fn ticks_per_second() -> f64 {
    procfs::ticks_per_second() as f64
}

#[cfg(not(target_os = "linux"))]
fn ticks_per_second() -> f64 {
    100.0
}

#[cfg(target_os = "linux")]
fn clock_ns(pid: u32) -> Option<u64> {
    use nix::sys::time::TimeValLike;
    let clock = nix::time::clock_getcpuclockid(nix::unistd::Pid::from_raw(pid as i32)).ok()?;
    u64::try_from(nix::time::clock_gettime(clock).ok()?.num_nanoseconds()).ok()
}

#[cfg(not(target_os = "linux"))]
fn clock_ns(_: u32) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_and_missing_counts_are_none() {
        let text =
            "cpu  10 20 30 400 50 6 7 80 0 0\ncpu0 5 10 15 200 25 3 3 40 0 0\ncpu1 5 10 15 200 25 3 4 40 0 0\nintr 1\n";
        let per_s = ticks_per_second();
        let right = Processors { count: 2, idle_s: 450.0 / per_s, steal_s: 80.0 / per_s };
        assert_eq!(parse_processors(text), Some(right));
        let zeros = text.replace(|letter: char| letter.is_ascii_digit(), "0");
        for bad in
            ["", "cpu", "cpu  1 2 3\ncpu0 1 2 3\n", "cpu  1 2 3 4 5 6 7 8\n", "cpu  1 2 x 4 5 6 7 8\ncpu0 1\n", &zeros]
        {
            assert_eq!(parse_processors(bad), None, "{bad:?}");
        }

        let line = |name: &str, flags: u32| {
            format!("7 ({name}) S 2 0 0 0 -1 {flags} 0 0 0 0 11 12 {per_s} {per_s} 20 0 1 0 9\n")
        };
        let read = |name, flags| parse_process(&line(name, flags), 5);
        let program = Process { own_ns: 5, parent: 2, is_kernels: false, reaped_s: 2.0 };
        for name in ["redis", "a b", ") S 1 1", "", "((", "\n)"] {
            assert_eq!(read(name, 0x40_0000), Some(program), "{name:?}");
        }
        assert_eq!(read("kworker/0:1", 0x20_8040), Some(Process { is_kernels: true, ..program }));
        for bad in ["", "7 (", "7 ()", "7 (x) S 2 0", "7 (x) S -2 0 0 0 -1 0 0 0 0 0 1 1 1 1"] {
            assert_eq!(parse_process(bad, 5), None, "{bad:?}");
        }
    }

    fn process(own_s: u64, reaped_s: f64) -> Process {
        Process { own_ns: own_s * 1_000_000_000, parent: 1, is_kernels: false, reaped_s }
    }

    #[test]
    fn nothing_is_lost_of_those_that_begin_and_end_in_between() {
        let all = |_: &u32, _: &Process| true;
        let used = |before: &[(u32, Process)], after: &[(u32, Process)]| {
            used_s(&before.iter().copied().collect(), &after.iter().copied().collect(), &all)
        };
        // 2 had used 10 s before and 3 s since, and was told to its parent; so was another one, with 4 s in between.
        let before = [(1, process(5, 0.0)), (2, process(10, 0.0))];
        assert_eq!(used(&before, &[(1, process(6, 17.0))]), 8.0);
        // Nobody asked how 2 ended: what is known of 1 holds.
        assert_eq!(used(&before, &[(1, process(6, 0.0))]), 1.0);
        // A number that was given out again.
        assert_eq!(used(&before, &[(1, process(6, 0.0)), (2, process(3, 0.0))]), 4.0);
        assert_eq!(used(&before, &before), 0.0);
    }

    #[cfg(target_os = "linux")]
    mod real {
        use std::io::{Read, Write};
        use std::os::unix::process::CommandExt;
        use std::process::{Child, Command, Stdio};
        use std::time::Duration;

        use nix::sys::signal::{Signal, killpg};
        use nix::unistd::Pid;

        use super::super::*;

        /// A shell in a group of its own, which is gone when the test is over.
        struct Shell(Child);

        fn shell(script: &str) -> Shell {
            let mut command = Command::new("sh");
            command.args(["-c", script]).stdin(Stdio::piped()).stdout(Stdio::piped()).process_group(0);
            Shell(command.spawn().expect("every system has a shell"))
        }

        impl Shell {
            fn go(&mut self) {
                self.0.stdin.as_mut().expect("a pipe").write_all(b"go\n").expect("the shell listens");
            }

            fn hear(&mut self) {
                self.0.stdout.as_mut().expect("a pipe").read_exact(&mut [0; 1]).expect("the shell answers");
            }
        }

        impl Drop for Shell {
            fn drop(&mut self) {
                let _ = killpg(Pid::from_raw(self.0.id() as i32), Signal::SIGKILL);
                let _ = self.0.wait();
            }
        }

        /// Seconds that went to strangers: as a family sees it, and as somebody without one would have.
        fn foreign_s(root: u32, meanwhile: impl FnOnce()) -> [f64; 2] {
            let before = look(&[root], None).expect("/proc is there");
            meanwhile();
            let after = look(&[root], Some(&before)).expect("/proc is there");
            let alone = Programs { ours: HashSet::new(), ..after.clone() };
            [after, alone].map(|after| {
                let noise = after.since(&before, false);
                noise.foreign_share.expect("processes are seen") * noise.seen_s * f64::from(noise.cpus)
            })
        }

        #[test]
        fn a_familys_work_is_foreign_to_others_and_its_own_to_itself() {
            let mut parent = shell("(while :; do :; done)& (while :; do :; done)& echo; wait");
            parent.hear();
            let spun_ns =
                || -> u64 { crate::harness::watch::family(parent.0.id()).into_iter().filter_map(clock_ns).sum() };
            let before_ns = spun_ns();
            let [own_s, foreign_s] = foreign_s(parent.0.id(), || std::thread::sleep(Duration::from_millis(500)));
            let spun_s = (spun_ns() - before_ns) as f64 / 1e9;
            // However many others want the processors, these get something.
            assert!(spun_s > 0.03, "{spun_s} s were spun");
            let difference_s = foreign_s - own_s;
            assert!(difference_s > 0.8 * spun_s - 0.02, "{difference_s} s of {spun_s} s");
        }

        #[test]
        fn children_that_have_ended_still_count() {
            let mut busy = shell("read line; (i=0; while [ $i -lt 150000 ]; do i=$((i+1)); done); echo; read line");
            let busy_id = busy.0.id();
            let [own_s, foreign_s] = foreign_s(busy_id, || {
                busy.go();
                busy.hear();
            });
            let stat = std::fs::read_to_string(format!("/proc/{busy_id}/stat")).expect("the shell lives");
            let reaped_s = parse_process(&stat, 0).expect("a process").reaped_s;
            assert!(reaped_s > 0.03, "too little work to be seen: {reaped_s} s");
            let difference_s = foreign_s - own_s;
            assert!(difference_s > 0.8 * reaped_s - 0.02, "{difference_s} s of {reaped_s} s");
        }

        /// The work of one kernel thread after another; `None` where there are none to be seen.
        fn kernels_ns() -> Option<u64> {
            let children = std::fs::read_to_string("/proc/2/task/2/children").ok()?;
            let is_its = std::fs::read_to_string("/proc/2/comm").is_ok_and(|name| name == "kthreadd\n");
            is_its.then(|| children.split(' ').filter_map(|pid| clock_ns(pid.parse().ok()?)).sum())
        }

        #[test]
        fn what_the_kernel_writes_back_for_us_is_no_strangers() {
            let Some(before_ns) = kernels_ns() else { return eprintln!("the kernel's threads cannot be seen here") };
            let us = std::process::id();
            let before = look(&[us], None).expect("/proc is there");
            let mut file = tempfile::tempfile().expect("a file");
            let mut written = 0;
            // Until the kernel's threads have worked for long enough to be told from nothing.
            while kernels_ns().unwrap_or(0) < before_ns + 20_000_000 && written < 400 {
                file.write_all(&[7; 1 << 20]).and_then(|()| file.sync_data()).expect("the disk takes it");
                written += 1;
            }
            let after = look(&[us], Some(&before)).expect("/proc is there");
            let kernels_s = (kernels_ns().expect("they are still there") - before_ns) as f64 / 1e9;
            let noise = after.since(&before, false);
            // Who could not tell the kernel's threads from programs would see so many more strangers.
            let blind = [before, after].map(|mut programs| {
                programs.processes.values_mut().for_each(|process| process.is_kernels = false);
                programs
            });
            let mistaken = blind[1].since(&blind[0], false);
            assert_eq!(mistaken.kernel_share, None, "who sees none does not see all");
            let all_s = noise.seen_s * f64::from(noise.cpus);
            let more_s = (mistaken.foreign_share.zip(noise.foreign_share).map(|(more, less)| more - less))
                .unwrap_or(0.0)
                * all_s;
            let counted_s = noise.kernel_share.expect("they are seen") * all_s;
            for (what, found_s) in [("the kernel's", counted_s), ("strangers if they were", more_s)] {
                assert!((found_s - kernels_s).abs() < 0.2 * kernels_s + 0.02, "{what}: {found_s} s of {kernels_s} s");
            }
        }

        #[test]
        fn who_has_not_run_is_not_read_again_and_tells_the_same() {
            let idle = shell("read line");
            let of = |programs: &Programs| programs.processes.get(&idle.0.id()).copied();
            let is_known = || {
                let first = look(&[std::process::id()], None).expect("/proc is there");
                std::thread::sleep(Duration::from_millis(20));
                let second = look(&[std::process::id()], Some(&first)).expect("/proc is there");
                assert!(second.ours.contains(&idle.0.id()), "our child is ours");
                of(&first).is_some() && of(&first) == of(&second)
            };
            // On a busy machine the shell may still be on its way to its rest.
            assert!((0..500).any(|_| is_known()), "it never rests");
        }

        /// What looking costs, in CPU time: `cargo test --lib -- --ignored --nocapture costs_of`.
        #[test]
        #[ignore = "measures"]
        fn costs_of_looking() {
            let used_ns = || clock_ns(std::process::id()).expect("we have a clock");
            let time = |what: &str, work: &mut dyn FnMut()| {
                let began_ns = used_ns();
                (0..100).for_each(|_| work());
                eprintln!("{what}: {:.3} ms", (used_ns() - began_ns) as f64 / 1e8);
            };
            let us = std::process::id();
            let first = look(&[us], None).expect("/proc is there");
            eprintln!("{} processes", first.processes.len());
            time("first look", &mut || drop(look(&[us], None)));
            time("second look", &mut || drop(look(&[us], Some(&first))));
            time("waits of one process", &mut || drop(crate::harness::gates::queue::waits(&[us])));
            let processor_probe = crate::harness::gates::processor_probe::ProcessorProbe::default();
            processor_probe.look();
            time("processor_probe", &mut || assert!(processor_probe.look().is_some()));
        }
    }
}
