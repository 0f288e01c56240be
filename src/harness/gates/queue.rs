//! How long threads waited for a processor while they could have worked: the kernel's run-queue delay of each thread.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// What one thread has had since it began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    pub ran_ns: u64,
    pub waited_ns: u64,
    /// How often it was given a processor.
    pub times: u64,
}

/// By thread. A thread that has ended is not in it.
pub type Waits = BTreeMap<u32, Wait>;

/// What threads waited in a phase.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Waited {
    /// Of all threads together.
    pub delay_s: f64,
    /// Of the thread that waited longest, without what waking up takes.
    pub worst_s: f64,
    /// Threads that were at work.
    pub busy: u32,
}

/// Waking up is no waiting for others, and takes so long on a virtual machine (20 to 60 us; docs/workloads.md, Rates):
/// so much is taken off each time. Who is kept from working by another thread waits for its time slice, 700 us at the
/// least (`sysctl_sched_base_slice`, kernel/sched/fair.c).
const WAKING_NS: u64 = 60_000;
/// Who runs or waits for less of the time keeps nobody waiting: the lowest limit of the gate (model/noise.rs).
const BUSY_SHARE: f64 = 0.02;

/// What happened to the threads of `after` since `before`, in `wall_s` seconds. A thread that `before` does not know
/// began in between.
pub fn between(before: &Waits, after: &Waits, wall_s: f64) -> Waited {
    let mut sum = Waited::default();
    for (thread, now) in after {
        let then = before.get(thread).copied().unwrap_or_default();
        let ran_ns = now.ran_ns.saturating_sub(then.ran_ns);
        let waited_ns = now.waited_ns.saturating_sub(then.waited_ns);
        let waking_ns = now.times.saturating_sub(then.times) * WAKING_NS;
        sum.delay_s += waited_ns as f64 / 1e9;
        sum.worst_s = sum.worst_s.max(waited_ns.saturating_sub(waking_ns) as f64 / 1e9);
        sum.busy += u32::from((ran_ns + waited_ns) as f64 / 1e9 >= BUSY_SHARE * wall_s);
    }
    sum
}

/// `ran_ns waited_ns times`: Documentation/scheduler/sched-stats.rst.
fn parse(text: &str) -> Option<Wait> {
    let mut fields = text.split_whitespace().map(|field| field.parse::<u64>().ok());
    let wait = Wait { ran_ns: fields.next()??, waited_ns: fields.next()??, times: fields.next()?? };
    // A kernel that does not count says 0 for everything, of a thread that must have run.
    (wait != Wait::default()).then_some(wait)
}

/// All threads of a process and of its descendants that live; `None` where the kernel does not tell.
pub fn waits(roots: &[u32]) -> Option<Waits> {
    Some(waits_of(&crate::harness::watch::families(roots))).filter(|waits| !waits.is_empty())
}

/// All threads of these processes; none where the kernel does not tell.
pub fn waits_of(processes: &[u32]) -> Waits {
    let tasks = processes.iter().filter_map(|pid| std::fs::read_dir(format!("/proc/{pid}/task")).ok());
    tasks
        .flatten()
        .filter_map(|task| {
            let task = task.ok()?;
            let wait = parse(&std::fs::read_to_string(task.path().join("schedstat")).ok()?)?;
            Some((task.file_name().to_str()?.parse().ok()?, wait))
        })
        .collect()
}

/// The thread that asks.
#[cfg(target_os = "linux")]
pub fn own() -> Option<(u32, Wait)> {
    let wait = parse(&std::fs::read_to_string("/proc/thread-self/schedstat").ok()?)?;
    Some((nix::unistd::gettid().as_raw() as u32, wait))
}

#[cfg(not(target_os = "linux"))]
pub fn own() -> Option<(u32, Wait)> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_and_missing_counts_are_none() {
        assert_eq!(parse("12 34 5\n"), Some(Wait { ran_ns: 12, waited_ns: 34, times: 5 }));
        for bad in ["", "0 0 0", "1 2", "1 2 x", "-1 2 3", "99999999999999999999 1 1", "\u{0}\u{0}"] {
            assert_eq!(parse(bad), None, "{bad:?}");
        }
        assert_eq!(waits(&[u32::MAX >> 1]), None, "no such process");
    }

    #[test]
    fn waking_up_often_is_no_waiting_for_others() {
        let ms = 1_000_000;
        let before = Waits::from([(1, Wait { ran_ns: 5 * ms, waited_ns: 7 * ms, times: 3 })]);
        // 1: was kept waiting four times, 25 ms each. 2: woke up two thousand times, 50 us each. 3: hardly ever ran.
        let after = Waits::from([
            (1, Wait { ran_ns: 805 * ms, waited_ns: 107 * ms, times: 7 }),
            (2, Wait { ran_ns: 30 * ms, waited_ns: 100 * ms, times: 2_000 }),
            (3, Wait { ran_ns: 10 * ms, waited_ns: 5 * ms, times: 1 }),
        ]);
        let waited = between(&before, &after, 1.0);
        assert_eq!(waited.busy, 2);
        assert!((waited.delay_s - 0.205).abs() < 1e-9, "{waited:?}");
        assert!((waited.worst_s - (0.1 - 4.0 * 60e-6)).abs() < 1e-9, "{waited:?}");
        // A thread's number that was given out again counts nothing that never was.
        assert_eq!(between(&after, &before, 1.0), Waited::default());
    }

    /// Two that spin on one processor: each must wait for about as long as the other runs.
    #[cfg(target_os = "linux")]
    #[test]
    fn threads_that_share_a_processor_wait_for_it() {
        use std::time::{Duration, Instant};
        let Some(_) = own() else { return eprintln!("this kernel does not tell run-queue delays") };
        let cpus = std::thread::available_parallelism().map_or(1, usize::from);
        let spin = |spinners: usize| -> f64 {
            let began = Instant::now();
            let one = || {
                let before = own().expect("it was there");
                while began.elapsed() < Duration::from_millis(400) {}
                let after = own().expect("it was there");
                between(&Waits::from([before]), &Waits::from([after]), 0.4).worst_s
            };
            std::thread::scope(|scope| {
                let threads: Vec<_> = (0..spinners).map(|_| scope.spawn(one)).collect();
                threads.into_iter().map(|thread| thread.join().expect("a spinner")).fold(0.0, f64::max)
            })
        };
        // Three for each processor: whoever else is here, some must wait for at least a third of the time.
        let waited_s = spin(3 * cpus);
        assert!(waited_s > 0.13, "{waited_s}");
    }
}
