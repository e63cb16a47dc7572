//! Wall clock relative to the run's time, and detection of its steps.

use std::time::{SystemTime, UNIX_EPOCH};

use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::clock::Clock;

/// Smallest change between two readings that counts as a step; a slewed clock changes by less.
const STEP_NANOSECONDS: u64 = 50_000_000;
const LOOKS_APART_NANOSECONDS: u64 = NANOSECONDS / 4;
/// A reading that took longer than this is discarded.
const LOOK_MAX_NANOSECONDS: u64 = 2_000_000;

/// Nanoseconds that the wall clock is ahead of the run's time; None when the reading took more than 2 ms.
#[must_use]
pub(crate) fn ahead_of(clock: Clock) -> Option<i64> {
    let before = clock.now();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos();
    let after = clock.now();
    let middle = before + (after - before) / 2;
    let ahead = i64::try_from(i128::try_from(wall).ok()? - i128::from(middle)).ok()?;
    (after - before <= LOOK_MAX_NANOSECONDS).then_some(ahead)
}

/// Detector of wall clock steps: clock set, or machine suspended.
#[derive(Debug, Default)]
pub(crate) struct WallClockSteps {
    looked_at: u64,
    ahead: Option<i64>,
}

impl WallClockSteps {
    /// True when the next reading is due, 250 ms after the last.
    #[must_use]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.looked_at + LOOKS_APART_NANOSECONDS
    }

    /// Takes a reading (nanoseconds that the wall clock is ahead of the run's time) and returns the step since the last
    /// one; None below 50 ms, and for the first.
    pub(crate) fn look(&mut self, now: u64, ahead: i64) -> Option<i64> {
        self.looked_at = now;
        let moved = ahead - self.ahead.replace(ahead)?;
        (moved.unsigned_abs() >= STEP_NANOSECONDS).then_some(moved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_that_is_set_is_reported_once_and_one_that_is_slewed_is_not() {
        let mut steps = WallClockSteps::default();
        assert!(steps.is_due(NANOSECONDS));
        assert_eq!(steps.look(NANOSECONDS, 3_000_000_000), None, "whatever it begins with");
        assert!(!steps.is_due(NANOSECONDS + 1));
        // The fastest slew of chrony: one twelfth.
        assert_eq!(steps.look(0, 3_020_000_000), None);
        assert_eq!(steps.look(0, 5_020_000_000), Some(2_000_000_000));
        assert_eq!(steps.look(0, 5_020_000_000), None);
        assert_eq!(steps.look(0, -1_000_000_000), Some(-6_020_000_000));
    }

    #[test]
    fn here_the_wall_clock_is_where_it_was_read() {
        let clock = Clock::anchored();
        assert!(ahead_of(clock).unwrap().unsigned_abs() < STEP_NANOSECONDS);
    }
}
