//! Inputs and outcome of a shard.

use crate::config::Config;
use crate::files::{Failure, FileThreads};
use crate::log::{AppendLog, LogLayout};
use cliffwatch_measure::clock::Clock;
use cliffwatch_measure::recorder::Recorder;
use cliffwatch_measure::schedule::Schedule;
use cliffwatch_measure::stop::Stop;
use std::sync::Arc;

/// Condition that ends a shard's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Time of the end, in nanoseconds since the epoch; until then batches are written as they become due.
    Until(u64),
    /// Number of batches after which the work ends; all are due at once.
    Batches(u64),
}

/// Inputs from which a shard is created. That happens in the shard's own thread, because an io_uring ring belongs to
/// the thread that created it.
pub(crate) struct ShardPlan {
    /// Configuration of the load.
    pub config: Arc<Config>,
    /// Due times of the batches.
    pub schedule: Schedule,
    /// Start of the load, in nanoseconds since the epoch.
    pub start: u64,
    /// Condition that ends the work.
    pub work: Work,
    /// Logs of the shard: those of its partitions, or a shared one, preceded by the journal if there is one.
    pub logs: Vec<AppendLog>,
    /// Layouts of the logs: one for all of them, or the journal's and the shared log's.
    pub shapes: Vec<LogLayout>,
    /// Number of buffers, of `config.log.chunk_bytes` bytes each.
    pub buffers: usize,
    /// Clock of the load.
    pub clock: Clock,
    /// Recorder of the shard's counters and latencies.
    pub recorder: Recorder,
    /// Threads that create, seal and delete the files of segments.
    pub file_threads: FileThreads,
    /// First error of any thread; set if the shard fails.
    pub failure: Failure,
    /// Stop request, which ends the work early.
    pub stop: Stop,
}

/// Outcome of a shard.
#[derive(Clone, Debug)]
pub(crate) struct ShardOutcome {
    /// Number of batches that were due and not started.
    pub unwritten: u64,
}
