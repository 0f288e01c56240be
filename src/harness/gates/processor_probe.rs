//! How fast this processor and this disk are just now, by work that is always the same. It catches what no file tells:
//! clocks that drop, heat, neighbours on the same core, a throttled disk.

use std::cell::Cell;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::time::{Duration, Instant};

use nix::sys::time::TimeValLike;
use nix::time::{ClockId, clock_gettime};

use crate::draw;
use crate::harness::signals::Interrupt;

/// Steps of the loop: 3.5 ms on the processor that it was written on (2.5 GHz). Never another number, nor another loop:
/// times are compared.
const STEPS: u32 = 1_000_000;
/// The best of so many counts: one may meet an interrupt, or a clock that is still on its way up.
const TRIES: u32 = 5;
/// As good as the best so far, so that a look may stop: nothing is said of what is less slow. In a steady run a look is
/// one try.
const AS_GOOD: f64 = 1.03;
/// A processor that is slower than this, by the best of the run, is waited for: noise.rs discards such trials.
const SLOW: f64 = 1.10;
/// How often is looked again.
const PAUSE: Duration = Duration::from_secs(1);

/// Looks again and again in one run, and knows the best so far.
#[derive(Debug, Default)]
pub struct ProcessorProbe {
    best_ns: Cell<Option<u64>>,
}

impl ProcessorProbe {
    /// The best time of the loop, in nanoseconds of this thread's own CPU time: who else runs is for others to count.
    pub fn look(&self) -> Option<u64> {
        let mut found: Option<u64> = None;
        for _ in 0..TRIES {
            let took_ns = once()?;
            found = Some(found.map_or(took_ns, |found| found.min(took_ns)));
            if self.best_ns.get().is_some_and(|best| took_ns as f64 <= best as f64 * AS_GOOD) {
                break;
            }
        }
        self.best_ns.set(self.best_ns.get().into_iter().chain(found).min());
        found
    }

    /// Waits until the loop is no more than a tenth slower than at its best, looking now and then. False where that did
    /// not come true in time.
    pub fn wait_until_quiet(&self, at_most: Duration, interrupt: &Interrupt) -> bool {
        let began = Instant::now();
        loop {
            let slow = self.look().zip(self.best_ns.get()).is_some_and(|(now, best)| now as f64 > best as f64 * SLOW);
            if !slow || interrupt.is_set() || began.elapsed() >= at_most {
                return !slow;
            }
            std::thread::sleep(PAUSE.min(at_most));
        }
    }
}

fn once() -> Option<u64> {
    let began_ns = own_ns()?;
    draw::steps(STEPS);
    own_ns()?.checked_sub(began_ns).filter(|&took_ns| took_ns > 0)
}

/// This thread's own CPU time.
fn own_ns() -> Option<u64> {
    let time = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).ok()?;
    u64::try_from(time.num_nanoseconds()).ok()
}

/// Pages that are synced, and what they may take together: a slow disk has told enough by then.
const SYNCS: usize = 20;
const SYNCS_AT_MOST: Duration = Duration::from_millis(300);
const PAGE: [u8; 4096] = [b'k'; 4096];

/// The median time to append a page to a file in `directory` and sync it, in nanoseconds.
pub fn disk_sync(directory: &Path) -> io::Result<u64> {
    let times_ns = disk_syncs(directory, SYNCS, SYNCS_AT_MOST)?;
    Ok(times_ns[times_ns.len() / 2])
}

/// The times to append a page to a file in `directory` and sync it, in nanoseconds and in order: at least one, at most
/// `syncs`. The file has no name and is gone afterwards.
pub fn disk_syncs(directory: &Path, syncs: usize, at_most: Duration) -> io::Result<Vec<u64>> {
    let mut file: File = tempfile::tempfile_in(directory)?;
    let began = Instant::now();
    let mut times_ns = Vec::with_capacity(syncs);
    while times_ns.is_empty() || (times_ns.len() < syncs && began.elapsed() < at_most) {
        file.write_all(&PAGE)?;
        let start = Instant::now();
        file.sync_data()?;
        times_ns.push(start.elapsed().as_nanos() as u64);
    }
    times_ns.sort_unstable();
    Ok(times_ns)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn the_same_work_takes_the_same_time_however_busy_the_machine_is() {
        let look =
            || (0..3).filter_map(|_| ProcessorProbe::default().look()).min().expect("every system has the clock");
        let best = look();
        let done = AtomicBool::new(false);
        let again = std::thread::scope(|scope| {
            let cpus = std::thread::available_parallelism().map_or(1, usize::from);
            for _ in 0..6 * cpus {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let again = look();
            done.store(true, Ordering::Relaxed);
            again
        });
        // By the wall it takes six times as long. Two threads of one core slow each other by less than half.
        assert!((again as f64) < 3.0 * best as f64, "{again} ns beside {best} ns");
        assert!(best > 100_000, "the loop was compiled away: {best} ns");
    }

    #[test]
    fn a_look_that_is_as_good_as_the_best_is_one_try() {
        let time = |best_ns| {
            let processor_probe = ProcessorProbe { best_ns: Cell::new(best_ns) };
            let began = own_ns().expect("a clock");
            processor_probe.look().expect("a clock");
            own_ns().expect("a clock") - began
        };
        let (all, one) = (time(None), time(Some(u64::MAX)));
        assert!(one * 3 < all, "{one} ns beside {all} ns");
    }

    #[test]
    fn nobody_waits_where_it_is_quiet_nor_for_ever() {
        let (interrupt, began) = (Interrupt::default(), Instant::now());
        let processor_probe = ProcessorProbe { best_ns: Cell::new(Some(u64::MAX)) };
        assert!(processor_probe.wait_until_quiet(Duration::from_secs(60), &interrupt));
        assert!(processor_probe.best_ns.get() < Some(u64::MAX), "what is better is kept");
        let never = ProcessorProbe { best_ns: Cell::new(Some(1)) };
        assert!(!never.wait_until_quiet(Duration::from_millis(20), &interrupt), "faster than any processor");
        assert!(began.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn a_disk_is_looked_at_without_a_trace() {
        let directory = tempfile::tempdir().expect("a directory");
        assert!(disk_sync(directory.path()).expect("a disk") > 0);
        assert_eq!(std::fs::read_dir(directory.path()).expect("the directory").count(), 0);
        assert!(disk_sync(&directory.path().join("missing")).is_err());
    }
}
