//! Schedule of operations: due times follow from the rate alone, whatever the system under test does.

use crate::NANOSECONDS;
use crate::clock::nanoseconds;
use crate::error::{Error, Result};

/// Step of the rate: from `after_seconds` after the start on, `per_second` operations are due each second; 0 is a
/// pause.
#[derive(Clone, Copy, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Seconds after the start.
    pub after_seconds: f64,
    /// Rate in operations per second.
    pub per_second: f64,
}

/// Due times of operations numbered from 0. Steps of the rate follow each other without a gap; the last has no end.
#[derive(Clone, Debug)]
pub struct Schedule {
    periods: Vec<RatePeriod>,
    /// Phase of each producer in their common round, in operations, in ascending order; empty for one producer.
    turns: Vec<f32>,
}

#[derive(Clone, Copy, Debug)]
struct RatePeriod {
    start: u64,
    first: u64,
    /// Nanoseconds between operations; infinite in a pause.
    interval: f64,
}

impl Schedule {
    /// Creates a schedule from `start` (nanoseconds since the epoch) on. The first step has to begin at 0 seconds.
    pub fn new(start: u64, steps: &[Step]) -> Result<Self> {
        let fault = |advice: &str| Error::Setting { field: "rate", advice: advice.to_owned() };
        if steps.first().is_none_or(|step| step.after_seconds != 0.0) {
            return Err(fault("the first step has to start after 0 seconds"));
        }
        if steps
            .iter()
            .any(|step| !step.per_second.is_finite() || !step.after_seconds.is_finite() || step.per_second < 0.0)
        {
            return Err(fault("a rate is a number of operations a second, 0 or more"));
        }
        if steps.windows(2).any(|pair| pair[1].after_seconds <= pair[0].after_seconds) {
            return Err(fault("each step has to start after the one before"));
        }
        let mut periods: Vec<RatePeriod> = Vec::with_capacity(steps.len());
        for step in steps {
            let begins = start + nanoseconds(step.after_seconds);
            let first = periods.last().map_or(0, |before| before.released_before(begins));
            periods.push(RatePeriod { start: begins, first, interval: NANOSECONDS as f64 / step.per_second });
        }
        Ok(Self { periods, turns: Vec::new() })
    }

    /// Shares the rate among `producers` with random phases, so that due times are as irregular as those of independent
    /// clients. The same `seed` gives the same phases.
    #[must_use]
    pub fn with_producers(mut self, producers: u32, seed: u64) -> Self {
        let random = |number: u64| crate::record::mix(seed ^ number) as f64 / 2_f64.powi(64);
        let turn = |number: u32| (random(u64::from(number)) * f64::from(producers)) as f32;
        self.turns = if producers > 1 { (0..producers).map(turn).collect() } else { Vec::new() };
        self.turns.sort_by(f32::total_cmp);
        self
    }

    /// Returns when operation `index` is due, in nanoseconds since the epoch; `u64::MAX` if the rate is 0 for ever.
    pub fn due(&self, index: u64) -> u64 {
        let after = self.periods.partition_point(|period| period.first <= index);
        // Of several periods that begin with the same operation, the last is the one that is not a pause.
        let period = &self.periods[after.max(1) - 1];
        let even = period.due(index);
        if self.turns.is_empty() || even == u64::MAX {
            return even;
        }
        let place = (index - period.first) % self.turns.len() as u64;
        let shift = (f64::from(self.turns[place as usize]) - place as f64) * period.interval;
        let end = self.periods.get(after).map_or(u64::MAX, |next| next.start - 1);
        even.saturating_add_signed(shift as i64).clamp(period.start, end)
    }

    /// Returns the rate at `now` in operations per second; 0 before the first step.
    pub fn per_second(&self, now: u64) -> f64 {
        let after = self.periods.partition_point(|period| period.start <= now);
        after.checked_sub(1).map_or(0.0, |at| NANOSECONDS as f64 / self.periods[at].interval)
    }

