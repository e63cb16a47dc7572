//! Clock offset between two processes: bounds from clock notes that a fetch returned or did not return yet.
//!
//! With d the writer's time less the reader's: a note in a response was begun before the response arrived, so d is at
//! least `begun - answered`. A note that is not in it was not acknowledged when the fetch was sent, so d is at most
//! `acknowledged - asked`. No assumption is made about latencies.

use super::note::{AcknowledgedNote, ClockNote, READING_ERROR_NANOSECONDS};

/// Maximum relative drift of two clocks: 100 ppm, twice the tolerance of a common quartz.
const DRIFT_RATIO: f64 = 100e-6;
/// Fetches remembered to narrow the estimate with later notes: the last one for each newest note.
const OPEN_MAX: usize = 16;

/// Clock offset between two processes with its error bound, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Offset {
    /// How far the writer's clock is ahead of the reader's; negative when behind.
    pub(crate) ahead: i64,
    /// Maximum error of `ahead`.
    pub(crate) bound: u64,
    /// Both processes use the same monotonic clock, so that the offset is constant.
    pub(crate) is_exact: bool,
}

/// Send and response time of a fetch of the newest note.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AnsweredFetch {
    /// When the fetch was sent, in nanoseconds of the reader's time.
    pub(crate) asked: u64,
    /// When the response arrived, in nanoseconds of the reader's time.
    pub(crate) answered: u64,
}

/// Estimate of one writer's clock offset: bounds, and the fetches that may still narrow them.
#[derive(Debug, Default)]
pub(crate) struct Estimate {
    lowest: Option<i64>,
    highest: Option<i64>,
    /// When the bounds were last widened for drift.
    at: u64,
    /// Newest note that fetches returned, and when the last such fetch was sent.
    open: Vec<(u64, u64)>,
    /// How often the bounds contradicted each other and were reset, as after a machine's suspend.
    pub(crate) contradictions: u64,
}

fn difference(after: u64, before: u64) -> i64 {
    after.cast_signed().wrapping_sub(before.cast_signed())
}

impl Estimate {
    /// Narrows the bounds with a fetched note.
    pub(crate) fn take(&mut self, fetch: AnsweredFetch, note: &ClockNote) {
        self.widen(fetch.answered);
        self.raise(difference(note.begun, fetch.answered));
        let before = note.before.iter();
        for &AcknowledgedNote { number, acknowledged, .. } in before {
            // The last fetch that did not return this note: it returned an older one.
            let unseen = self.open.iter().filter(|(seen, _)| *seen < number).map(|(_, sent)| *sent).max();
            if let Some(sent) = unseen {
                let aged = (fetch.answered.saturating_sub(sent) as f64 * DRIFT_RATIO) as i64;
                self.lower(difference(acknowledged, sent) + aged);
            }
        }
        match self.open.iter_mut().find(|(number, _)| *number == note.number) {
            Some((_, sent)) => *sent = fetch.asked,
            None => self.open.push((note.number, fetch.asked)),
        }
        if self.open.len() > OPEN_MAX {
            self.open.remove(0);
        }
    }

    fn widen(&mut self, now: u64) {
        let by = (now.saturating_sub(self.at) as f64 * DRIFT_RATIO) as i64;
        self.at = now;
        self.lowest = self.lowest.map(|lowest| lowest - by);
        self.highest = self.highest.map(|highest| highest + by);
    }

    fn raise(&mut self, lowest: i64) {
        if self.highest.is_some_and(|highest| highest < lowest) {
            (self.highest, self.lowest) = (None, None);
            self.open.clear();
            self.contradictions += 1;
        }
        self.lowest = Some(self.lowest.map_or(lowest, |before| before.max(lowest)));
    }

    fn lower(&mut self, highest: i64) {
        if self.lowest.is_some_and(|lowest| highest < lowest) {
            (self.highest, self.lowest) = (None, None);
            self.open.clear();
            self.contradictions += 1;
        }
        self.highest = Some(self.highest.map_or(highest, |before| before.min(highest)));
    }

    /// Current estimate: the wall clocks' difference `by_walls` clamped to the bounds; None until both are known.
    #[must_use]
    pub(crate) fn offset(&self, by_walls: i64) -> Option<Offset> {
        let (lowest, highest) = (self.lowest?, self.highest?);
        let ahead = by_walls.clamp(lowest, highest);
        let bound = highest.abs_diff(ahead).max(ahead.abs_diff(lowest));
        Some(Offset { ahead, bound, is_exact: false })
    }

    /// Midpoint of the bounds, which the next fetch aims at to halve them; None until both are known.
    #[must_use]
    pub(crate) fn middle(&self) -> Option<i64> {
        let (lowest, highest) = (self.lowest?, self.highest?);
        Some(lowest + (highest - lowest) / 2)
    }
}

