//! Metadata refresh of a hot thread: when the next request is due.

use cliffwatch_measure::NANOSECONDS;

/// Interval of metadata requests while nothing is wrong: 300 s.
const AGE_NANOSECONDS: u64 = 300 * NANOSECONDS;

/// State of a thread's metadata requests. Times are nanoseconds since the epoch.
#[derive(Debug, Default)]
pub(crate) struct Refresh {
    is_under_way: bool,
    is_wanted: bool,
    next_at: u64,
    failures: u32,
}

impl Refresh {
    /// Requests a refresh as soon as possible, because leaders may have changed.
    pub(crate) fn want(&mut self) {
        self.is_wanted = true;
    }

    /// True when the caller has to request metadata now; the request is then recorded as in flight.
    pub(crate) fn starts(&mut self, now: u64) -> bool {
        let is_held_back = self.failures > 0 && self.next_at > now;
        let is_due = if self.is_wanted { !is_held_back } else { self.next_at <= now };
        let starts = is_due && !self.is_under_way;
        if starts {
            (self.is_under_way, self.is_wanted) = (true, false);
            self.next_at = now + AGE_NANOSECONDS;
        }
        starts
    }

    /// Records that metadata arrived. If a partition has no leader, the caller asks for another refresh with `want`.
    pub(crate) fn succeeded(&mut self, now: u64) {
        (self.is_under_way, self.is_wanted, self.failures) = (false, false, 0);
        self.next_at = now + AGE_NANOSECONDS;
    }

    /// Records that the metadata request failed; the next attempt follows after `wait(failures)` nanoseconds.
    pub(crate) fn failed(&mut self, now: u64, wait: impl FnOnce(u32) -> u64) {
        (self.is_under_way, self.is_wanted) = (false, true);
        self.failures += 1;
        self.next_at = now + wait(self.failures);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_request_at_a_time_held_back_after_failures_and_repeated_while_leaders_are_unknown() {
        let mut refresh = Refresh::default();
        assert!(refresh.starts(1), "nothing is known at first");
        refresh.want();
        assert!(!refresh.starts(2), "one is under way");
        refresh.failed(10, |_| 100);
        assert!(!refresh.starts(109));
        assert!(refresh.starts(110));
        refresh.succeeded(120);
        refresh.want();
        assert!(refresh.starts(121), "a partition has no leader");
        refresh.succeeded(130);
        assert!(!refresh.starts(130 + AGE_NANOSECONDS - 1));
        assert!(refresh.starts(130 + AGE_NANOSECONDS));
    }
}