    /// Returns the number of operations due at `now` or before, which is the index of the next one.
    pub fn released(&self, now: u64) -> u64 {
        let after = self.periods.partition_point(|period| period.start <= now);
        if after == 0 {
            return 0;
        }
        let period = &self.periods[after - 1];
        let last = self.periods.get(after).map_or(u64::MAX, |next| next.first);
        let even = period.released_before(now + 1).min(last);
        if self.turns.is_empty() || !period.interval.is_finite() {
            return even;
        }
        // With several producers, a due time differs by at most one round from that with one producer.
        let round = self.turns.len() as u64;
        let (mut low, mut high) = (even.saturating_sub(round).max(period.first), even.saturating_add(round).min(last));
        while low < high {
            let middle = low + (high - low) / 2;
            if self.due(middle) <= now { low = middle + 1 } else { high = middle }
        }
        low
    }
}

impl RatePeriod {
    fn due(&self, index: u64) -> u64 {
        let offset = (index - self.first) as f64 * self.interval;
        // NaN: 0 times infinity, for the first operation of a pause without end.
        if offset.is_finite() { self.start + offset as u64 } else { u64::MAX }
    }

    /// Returns the index of the first operation that is due at `moment` or later.
    fn released_before(&self, moment: u64) -> u64 {
        if moment <= self.start || !self.interval.is_finite() {
            return self.first;
        }
        let mut index = self.first + ((moment - self.start) as f64 / self.interval) as u64;
        // Division and multiplication round differently: correct the index by `due`.
        while self.due(index) < moment {
            index += 1;
        }
        while index > self.first && self.due(index - 1) >= moment {
            index -= 1;
        }
        index
    }
}

/// Next step of a client that follows a schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextStep {
    /// Start operation `index`, which is due.
    Due {
        /// Number of the operation.
        index: u64,
        /// Due time in nanoseconds since the epoch, now or before.
        due: u64,
    },
    /// Wait until this time, in nanoseconds since the epoch, at which the next operation is due.
    Wait(u64),
}

/// Takes operations from a schedule in order. Operations overdue by more than the burst limit are shed: counted, but
/// never executed.
#[derive(Clone, Debug)]
pub struct Pacer {
    schedule: Schedule,
    next: u64,
    burst_nanoseconds: u64,
    shed: u64,
}

impl Pacer {
    /// Creates a pacer that, after a stall, makes up for at most `burst_nanoseconds` of the schedule.
    pub fn new(schedule: Schedule, burst_nanoseconds: u64) -> Self {
        Self { schedule, next: 0, burst_nanoseconds, shed: 0 }
    }

    /// Returns the next operation if it is due at `now`, else the time to wait for; sheds overdue operations.
    pub fn turn(&mut self, now: u64) -> NextStep {
        let mut due = self.schedule.due(self.next);
        if due.saturating_add(self.burst_nanoseconds) < now {
            let kept = self.schedule.released(now - self.burst_nanoseconds - 1);
            self.shed += kept - self.next;
            self.next = kept;
            due = self.schedule.due(self.next);
        }
        if due > now {
            return NextStep::Wait(due);
        }
        self.next += 1;
        NextStep::Due { index: self.next - 1, due }
    }

    /// Returns the schedule debt in nanoseconds: the age of the oldest operation that is not started.
    pub fn debt_nanoseconds(&self, now: u64) -> u64 {
        now.saturating_sub(self.schedule.due(self.next))
    }

