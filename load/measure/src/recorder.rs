//! Counters, gauges and latency histograms of one thread in one window.

use crate::error::Result;
use crate::histogram::Latencies;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Rule that merges a gauge of several threads into one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// Largest value.
    Largest,
    /// Sum of the values.
    Sum,
    /// Largest value; absent until a thread has set it, because what was not measured is not 0.
    Measured,
}

/// Names of latencies, counters and gauges, which are recorded by their index in these lists.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Latency names of the engine contract.
    pub latencies: &'static [&'static str],
    /// Counters: each window reports its own increments.
    pub counters: &'static [&'static str],
    /// Gauges: each window reports the value at its end. A gauge keeps its value until it is set again.
    pub gauges: &'static [(&'static str, Merge)],
}

/// Time without an observation after which a thread counts as blocked, so that its oldest operations go on ageing.
const HELD_UP_NANOSECONDS: u64 = 250_000_000;

/// Due times of the oldest operations, in nanoseconds since the epoch; `None` if there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct OldestDue {
    /// Oldest operation that is not completed, whether it is in flight or waits.
    pub outstanding: Option<u64>,
    /// Oldest operation that is not started: how far the client is behind its schedule.
    pub unbegun: Option<u64>,
}

/// Oldest due times as observed by a thread at `at`, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
struct Observation {
    at: u64,
    oldest: OldestDue,
}

impl Observation {
    /// Returns the age at `moment`, in nanoseconds, of the operation that was oldest when observed. A blocked thread is
    /// taken to be blocked by that operation, or by one that became due just after, and to start none meanwhile.
    fn age_at(self, due: Option<u64>, moment: u64) -> u64 {
        let is_held_up = moment.saturating_sub(self.at) > HELD_UP_NANOSECONDS;
        match due.filter(|&due| due <= self.at) {
            Some(due) => (if is_held_up { moment } else { self.at.min(moment) }).saturating_sub(due),
            None if is_held_up => moment - self.at,
            None => 0,
        }
    }
}

/// Ages of the oldest operations at the end of a window, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ages {
    pub outstanding: u64,
    pub unbegun: u64,
}

impl Ages {
    /// Returns the larger of each age.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { outstanding: self.outstanding.max(other.outstanding), unbegun: self.unbegun.max(other.unbegun) }
    }
}

/// Counters, gauges and latency histograms of one window, and the last observation of the oldest operations.
#[derive(Clone, Debug)]
pub struct Tally {
    pub(crate) latencies: Vec<Latencies>,
    pub(crate) counters: Vec<u64>,
    pub(crate) gauges: Vec<f64>,
    looked: Option<Observation>,
}

impl Tally {
    pub(crate) fn new(names: &Names) -> Result<Self> {
        Ok(Self {
            latencies: names.latencies.iter().map(|_| Latencies::new()).collect::<Result<_>>()?,
            counters: vec![0; names.counters.len()],
            gauges: blank_gauges(names),
            looked: None,
        })
    }

    /// Counts a latency of `nanoseconds` `count` times; `place` is its index in [`Names`].
    pub fn latency(&mut self, place: usize, nanoseconds: u64, count: u64) {
        self.latencies[place].record(nanoseconds, count);
    }

    /// Adds to the counter at index `place` of [`Names`].
    pub fn add(&mut self, place: usize, increment: u64) {
        self.counters[place] += increment;
    }

    /// Sets the gauge at index `place` of [`Names`].
    pub fn set(&mut self, place: usize, value: f64) {
        self.gauges[place] = value;
    }

    /// Records the due times of the oldest operations as observed at `now`, in nanoseconds since the epoch. To be
    /// called about every 100 ms, for as long as the thread is not blocked.
    pub fn look(&mut self, now: u64, oldest: OldestDue) {
        self.looked = Some(Observation { at: now, oldest });
    }

    /// Returns the ages of the oldest operations at `moment`; `None` if the thread does not observe them.
    pub(crate) fn ages_at(&self, moment: u64) -> Option<Ages> {
        self.looked.map(|look| Ages {
            outstanding: look.age_at(look.oldest.outstanding, moment),
            unbegun: look.age_at(look.oldest.unbegun, moment),
        })
    }

    pub(crate) fn clear(&mut self) {
        self.latencies.iter_mut().for_each(Latencies::clear);
        self.counters.fill(0);
    }

    pub(crate) fn merge(&mut self, other: &Self, names: &Names) {
        for (mine, theirs) in self.latencies.iter_mut().zip(&other.latencies) {
            if theirs.count() > 0 {
                mine.merge(theirs);
            }
        }
        for (mine, theirs) in self.counters.iter_mut().zip(&other.counters) {
            *mine += theirs;
        }
        for ((mine, theirs), (_, merge)) in self.gauges.iter_mut().zip(&other.gauges).zip(names.gauges) {
            *mine = match merge {
                Merge::Largest => mine.max(*theirs),
                Merge::Sum => *mine + theirs,
                Merge::Measured => f64::max(*mine, *theirs),
            };
        }
    }
}

/// Returns the initial values of gauges: NaN for [`Merge::Measured`], else 0.
pub(crate) fn blank_gauges(names: &Names) -> Vec<f64> {
    names.gauges.iter().map(|(_, merge)| if *merge == Merge::Measured { f64::NAN } else { 0.0 }).collect()
}

/// Tally of one thread in the present window. The thread locks it only while it counts, never while it waits, so that
/// the window can be printed while the thread is blocked; the lock is hardly ever contended.
#[derive(Clone, Debug)]
pub struct Recorder {
    tally: Arc<Mutex<Tally>>,
}

impl Recorder {
    pub(crate) fn new(names: &Names) -> Result<Self> {
        Ok(Self { tally: Arc::new(Mutex::new(Tally::new(names)?)) })
    }

    /// Locks the tally, to count several things at once.
    pub fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Exchanges the tally for `blank`; gauges and the last observation stay.
    pub(crate) fn swap(&self, blank: &mut Tally) {
        let mut tally = self.lock();
        std::mem::swap(&mut *tally, blank);
        tally.gauges.copy_from_slice(&blank.gauges);
        tally.looked = blank.looked;
    }
}
