//! Ctrl-C and its like, as a flag that is asked between steps.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

/// Set when somebody wants us to stop: what is finished is kept and printed.
#[derive(Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>, Arc<OnceLock<String>>);

impl Interrupt {
    /// From here on the signals set the flag instead of ending the process. A second Ctrl-C ends it at once.
    pub fn listen() -> io::Result<Interrupt> {
        let interrupt = Interrupt::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // The order matters: the second signal finds the flag set, the first one sets it.
            signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&interrupt.0))?;
            signal_hook::flag::register(signal, Arc::clone(&interrupt.0))?;
        }
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
