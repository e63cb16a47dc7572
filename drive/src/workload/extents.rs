//! Extent allocator of the modelled file system, with a set disorder in the reuse of freed space.

use crate::random::{Purpose, Random};

/// Allocator of equal extents of a volume. Free extents form a queue, at first in the order of their addresses; freed
/// ones join its end. With the probability `disorder`, an allocation first swaps the head of the queue with a random
/// entry: 0 reuses space in the order in which it was freed, 1 at random.
pub(super) struct Extents {
    /// Ring buffer of free extents.
    free: Vec<u32>,
    head: usize,
    count: usize,
    /// Next extent of the same file, by extent.
    next: Vec<u32>,
    random: Random,
    /// Probability `disorder`, in 2^-64.
    disorder_below: u64,
}

impl Extents {
    /// Creates an allocator with `count` free extents.
    #[must_use]
    pub(super) fn new(count: u32, disorder: f64, seed: u64) -> Self {
        Self {
            free: (0..count).collect(),
            head: 0,
            count: count as usize,
            next: vec![0; count as usize],
            random: Random::new(seed, Purpose::Allocation),
            disorder_below: (disorder * 2f64.powi(64)) as u64,
        }
    }

    /// Returns the number of extents in use.
    #[must_use]
    pub(super) fn used(&self) -> usize {
        self.free.len() - self.count
    }

    /// Allocates an extent, `None` if none is free.
    pub(super) fn allocate(&mut self) -> Option<u32> {
        if self.count == 0 {
            return None;
        }
        if self.random.bits() < self.disorder_below {
            let distance = self.random.below(self.count as u32) as usize;
            let other = self.slot(distance);
            self.free.swap(self.head, other);
        }
        let extent = self.free[self.head];
        self.head = self.slot(1);
        self.count -= 1;
        Some(extent)
    }

    /// Frees an extent.
    pub(super) fn free(&mut self, extent: u32) {
        let slot = self.slot(self.count);
        self.free[slot] = extent;
        self.count += 1;
    }

    /// Records that `follower` follows `extent` in its file.
    pub(super) fn link(&mut self, extent: u32, follower: u32) {
        self.next[extent as usize] = follower;
    }

    /// Returns the extent that follows this one in its file.
    #[must_use]
    pub(super) fn following(&self, extent: u32) -> u32 {
        self.next[extent as usize]
    }

    /// Returns the bytes of memory of the tables.
    #[must_use]
    pub(super) fn memory_bytes(&self) -> usize {
        (self.free.capacity() + self.next.capacity()) * size_of::<u32>()
    }

    fn slot(&self, distance: usize) -> usize {
        let slot = self.head + distance;
        if slot >= self.free.len() { slot - self.free.len() } else { slot }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reused(disorder: f64) -> Vec<u32> {
        let mut extents = Extents::new(100, disorder, 1);
        let first: Vec<u32> = (0..100).filter_map(|_| extents.allocate()).collect();
        assert_eq!((extents.allocate(), extents.used()), (None, 100));
        first.iter().for_each(|&extent| extents.free(extent));
        (0..100).filter_map(|_| extents.allocate()).collect()
    }

    #[test]
    fn without_disorder_space_comes_back_in_the_order_in_which_it_was_freed() {
        assert_eq!(reused(0.0), (0..100).collect::<Vec<u32>>());
    }

    #[test]
    fn disorder_changes_the_order_and_loses_nothing() {
        let mut order = reused(1.0);
        let in_place = order.iter().zip(0..).filter(|&(&extent, i)| extent == i).count();
        assert!(in_place < 20, "{in_place} of 100 in place");
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<u32>>());
    }
}
