//! Due times of one producer's records, and the rate limit of overdue ones.

use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::schedule::{Schedule, Step};

use crate::error::Result;

/// Tolerance in nanoseconds: a producer less behind than this is on time.
const SLACK_NANOSECONDS: u64 = 10_000_000;

/// Due times of one producer: every `of`-th of the schedule that all producers share.
pub(crate) struct Pace {
    schedule: Option<Schedule>,
    start: u64,
    number: u64,
    of: u64,
    next: u64,
    catch_up_ratio: f64,
    /// Earliest time for the next overdue record, in nanoseconds since the epoch.
    credit_at: u64,
}

impl Pace {
    /// Pace from `start` (nanoseconds since the epoch), for producer `number` (from 0) of `of`. Without steps it is
    /// unbounded: records are due whenever there is room.
    ///
    /// # Errors
    /// When the steps are not a valid schedule.
    pub(crate) fn new(start: u64, steps: &[Step], number: u32, of: u32, catch_up_ratio: f64) -> Result<Self> {
        let schedule = if steps.is_empty() { None } else { Some(Schedule::new(start, steps)?) };
        Ok(Self { schedule, start, number: number.into(), of: of.into(), next: 0, catch_up_ratio, credit_at: 0 })
    }

    /// Starts a new schedule of `per_second` records at `now`; overdue records of the old one are dropped.
    ///
    /// # Errors
    /// When the rate is not valid.
    pub(crate) fn restart(&mut self, now: u64, per_second: f64) -> Result<()> {
        self.schedule = Some(Schedule::new(now, &[Step { after_seconds: 0.0, per_second }])?);
        (self.next, self.credit_at) = (0, 0);
        Ok(())
    }

    /// True without a schedule: records are sent as fast as there is room, and are never late.
    #[must_use]
    pub(crate) fn is_unbounded(&self) -> bool {
        self.schedule.is_none()
    }

    /// Due time of the next record, in nanoseconds since the epoch.
    #[must_use]
    pub(crate) fn due(&self, now: u64) -> u64 {
        self.schedule.as_ref().map_or(now.max(self.start), |schedule| schedule.due(self.next * self.of + self.number))
    }

    /// Earliest sending time of the next record: its due time, or later while overdue records are rate limited.
    #[must_use]
    pub(crate) fn allowed(&self, now: u64) -> u64 {
        self.due(now).max(self.credit_at)
    }

    /// Advances past the next record, which was due at `due`.
    pub(crate) fn advance(&mut self, now: u64, due: u64) {
        let Some(schedule) = &self.schedule else { return };
        self.next += 1;
        if now.saturating_sub(due) < SLACK_NANOSECONDS {
            self.credit_at = 0;
            return;
        }
        // A thread that did not run for a while does not accumulate credit.
        let interval = schedule.due(self.next * self.of + self.number).saturating_sub(due).min(NANOSECONDS);
        let earliest = now.saturating_sub(SLACK_NANOSECONDS / 2);
        self.credit_at = self.credit_at.max(earliest) + (interval as f64 / self.catch_up_ratio) as u64;
    }

    /// Time between the next record and the one after it, in nanoseconds; 0 without a schedule.
    #[must_use]
    pub(crate) fn interval(&self) -> u64 {
        self.schedule.as_ref().map_or(0, |schedule| {
            let index = self.next * self.of + self.number;
            schedule.due(index + self.of).saturating_sub(schedule.due(index))
        })
    }

    /// Number of records due before `moment` and not made.
    #[must_use]
    pub(crate) fn overdue(&self, moment: u64) -> u64 {
        let Some(schedule) = &self.schedule else { return 0 };
        let released = schedule.released(moment.saturating_sub(1));
        released.saturating_sub(self.number).div_ceil(self.of).saturating_sub(self.next)
    }

    /// Schedule debt: how far the producer is behind its schedule, in nanoseconds.
    #[must_use]
    pub(crate) fn debt(&self, now: u64) -> u64 {
        now.saturating_sub(self.due(now))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_790_000_000 * NANOSECONDS;
    const RATE: [Step; 1] = [Step { after_seconds: 0.0, per_second: 1_000.0 }];

    fn take_until(pace: &mut Pace, now: u64) -> u64 {
        let mut taken = 0;
        while pace.allowed(now) <= now {
            let due = pace.due(now);
            pace.advance(now, due);
            taken += 1;
        }
        taken
    }

    #[test]
    fn several_producers_share_one_schedule() {
        let mut dues: Vec<u64> = Vec::new();
        for number in 0..4 {
            let mut pace = Pace::new(START, &RATE, number, 4, 2.0).unwrap();
            for _ in 0..5 {
                dues.push(pace.due(0));
                pace.advance(0, 0);
            }
        }
        assert_eq!(Pace::new(START, &RATE, 3, 4, 2.0).unwrap().overdue(START + 7_000_000), 1);
        assert_eq!(Pace::new(START, &RATE, 3, 4, 2.0).unwrap().overdue(START + 7_000_001), 2);
        dues.sort_unstable();
        assert_eq!(dues, (0..20).map(|number| START + number * 1_000_000).collect::<Vec<_>>());
    }

    #[test]
    fn after_a_stall_what_is_overdue_comes_at_the_bounded_rate_and_keeps_its_due_time() {
        let mut pace = Pace::new(START, &RATE, 0, 1, 2.0).unwrap();
        let stalled = START + 5 * NANOSECONDS;
        let mut taken = 0;
        for millisecond in 0..1_000 {
            taken += take_until(&mut pace, stalled + millisecond * 1_000_000);
        }
        assert!((2_000..2_020).contains(&taken), "{taken}");
        assert_eq!(pace.due(0), START + taken * 1_000_000);
        // Twice the rate makes up for five seconds in five.
        for millisecond in 1_000..5_200 {
            taken += take_until(&mut pace, stalled + millisecond * 1_000_000);
        }
        assert_eq!(pace.debt(stalled + 5_199 * 1_000_000), 0, "{taken}");
    }
}
