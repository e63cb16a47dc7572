//! Chance, from a seed.

use cliffwatch_measure::record::mix;

/// The same seed gives the same numbers.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// Any number.
    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    /// From `low` to `high`, both included.
    pub(super) fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }

    /// True so many times in a thousand.
    pub(super) fn per_mille(&mut self, times: u64) -> bool {
        self.next() % 1_000 < times
    }

    /// One of them.
    pub(super) fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[(self.next() % of.len() as u64) as usize]
    }
}
