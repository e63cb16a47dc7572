//! Time that never goes back: the wall clock once, and from then on the monotonic clock.

use crate::NANOSECONDS;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the epoch on a time line that nobody can set.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    epoch_nanoseconds: u64,
    anchor: Instant,
}

impl Clock {
    /// Reads the wall clock, once. Copies of the result agree with each other for ever.
    pub fn anchored() -> Self {
        let wall = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            epoch_nanoseconds: wall.as_secs() * NANOSECONDS + u64::from(wall.subsec_nanos()),
            anchor: Instant::now(),
        }
    }

    /// Nanoseconds since the epoch.
    pub fn now(&self) -> u64 {
        let passed = self.anchor.elapsed();
        self.epoch_nanoseconds + passed.as_secs() * NANOSECONDS + u64::from(passed.subsec_nanos())
    }

    /// Waits until the moment, in nanoseconds since the epoch; returns at once when it has passed.
    pub fn sleep_until(&self, moment: u64) {
        let now = self.now();
        if moment > now {
            std::thread::sleep(Duration::from_nanos(moment - now));
        }
    }
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
    fn seconds_since_the_epoch_survive_the_way_there_and_back() {
        assert_eq!(nanoseconds(1_790_000_010.0), 1_790_000_010 * NANOSECONDS);
        assert_eq!(seconds(1_790_000_010 * NANOSECONDS), 1_790_000_010.0);
        assert_eq!(nanoseconds(-1.0), 0);
    }
}
