//! Other programs at work beside a test. Only tests of the binary `alone` may use it.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::common::desk::Desk;

/// Held by each test of the binary `alone`: one runs at a time, whatever the number of test threads.
pub fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Others at work: three for each processor, until the value goes.
pub struct Spinners(Vec<std::process::Child>);

pub fn spinners(desk: &Desk) -> Spinners {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    so_many_spinners(desk, 3 * cpus)
}

pub fn so_many_spinners(desk: &Desk, count: usize) -> Spinners {
    let one = |_| desk.command("/bin/sh", &["-c", "while :; do :; done"]).spawn().expect("every system has a shell");
    Spinners((0..count).map(one).collect())
}

impl Drop for Spinners {
    fn drop(&mut self) {
        for spinner in &mut self.0 {
            let _ = spinner.kill();
            let _ = spinner.wait();
        }
    }
}
