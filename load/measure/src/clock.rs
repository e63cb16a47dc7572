//! Time that never goes back: the run's as its worker has it, or the wall clock once, and from then on the monotonic clock.

use crate::NANOSECONDS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// The variable by which a worker says how many nanoseconds its run's time is ahead of the machine's monotonic clock: the
/// wall clock may have been set since that time began.
pub const OFFSET_VARIABLE: &str = "CLIFFWATCH_RUN_TIME_OFFSET_NANOSECONDS";

/// Nanoseconds since the epoch on a time line that cannot be set.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Machine { epoch_nanoseconds: u64, anchor: Instant },
    Set(&'static AtomicU64),
}

impl Clock {
    /// The run's time where a worker says what it is, else the wall clock's, read once. Copies of the result agree with
    /// each other for ever.
    pub fn anchored() -> Self {
        let offset = std::env::var(OFFSET_VARIABLE).ok().and_then(|text| text.parse().ok());
        Self::at(offset)
    }

    fn at(offset_nanoseconds: Option<u64>) -> Self {
        let (base, ahead) = match offset_nanoseconds {
            Some(ahead) => (monotonic(), ahead),
            None => (SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(), 0),
        };
        let epoch_nanoseconds = ahead + base.as_secs() * NANOSECONDS + u64::from(base.subsec_nanos());
        Self { source: Source::Machine { epoch_nanoseconds, anchor: Instant::now() } }
    }

    /// One that shows the nanoseconds since the epoch that a simulation sets `moment` to, never to less than before.
    pub fn set_by(moment: &'static AtomicU64) -> Self {
        Self { source: Source::Set(moment) }
    }

    /// Nanoseconds since the epoch.
    pub fn now(&self) -> u64 {
        match self.source {
            Source::Machine { epoch_nanoseconds, anchor } => {
                let passed = anchor.elapsed();
                epoch_nanoseconds + passed.as_secs() * NANOSECONDS + u64::from(passed.subsec_nanos())
            }
            Source::Set(moment) => moment.load(Ordering::Relaxed),
        }
    }

    /// Waits until the moment, in nanoseconds since the epoch; returns at once when it has passed.
    pub fn sleep_until(&self, moment: u64) {
        let now = self.now();
        if moment > now {
            std::thread::sleep(Duration::from_nanos(moment - now));
        }
    }
}

/// What the machine's monotonic clock shows to every process.
fn monotonic() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live structure that the call fills; this clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Nanoseconds in so many seconds, to the nearest; 0 for what is negative or not a number.
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Seconds in so many nanoseconds, to a microsecond where they are a time since the epoch.
pub fn seconds(nanoseconds: u64) -> f64 {
    nanoseconds as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_the_walls_and_goes_forward() {
        let clock = Clock::anchored();
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
        let first = clock.now();
        assert!(first.abs_diff(wall) < NANOSECONDS);
        clock.sleep_until(first + 2_000_000);
        assert!(clock.now() >= first + 2_000_000);
    }

    #[test]
    fn time_is_the_runs_where_a_worker_says_what_that_is() {
        let before = monotonic().as_nanos() as u64;
        let now = Clock::at(Some(5_000 * NANOSECONDS)).now() - 5_000 * NANOSECONDS;
        assert!((before..before + NANOSECONDS).contains(&now), "{before} {now}");
    }

    #[test]
    fn seconds_since_the_epoch_survive_the_way_there_and_back() {
        assert_eq!(nanoseconds(1_790_000_010.0), 1_790_000_010 * NANOSECONDS);
        assert_eq!(seconds(1_790_000_010 * NANOSECONDS), 1_790_000_010.0);
        assert_eq!(nanoseconds(-1.0), 0);
    }
}
