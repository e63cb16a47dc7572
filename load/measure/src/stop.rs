//! Stop flag, set by a signal or by the program.

use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Stop flag, set once by SIGTERM, SIGINT or [`Stop::request`] and shared by its copies.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    asked: Arc<AtomicBool>,
}

impl Stop {
    /// Creates a flag that SIGTERM and SIGINT to this process set.
    pub fn on_signals() -> std::io::Result<Self> {
        let stop = Self::default();
        for signal in [SIGTERM, SIGINT] {
            signal_hook::flag::register(signal, Arc::clone(&stop.asked))?;
        }
        Ok(stop)
    }

    /// Requests a stop.
    pub fn request(&self) {
        self.asked.store(true, Ordering::Release);
    }

    /// Whether a stop was requested.
    pub fn is_requested(&self) -> bool {
        self.asked.load(Ordering::Acquire)
    }
}
