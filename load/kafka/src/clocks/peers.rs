//! Clock offsets of the producing processes whose records are read.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::estimate::Offset;

/// Clock offsets of producing processes, by the incarnation that their records carry.
#[derive(Debug, Default)]
pub(crate) struct Peers {
    /// Configured offset in nanoseconds; when set, nothing is estimated.
    fixed: Option<i64>,
    known: Mutex<BTreeMap<u32, Option<Offset>>>,
}

impl Peers {
    /// Creates the table. `fixed`: nanoseconds that every producer's clock is ahead of ours, instead of estimates.
    #[must_use]
    pub(crate) fn new(fixed: Option<i64>) -> Self {
        Self { fixed, known: Mutex::default() }
    }

    /// True when clock offsets are estimated rather than configured.
    #[must_use]
    pub(crate) fn are_estimated(&self) -> bool {
        self.fixed.is_none()
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, Option<Offset>>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds that this process's clock is ahead of ours; 0 while unknown. The first call requests an estimate.
    #[must_use]
    pub(crate) fn ahead(&self, incarnation: u32) -> i64 {
        match self.fixed {
            Some(fixed) => fixed,
            None => self.lock().entry(incarnation).or_default().map_or(0, |offset| offset.ahead),
        }
    }

    /// Incarnations whose offset was requested.
    #[must_use]
    pub(crate) fn wanted(&self) -> Vec<u32> {
        self.lock().keys().copied().collect()
    }

    /// Stores the clock offset of a process.
    pub(crate) fn learn(&self, incarnation: u32, offset: Offset) {
        self.lock().insert(incarnation, Some(offset));
    }

    /// Offset with the largest error bound; None while any requested offset is unknown, or none was requested.
    #[must_use]
    pub(crate) fn worst(&self) -> Option<Offset> {
        let known = self.lock();
        let all: Option<Vec<Offset>> = known.values().copied().collect();
        all?.into_iter().max_by_key(|offset| offset.bound)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_asked_for_is_wanted_and_counts_once_it_is_known() {
        let peers = Peers::new(None);
        assert_eq!((peers.ahead(7), peers.wanted(), peers.worst()), (0, vec![7], None));
        let offset = Offset { ahead: -5, bound: 3, is_exact: false };
        peers.learn(7, offset);
        assert_eq!((peers.ahead(7), peers.worst()), (-5, Some(offset)));
        assert_eq!((peers.ahead(8), peers.worst()), (0, None));
        peers.learn(8, Offset::exact(2));
        assert_eq!(peers.worst().map(|found| found.ahead), Some(2));
    }

    #[test]
    fn what_the_settings_say_is_not_estimated() {
        let peers = Peers::new(Some(9));
        assert_eq!((peers.ahead(7), peers.wanted()), (9, Vec::new()));
        assert!(!peers.are_estimated());
    }
}
