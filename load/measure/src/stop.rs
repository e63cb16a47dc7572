//! Being asked to stop, by a signal or from within.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once, by SIGTERM, SIGINT or [`Stop::request`]; copies see the same.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// One that the process's own SIGTERM and SIGINT set.
    pub fn on_signals() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop.asked))?;
        }
        Ok(stop)
    }

    /// Asks to stop.
    pub fn request(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// True once a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}
