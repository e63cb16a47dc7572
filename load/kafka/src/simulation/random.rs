//! Seeded random number generator of the simulation.

use cliffwatch_measure::record::mix;

/// Deterministic random numbers: the same seed gives the same sequence.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// Next random 64-bit number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// Random number from `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True with probability `times` / 1000.
    pub(super) fn per_mille(&mut self, times: u64) -> bool {
        self.next() % 1_000 < times
    }

    /// Random element of `of`; panics when it is empty.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }
}
