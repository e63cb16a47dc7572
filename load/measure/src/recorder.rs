//! What a thread counts between two lines of the window grid.

use crate::error::Result;
use crate::histogram::Latencies;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// How the gauges of several threads become one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Merge {
    /// The largest holds.
    Largest,
    /// They are added.
    Sum,
    /// The largest holds; absent until a thread has set it, because what was not measured is not 0.
    Measured,
}

/// The names of what is counted. Everything is counted by its place in these lists.
#[derive(Clone, Copy, Debug)]
pub struct Names {
    /// Latency names of the engine contract.
    pub latencies: &'static [&'static str],
    /// Counters: each window reports its own increments.
    pub counters: &'static [&'static str],
    /// Gauges: each window reports what held at its end. A gauge keeps its value until it is set again.
    pub gauges: &'static [(&'static str, Merge)],
}

/// A thread that has not looked for so long is held up by something, and what it saw last has grown older since.
const HELD_UP_NANOSECONDS: u64 = 250_000_000;

/// When the oldest operations were due, in nanoseconds since the epoch; None where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct OldestDue {
    /// The oldest that is not completed, whether it is under way or waits.
    pub outstanding: Option<u64>,
    /// The oldest that is not begun: how far the client is behind its own schedule.
    pub unbegun: Option<u64>,
}

/// What a thread saw when it last looked, in nanoseconds since the epoch.
#[derive(Clone, Copy, Debug)]
struct Observation {
    at: u64,
    oldest: OldestDue,
}

impl Observation {
    /// How old the operation was at `moment` that was the oldest at the look, in nanoseconds. A thread that is held up
    /// was so by an operation that it saw, or by one that became due just after, and begins none meanwhile.
    fn age_at(self, due: Option<u64>, moment: u64) -> u64 {
        let is_held_up = moment.saturating_sub(self.at) > HELD_UP_NANOSECONDS;
        match due.filter(|&due| due <= self.at) {
            Some(due) => (if is_held_up { moment } else { self.at.min(moment) }).saturating_sub(due),
            None if is_held_up => moment - self.at,
            None => 0,
        }
    }
}

/// How old the oldest operations are when a window ends, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ages {
    pub outstanding: u64,
    pub unbegun: u64,
}

impl Ages {
    /// The older of each.
    pub(crate) fn max(self, other: Self) -> Self {
        Self { outstanding: self.outstanding.max(other.outstanding), unbegun: self.unbegun.max(other.unbegun) }
    }
}

/// Counters, gauges and histograms of one window.
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

    /// Counts a latency of `nanoseconds` so many times.
    pub fn latency(&mut self, place: usize, nanoseconds: u64, count: u64) {
        self.latencies[place].record(nanoseconds, count);
    }

    /// Adds to a counter.
    pub fn add(&mut self, place: usize, increment: u64) {
        self.counters[place] += increment;
    }

    /// Sets a gauge.
    pub fn set(&mut self, place: usize, value: f64) {
        self.gauges[place] = value;
    }

    /// Notes when the oldest operations were due. `now` in nanoseconds since the epoch. To be called every 100 ms or so,
    /// for as long as the thread is not held up.
    pub fn look(&mut self, now: u64, oldest: OldestDue) {
        self.looked = Some(Observation { at: now, oldest });
    }

    /// How old the oldest operations were at `moment`; None where no thread observes that.
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

/// What gauges are before any thread has set them; not a number where that is not known.
pub(crate) fn blank_gauges(names: &Names) -> Vec<f64> {
    names.gauges.iter().map(|(_, merge)| if *merge == Merge::Measured { f64::NAN } else { 0.0 }).collect()
}

/// One thread's tally of the present window. The thread locks it for as long as it counts, never while it waits, so
/// that the window can be printed while the thread is stuck; the lock is hardly ever contended.
#[derive(Clone, Debug)]
pub struct Recorder {
    tally: Arc<Mutex<Tally>>,
}

impl Recorder {
    pub(crate) fn new(names: &Names) -> Result<Self> {
        Ok(Self { tally: Arc::new(Mutex::new(Tally::new(names)?)) })
    }

    /// The tally, to count several things at once.
    pub fn lock(&self) -> MutexGuard<'_, Tally> {
        self.tally.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes what was counted and leaves `blank` in its place; gauges stay.
    pub(crate) fn swap(&self, blank: &mut Tally) {
        let mut tally = self.lock();
        std::mem::swap(&mut *tally, blank);
        tally.gauges.copy_from_slice(&blank.gauges);
        tally.looked = blank.looked;
    }
}
