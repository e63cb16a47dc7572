//! What all threads of a run see.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cliffwatch_measure::clock::Clock;
use cliffwatch_measure::histogram::Latencies;
use cliffwatch_measure::stop::Stop;

use crate::clocks::peers::Peers;
use crate::track::Track;

/// A partition of the run: its place among all is what it is known by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its topic, by place among the topics.
    pub topic: usize,
    /// Its number in the topic.
    pub index: i32,
}

/// What all threads see.
pub struct Shared {
    /// The run's time.
    pub clock: Clock,
    /// Set when the run has to end early.
    pub stop: Stop,
    /// When the load begins, in nanoseconds since the epoch.
    pub load_start: u64,
    /// When the load ends, in nanoseconds since the epoch.
    pub load_stop: u64,
    /// After the load's end, nothing is waited for longer than this, in nanoseconds.
    pub drain_nanoseconds: u64,
    /// Names of topics, by place.
    pub topics: Vec<String>,
    /// Partitions, by place; those of one topic follow each other.
    pub partitions: Vec<Place>,
    /// Records of this process carry this in the upper 24 bits of their producer.
    pub incarnation: u32,
    /// Records and value bytes that were acknowledged.
    pub acknowledged: Count,
    /// Records and value bytes of this process that were read.
    pub consumed: Count,
    /// Consumers are not to read.
    pub paused: AtomicBool,
    /// Producers that have not ended yet.
    pub producing: AtomicU32,
    /// The offset of the next record of each partition, by place; -1 where nothing was read.
    pub positions: Vec<AtomicI64>,
    /// What became of the records of partitions that are nobody's at the moment, by place.
    pub parked: Mutex<BTreeMap<usize, Track>>,
    /// How far each producer is behind its schedule, in nanoseconds.
    pub debts: Vec<AtomicU64>,
    /// What the times of other processes are ahead of ours.
    pub peers: Peers,
    /// Latencies of the present trial, while the highest sustainable rate is looked for.
    pub trial: Option<Mutex<Trial>>,
}

/// Records and bytes.
#[derive(Debug, Default)]
pub struct Count {
    records: AtomicU64,
    bytes: AtomicU64,
}

impl Count {
    /// Adds to both.
    pub fn add(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Both.
    pub fn get(&self) -> (u64, u64) {
        (self.records.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// Latencies of a trial.
pub struct Trial {
    /// From due time to acknowledgement.
    pub publish: Latencies,
    /// From due time to reading.
    pub end_to_end: Latencies,
}

impl Shared {
    /// True once nothing more is to be produced.
    pub fn is_over(&self, now: u64) -> bool {
        now >= self.load_stop || self.stop.is_requested()
    }

    /// How much was acknowledged and not read yet: records and bytes.
    pub fn backlog(&self) -> (u64, u64) {
        let (acknowledged, consumed) = (self.acknowledged.get(), self.consumed.get());
        (acknowledged.0.saturating_sub(consumed.0), acknowledged.1.saturating_sub(consumed.1))
    }

    /// What is nobody's at the moment.
    pub fn parked(&self) -> MutexGuard<'_, BTreeMap<usize, Track>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present trial, when there is one.
    pub fn trial(&self) -> Option<MutexGuard<'_, Trial>> {
        self.trial.as_ref().map(|trial| trial.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
