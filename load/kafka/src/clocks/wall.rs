//! The wall clock beside the run's time.

use std::time::{SystemTime, UNIX_EPOCH};

use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::clock::Clock;

/// A clock that is brought round gently moves by less than this from one look to the next.
const STEP_NANOSECONDS: u64 = 50_000_000;
const LOOKS_APART_NANOSECONDS: u64 = NANOSECONDS / 4;
/// A look that took longer says nothing.
const LOOK_MAX_NANOSECONDS: u64 = 2_000_000;

/// What the wall clock is ahead of the run's time, in nanoseconds. None when this thread was held up while it looked.
#[must_use]
pub(crate) fn ahead_of(clock: Clock) -> Option<i64> {
    let before = clock.now();
    let wall = SystemTime::now().duration_since(UNIX_EPOCH).ok()?.as_nanos();
    let after = clock.now();
    let middle = before + (after - before) / 2;
    let ahead = i64::try_from(i128::try_from(wall).ok()? - i128::from(middle)).ok()?;
    (after - before <= LOOK_MAX_NANOSECONDS).then_some(ahead)
}

/// Detects that the wall clock was set, or that the machine slept.
#[derive(Debug, Default)]
pub(crate) struct WallClockSteps {
    looked_at: u64,
    ahead: Option<i64>,
}

impl WallClockSteps {
    /// True when it is time to look again.
    #[must_use]
    pub(crate) fn is_due(&self, now: u64) -> bool {
        now >= self.looked_at + LOOKS_APART_NANOSECONDS
    }

    /// Takes what the wall clock is ahead of the run's time; by how much it was set since the last look, if it was.
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
        // As fast as a clock is slewed by chrony at most: a twelfth.
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