    /// Returns the number of operations shed since the start.
    pub fn shed(&self) -> u64 {
        self.shed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_790_000_000 * NANOSECONDS;

    fn steps(pairs: &[(f64, f64)]) -> Vec<Step> {
        pairs.iter().map(|&(after_seconds, per_second)| Step { after_seconds, per_second }).collect()
    }

    #[test]
    fn due_times_do_not_drift_over_thirty_six_hours() {
        let schedule = Schedule::new(START, &steps(&[(0.0, 976_562.5)])).unwrap();
        let thirty_six_hours = 36 * 3600;
        let index = (976_562.5 * thirty_six_hours as f64) as u64;
        assert!(schedule.due(index).abs_diff(START + thirty_six_hours * NANOSECONDS) < 1_000);
    }

    #[test]
    fn the_rate_is_that_of_the_step_that_has_begun() {
        let schedule = Schedule::new(START, &steps(&[(0.0, 800.0), (10.0, 0.0), (20.0, 200.0)])).unwrap();
        for (seconds, rate) in [(0, 800.0), (9, 800.0), (10, 0.0), (25, 200.0)] {
            let found = schedule.per_second(START + seconds * NANOSECONDS);
            assert!((found - rate).abs() < 1e-9, "{found} after {seconds} s");
        }
        assert!(schedule.per_second(START - 1).abs() < f64::EPSILON);
    }

    #[test]
    fn released_and_due_agree_at_every_operation() {
        for rate in [3.0, 7.7, 1_000.0, 333_333.3] {
            let schedule =
                Schedule::new(START, &steps(&[(0.0, rate), (1.5, rate / 3.0), (2.0, 0.0), (4.0, rate)])).unwrap();
            for index in 0..2_000 {
                let due = schedule.due(index);
                assert!(schedule.released(due) > index, "rate {rate}, operation {index}");
                assert!(schedule.released(due - 1) <= index, "rate {rate}, operation {index}");
            }
        }
    }

    #[test]
    fn steps_change_the_rate_when_they_begin() {
        let schedule = Schedule::new(START, &steps(&[(0.0, 10.0), (1.0, 0.0), (3.0, 100.0)])).unwrap();
        assert_eq!(schedule.released(START - 1), 0);
        assert_eq!(schedule.released(START + NANOSECONDS), 10);
        assert_eq!(schedule.released(START + 3 * NANOSECONDS - 1), 10);
        assert_eq!(schedule.released(START + 4 * NANOSECONDS - 1), 110);
        assert_eq!(schedule.due(10), START + 3 * NANOSECONDS);
    }

    #[test]
    fn a_pause_at_the_end_lasts_for_ever() {
        let schedule = Schedule::new(START, &steps(&[(0.0, 10.0), (1.0, 0.0)])).unwrap();
        assert_eq!(schedule.due(10), u64::MAX);
        assert_eq!(schedule.released(START + 1_000 * NANOSECONDS), 10);
    }

    #[test]
    fn several_producers_keep_the_rate_and_each_its_own_rhythm() {
        let rate = [(0.0, 1_000.0), (2.0, 0.0), (3.0, 500.0)];
        let schedule = Schedule::new(START, &steps(&rate)).unwrap().with_producers(7, 1);
        let dues: Vec<u64> = (0..2_500).map(|index| schedule.due(index)).collect();
        assert!(dues.is_sorted());
        for (index, &due) in dues.iter().enumerate() {
            assert!(schedule.released(due) > index as u64, "operation {index}");
            assert!(due == START || schedule.released(due - 1) <= index as u64, "operation {index}");
        }
        assert_eq!(schedule.released(START + 2 * NANOSECONDS), 2_000);
        assert!(schedule.released(START + 4 * NANOSECONDS).abs_diff(2_500) <= 7);
        let gaps: Vec<u64> = dues[..100].windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!(gaps.iter().max() > gaps.iter().min().map(|shortest| shortest + 500_000).as_ref());
        assert!(dues[70].abs_diff(dues[77]).abs_diff(7_000_000) < 10, "a producer's next turn comes after one round");
    }

    #[test]
    fn a_rate_that_cannot_be_is_refused() {
        for wrong in [&[][..], &[(1.0, 5.0)], &[(0.0, -1.0)], &[(0.0, f64::NAN)], &[(0.0, 1.0), (0.0, 2.0)]] {
            assert!(Schedule::new(START, &steps(wrong)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn after_a_stall_what_is_within_the_burst_limit_is_made_up_for_and_the_rest_is_shed() {
        let schedule = Schedule::new(START, &steps(&[(0.0, 1_000.0)])).unwrap();
        let mut pacer = Pacer::new(schedule, NANOSECONDS / 2);
        assert_eq!(pacer.turn(START), NextStep::Due { index: 0, due: START });
        assert_eq!(pacer.turn(START), NextStep::Wait(START + 1_000_000));
        let later = START + 2 * NANOSECONDS;
        assert_eq!(pacer.debt_nanoseconds(later), 1_999_000_000);
        assert_eq!(pacer.turn(later), NextStep::Due { index: 1_500, due: START + NANOSECONDS * 3 / 2 });
        assert_eq!(pacer.shed(), 1_499);
        let made_up = std::iter::from_fn(|| match pacer.turn(later) {
            NextStep::Due { .. } => Some(()),
            NextStep::Wait(_) => None,
        });
        assert_eq!(made_up.count(), 500);
    }
}
