//! State shared by all threads of a run.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cliffwatch_measure::clock::Clock;
use cliffwatch_measure::histogram::Latencies;
use cliffwatch_measure::stop::Stop;

use crate::clocks::peers::Peers;
use crate::track::Track;

/// Partition of the run. Its id is its index in [`Shared::partitions`]; records carry the id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TopicPartition {
    /// Topic, as an index in [`Shared::topics`].
    pub(crate) topic: usize,
    /// Partition index within the topic.
    pub(crate) index: i32,
}

/// State shared by all threads of a run.
pub(crate) struct Shared {
    /// Clock of the run.
    pub(crate) clock: Clock,
    /// Request to end the run early.
    pub(crate) stop: Stop,
    /// Start of the load, in nanoseconds since the epoch.
    pub(crate) load_start: u64,
    /// End of the load, in nanoseconds since the epoch.
    pub(crate) load_stop: u64,
    /// Longest wait for acknowledgements and unread records after the end of the load, in nanoseconds.
    pub(crate) drain_nanoseconds: u64,
    /// Topic names.
    pub(crate) topics: Vec<String>,
    /// Partitions by id; those of one topic are adjacent.
    pub(crate) partitions: Vec<TopicPartition>,
    /// Number of this execution of the process (24 bits), carried by its records in the upper bits of their producer.
    pub(crate) incarnation: u32,
    /// Acknowledged records and their value bytes.
    pub(crate) acknowledged: RecordCount,
    /// Records of this process that consumers have read, and their value bytes.
    pub(crate) consumed: RecordCount,
    /// True while the consumers are paused.
    pub(crate) paused: AtomicBool,
    /// Number of producers that are still running.
    pub(crate) producing: AtomicU32,
    /// Consumer positions (offset of the next record) by partition id; -1 where nothing was read.
    pub(crate) positions: Vec<AtomicI64>,
    /// Verification state of partitions that no consumer owns at present, by partition id.
    pub(crate) parked: Mutex<BTreeMap<usize, Track>>,
    /// Schedule debt: how far each producer is behind its schedule, in nanoseconds.
    pub(crate) debts: Vec<AtomicU64>,
    /// Clock offsets of producers in other processes.
    pub(crate) peers: Peers,
    /// Latencies of the current trial; None unless the maximum sustainable rate is searched.
    pub(crate) trial: Option<Mutex<RateTrial>>,
}

/// Counter of records and bytes.
#[derive(Debug, Default)]
pub(crate) struct RecordCount {
    records: AtomicU64,
    bytes: AtomicU64,
}

impl RecordCount {
    /// Adds records and bytes.
    pub(crate) fn add(&self, records: u64, bytes: u64) {
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Current count of records and bytes.
    pub(crate) fn get(&self) -> (u64, u64) {
        (self.records.load(Ordering::Relaxed), self.bytes.load(Ordering::Relaxed))
    }
}

/// Latency histograms of one trial of the rate search.
pub(crate) struct RateTrial {
    /// Publish latency, from due time to acknowledgement.
    pub(crate) publish: Latencies,
    /// End-to-end latency, from due time to reading.
    pub(crate) end_to_end: Latencies,
}

impl Shared {
    /// True once the load is over: `load_stop` is reached or a stop was requested.
    pub(crate) fn is_over(&self, now: u64) -> bool {
        now >= self.load_stop || self.stop.is_requested()
    }

    /// Consumer backlog: records and value bytes that are acknowledged and not read yet.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        let (acknowledged, consumed) = (self.acknowledged.get(), self.consumed.get());
        (acknowledged.0.saturating_sub(consumed.0), acknowledged.1.saturating_sub(consumed.1))
    }

    /// Locks the verification state of partitions that no consumer owns at present.
    pub(crate) fn parked(&self) -> MutexGuard<'_, BTreeMap<usize, Track>> {
        self.parked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Locks the latencies of the current trial; None without a rate search.
    pub(crate) fn trial(&self) -> Option<MutexGuard<'_, RateTrial>> {
        self.trial.as_ref().map(|trial| trial.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
