//! Ctrl-C and its like, as a flag that is asked between steps. A second one ends everything now.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::{process, scratch};

/// The signals that ask us to stop.
const STOPPING: [i32; 4] = [SIGINT, SIGTERM, SIGHUP, SIGQUIT];
/// What comes so soon after the first signal is the same wish, sent twice: `timeout` signals its child and then the
/// whole group, and a terminal that is closed both the shell's jobs and the session.
const TOGETHER: Duration = Duration::from_millis(500);
/// How long we may take to end by ourselves once all that we wait for is killed.
const LAST: Duration = Duration::from_secs(3);
/// The exit code of a run that was interrupted, as a shell has it of SIGINT.
const EXIT: i32 = 130;

/// Set when somebody wants us to stop: what is finished is kept and printed.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>, Arc<OnceLock<String>>);

impl Interrupt {
    /// From here on the first signal sets the flag instead of ending the process. A later one kills all that we have
    /// started, so that nothing is waited for any more: what is finished is still printed, and nothing is left.
    pub fn listen() -> io::Result<Interrupt> {
        /// One flag for all that listen in this process, in whichever order they do.
        static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
        let is_first = FLAG.get().is_none();
        let interrupt = Interrupt(Arc::clone(FLAG.get_or_init(Arc::default)), Arc::default());
        if !is_first {
            return Ok(interrupt);
        }
        for signal in STOPPING {
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))?;
        }
        let mut signals = Signals::new(STOPPING)?;
        process::adopt_orphans();
        std::thread::spawn(move || {
            let mut signals = signals.forever();
            let first = signals.next().map(|_| Instant::now());
            if first.is_some_and(|first| signals.any(|_| first.elapsed() > TOGETHER)) {
                end_now();
            }
        });
        Ok(interrupt)
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) || self.1.get().is_some()
    }

    /// Ends the run as Ctrl-C would, for a reason that is told: the first one stays.
    pub fn stop(&self, why: String) {
        let _ = self.1.set(why);
    }

    /// Why the run was stopped, where it was no signal.
    pub fn why(&self) -> Option<&str> {
        self.1.get().map(String::as_str)
    }
}

/// What an error says that only means that somebody stopped us.
pub const INTERRUPTED: &str = "interrupted";

/// Kills until the main thread has cleaned up and ended, or cleans up in its place.
fn end_now() -> ! {
    let began = Instant::now();
    while began.elapsed() < LAST {
        process::kill_all();
        std::thread::sleep(Duration::from_millis(10));
    }
    scratch::remove_all();
    std::process::exit(EXIT)
}
