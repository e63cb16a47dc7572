//! How long a hot thread sleeps between two turns.

/// Time-outs, expiry and gauges are looked after this often.
const UPKEEP_NANOSECONDS: u64 = 20_000_000;
/// A wake-up comes so late as a rule: the last of a long wait is spent awake.
const AWAKE_NANOSECONDS: u64 = 60_000;
/// Shorter waits come so often that being awake at the end of each would cost a processor.
const LONG_WAIT_NANOSECONDS: u64 = 25 * AWAKE_NANOSECONDS;

/// When a hot thread wakes up. Moments are nanoseconds since the epoch.
#[derive(Debug, Default)]
pub(crate) struct WakeUp {
    upkeep_at: u64,
    /// Until then it does not sleep.
    awake_until: u64,
}

impl WakeUp {
    /// When upkeep is due: no hot thread sleeps longer.
    pub(crate) fn upkeep_at(&self) -> u64 {
        self.upkeep_at
    }

    /// True when upkeep is due; the next follows a fixed time later.
    pub(crate) fn takes_upkeep(&mut self, now: u64) -> bool {
        let is_due = now >= self.upkeep_at;
        if is_due {
            self.upkeep_at = now + UPKEEP_NANOSECONDS;
        }
        is_due
    }

    /// How long to sleep, in nanoseconds, when there is something to do at `moment`. Upkeep may be late; for anything else
    /// the thread is awake in time.
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
