//! What all threads of a run see.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cliffwatch_measure::clock::Clock;
use cliffwatch_measure::histogram::Latencies;
use cliffwatch_measure::stop::Stop;

use crate::clocks::peers::Peers;
use crate::track::Track;

/// A partition of the run. Its id is its index in [`Shared::partitions`]; records carry it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicPartition {
    /// Its topic, by index in [`Shared::topics`].
    pub(crate) topic: usize,
    /// Its number in the topic.
    pub(crate) index: i32,
}

/// What all threads see.
pub(crate) struct Shared {
    /// The run's time.
    pub(crate) clock: Clock,
    /// Set when the run has to end early.
    pub(crate) stop: Stop,
    /// When the load begins, in nanoseconds since the epoch.
    pub(crate) load_start: u64,
    /// When the load ends, in nanoseconds since the epoch.
    pub(crate) load_stop: u64,
    /// After the load's end, nothing is waited for longer than this, in nanoseconds.
    pub(crate) drain_nanoseconds: u64,
    /// Names of topics.
    pub(crate) topics: Vec<String>,
    /// Partitions, by id; those of one topic follow each other.
    pub(crate) partitions: Vec<TopicPartition>,
    /// Records of this process carry this in the upper 24 bits of their producer.
    pub(crate) incarnation: u32,
    /// Records and value bytes that were acknowledged.
    pub(crate) acknowledged: RecordCount,
    /// Records and value bytes of this process that were read.
    pub(crate) consumed: RecordCount,
    /// Consumers are not to read.
    pub(crate) paused: AtomicBool,
    /// Producers that have not ended yet.
    pub(crate) producing: AtomicU32,
    /// The offset of the next record of each partition, by id; -1 where nothing was read.
    pub(crate) positions: Vec<AtomicI64>,
    /// What became of the records of partitions that no consumer owns at the moment, by id.
    pub(crate) parked: Mutex<BTreeMap<usize, Track>>,
    /// How far each producer is behind its schedule, in nanoseconds.
    pub(crate) debts: Vec<AtomicU64>,
    /// What the times of other processes are ahead of ours.
    pub(crate) peers: Peers,
    /// Latencies of the present trial, while the highest sustainable rate is looked for.
    pub(crate) trial: Option<Mutex<RateTrial>>,
}

/// Records and bytes.
#[derive(Debug, Default)]
pub(crate) struct RecordCount {
    records: AtomicU64,
    bytes: AtomicU64,
}

impl RecordCount {
    /// Adds to both.
    pub(crate) fn add(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Both.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.records.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// Latencies of a trial.
pub(crate) struct RateTrial {
    /// From due time to acknowledgement.
    pub(crate) publish: Latencies,
    /// From due time to reading.
    pub(crate) end_to_end: Latencies,
}

impl Shared {
    /// True once nothing more is to be produced.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        now >= self.load_stop || self.stop.is_requested()
    }

    /// How much was acknowledged and not read yet: records and bytes.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        let (acknowledged, consumed) = (self.acknowledged.get(), self.consumed.get());
        (acknowledged.0.saturating_sub(consumed.0), acknowledged.1.saturating_sub(consumed.1))
    }

    /// State of the partitions that no consumer owns at the moment.
    pub(crate) fn parked(&self) -> MutexGuard<'_, BTreeMap<usize, Track>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The present trial, when there is one.
    pub(crate) fn trial(&self) -> Option<MutexGuard<'_, RateTrial>> {
        self.trial.as_ref().map(|trial| trial.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