impl Offset {
    /// Exact offset between two processes on one machine; the error bound is that of reading the clocks.
    #[must_use]
    pub(crate) fn exact(ahead: i64) -> Self {
        Self { ahead, bound: READING_ERROR_NANOSECONDS.get(), is_exact: true }
    }
}

#[cfg(test)]
mod tests {
    use super::super::note::{Machine, NoteSequence};
    use super::*;
    use cliffwatch_measure::NANOSECONDS;
    use cliffwatch_measure::clock::Clock;

    const START: u64 = 1_790_000_000 * NANOSECONDS;

    /// Simulated writer whose clock is `ahead` and whose notes take `write` to be acknowledged, and a reader whose
    /// fetches take `read`; half of each is the way to the broker. Nanoseconds.
    struct SimulatedClocks {
        ahead: i64,
        write: u64,
        read: u64,
    }

    impl SimulatedClocks {
        fn note(&self, machine: &Machine, number: u64) -> ClockNote {
            let left = |number: u64| {
                let begun = (START + number * NANOSECONDS).saturating_add_signed(self.ahead);
                AcknowledgedNote { number, begun, acknowledged: begun + self.write }
            };
            let before = (number.saturating_sub(8).max(1)..number).map(left).collect();
            ClockNote { number, begun: left(number).begun, before, wall_ahead: 0, machine: machine.clone() }
        }

        /// Fetches once a second, at the time that narrows the estimate most.
        fn estimate(&self, seconds: u64) -> Estimate {
            let machine = Machine::here(Clock::anchored()).unwrap();
            let mut estimate = Estimate::default();
            for second in 2..2 + seconds {
                let asked = match estimate.middle() {
                    Some(middle) => {
                        let there = START + second * NANOSECONDS + self.write / 2;
                        there.saturating_add_signed(self.ahead - middle) - self.read / 2
                    }
                    None => START + second * NANOSECONDS + second * 137_000_000 % NANOSECONDS,
                };
                let served = asked + self.read / 2;
                let newest = (served - START - self.write / 2) / NANOSECONDS;
                let note = self.note(&machine, newest);
                estimate.take(AnsweredFetch { asked, answered: asked + self.read }, &note);
            }
            estimate
        }
    }

    #[test]
    fn bounds_hold_the_difference_and_become_as_narrow_as_a_note_and_a_question_take() {
        for (ahead, write, read) in
            [(0, 4_000_000, 1_000_000), (-3_700_000_000, 8_000_000, 600_000), (950_000_000_000, 1_000_000, 20_000_000)]
        {
            let world = SimulatedClocks { ahead, write, read };
            let early = world.estimate(4).offset(0).unwrap();
            let late = world.estimate(40).offset(0).unwrap();
            for found in [early, late] {
                assert!(found.ahead.abs_diff(ahead) <= found.bound, "{found:?} does not hold {ahead}");
            }
            assert!(late.bound <= write + read + 1_000_000, "{late:?} after a note's {write} and a question's {read}");
            assert!(early.bound < 2 * NANOSECONDS);
        }
    }

    #[test]
    fn what_the_wall_clocks_say_is_taken_where_it_can_be_true() {
        let estimate = SimulatedClocks { ahead: 1_000_000, write: 4_000_000, read: 1_000_000 }.estimate(40);
        assert_eq!(estimate.offset(1_200_000).unwrap().ahead, 1_200_000);
        let refuted = estimate.offset(-NANOSECONDS.cast_signed()).unwrap();
        assert!(refuted.ahead > -10_000_000);
        assert!(refuted.ahead.abs_diff(1_000_000) <= refuted.bound);
    }

    #[test]
    fn a_writer_whose_machine_slept_is_estimated_anew() {
        let machine = Machine::here(Clock::anchored()).unwrap();
        let mut estimate = SimulatedClocks { ahead: 0, write: 4_000_000, read: 1_000_000 }.estimate(20);
        let slept = SimulatedClocks { ahead: -5_000_000_000, write: 4_000_000, read: 1_000_000 };
        for second in 40..45 {
            let asked = START + second * NANOSECONDS + 500_000_000;
            estimate.take(AnsweredFetch { asked, answered: asked + 1_000_000 }, &slept.note(&machine, second));
        }
        let found = estimate.offset(0).unwrap();
        assert_eq!(estimate.contradictions, 1);
        assert!(found.ahead.abs_diff(-5_000_000_000) <= found.bound, "{found:?}");
    }

    #[test]
    fn on_one_machine_the_difference_is_that_of_what_their_times_hang_on() {
        let ours = Clock::anchored();
        let here = Machine::here(ours).unwrap();
        let theirs = Machine::here(Clock::anchored()).unwrap();
        let found = Offset::exact(theirs.ahead_of(&here).unwrap());
        // Two clocks of one process, anchored one after the other.
        assert!(found.ahead.abs_diff(0) < 1_000_000);
        let note = NoteSequence::new(theirs).next(ours);
        assert_eq!(note.number, 1);
    }
}
