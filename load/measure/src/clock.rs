//! Monotonic clock in nanoseconds since the epoch: the run's time as passed by its worker, or the wall clock read once.

use crate::NANOSECONDS;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Environment variable in which a worker passes how many nanoseconds its run's time is ahead of the machine's
/// monotonic clock: the wall clock may have been set since the run's time began.
pub const OFFSET_VARIABLE: &str = "CLIFFWATCH_RUN_TIME_OFFSET_NANOSECONDS";

/// Clock in nanoseconds since the epoch that is not affected when the wall clock is set.
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
    /// Creates a clock on the run's time if a worker passes it in [`OFFSET_VARIABLE`], else on the wall clock, read
    /// once. Copies of the clock always agree.
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

    /// Creates a clock for simulations, which shows the value of `moment` in nanoseconds since the epoch; that must not
    /// decrease.
    pub fn set_by(moment: &'static AtomicU64) -> Self {
        Self { source: Source::Set(moment) }
    }

    /// Returns the time in nanoseconds since the epoch.
    pub fn now(&self) -> u64 {
        match self.source {
            Source::Machine { epoch_nanoseconds, anchor } => {
                let passed = anchor.elapsed();
                epoch_nanoseconds + passed.as_secs() * NANOSECONDS + u64::from(passed.subsec_nanos())
            }
            Source::Set(moment) => moment.load(Ordering::Relaxed),
        }
    }

    /// Blocks until `moment`, in nanoseconds since the epoch; returns at once when it has passed.
    pub fn sleep_until(&self, moment: u64) {
        let now = self.now();
        if moment > now {
            std::thread::sleep(Duration::from_nanos(moment - now));
        }
    }
}

/// Reads the machine's monotonic clock, which is the same in every process.
fn monotonic() -> Duration {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live structure that the call fills; this clock is there on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    Duration::new(now.tv_sec as u64, now.tv_nsec as u32)
}

/// Converts seconds to nanoseconds, rounded; 0 for negative numbers and NaN.
pub fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

/// Converts nanoseconds to seconds; precise to a microsecond for a time since the epoch.
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
