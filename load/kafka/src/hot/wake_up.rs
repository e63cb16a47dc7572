//! Sleep times of a hot thread between two turns.

/// Interval of upkeep (timeouts, expiry, gauges): 20 ms.
const UPKEEP_NANOSECONDS: u64 = 20_000_000;
/// Typical lateness of a wake-up: the end of a long wait, this long, is spent polling without sleep.
const AWAKE_NANOSECONDS: u64 = 60_000;
/// Waits up to this long are slept in full: they are so frequent that polling at their ends would use a processor.
const LONG_WAIT_NANOSECONDS: u64 = 25 * AWAKE_NANOSECONDS;

/// Schedule of upkeep and wake-ups of a hot thread. Times are nanoseconds since the epoch.
#[derive(Debug, Default)]
pub(crate) struct WakeUp {
    upkeep_at: u64,
    /// Time until which the thread polls without sleeping.
    awake_until: u64,
}

impl WakeUp {
    /// When upkeep is next due, the latest that a hot thread sleeps to.
    pub(crate) fn upkeep_at(&self) -> u64 {
        self.upkeep_at
    }

    /// True when upkeep is due; the next is then scheduled 20 ms later.
    pub(crate) fn takes_upkeep(&mut self, now: u64) -> bool {
        let is_due = now >= self.upkeep_at;
        if is_due {
            self.upkeep_at = now + UPKEEP_NANOSECONDS;
        }
        is_due
    }

    /// Nanoseconds to sleep until work is due at `moment`. Waits for upkeep are slept in full and may end late; other
    /// waits above 1.5 ms end 60 µs early, and the rest is polled without sleep (0).
    pub(crate) fn until(&mut self, moment: u64, now: u64) -> u64 {
        let wait = moment.saturating_sub(now);
        if moment == self.upkeep_at {
            return wait;
        }
        if wait > LONG_WAIT_NANOSECONDS {
            self.awake_until = moment;
            return wait - AWAKE_NANOSECONDS;
        }
        if self.awake_until == moment { 0 } else { wait }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_long_wait_is_spent_awake_and_upkeep_may_be_late() {
        let mut wake_up = WakeUp::default();
        assert!(wake_up.takes_upkeep(5));
        assert!(!wake_up.takes_upkeep(6));
        let upkeep_at = wake_up.upkeep_at();
        assert_eq!((upkeep_at, wake_up.until(upkeep_at, 5)), (5 + UPKEEP_NANOSECONDS, UPKEEP_NANOSECONDS));
        let moment = 10_000_000;
        assert_eq!(wake_up.until(moment, 0), moment - AWAKE_NANOSECONDS);
        assert_eq!(wake_up.until(moment, moment - AWAKE_NANOSECONDS), 0);
        let other = moment + 1_000;
        assert_eq!(wake_up.until(other, moment), 1_000, "a short wait is slept through");
    }
}
