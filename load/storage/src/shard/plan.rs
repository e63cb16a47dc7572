//! What a shard is made of, and what becomes of it.

use crate::config::Config;
use crate::files::{Failure, FileThreads};
use crate::log::{AppendLog, LogLayout};
use cliffwatch_measure::clock::Clock;
use cliffwatch_measure::recorder::Recorder;
use cliffwatch_measure::schedule::Schedule;
use cliffwatch_measure::stop::Stop;
use std::sync::Arc;

/// When a shard's work is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// At a moment, in nanoseconds since the epoch; until then batches are written as they are due.
    Until(u64),
    /// When so many batches are written, which are all due at once.
    Batches(u64),
}

/// What a shard is made of. It is made in its own thread, because a ring belongs to the thread that made it.
pub(crate) struct ShardPlan {
    /// What is asked for.
    pub config: Arc<Config>,
    /// When batches are due.
    pub schedule: Schedule,
    /// The load's start, in nanoseconds since the epoch.
    pub start: u64,
    /// Its end.
    pub work: Work,
    /// Its logs: those of its partitions, or a shared one with the journal before it.
    pub logs: Vec<AppendLog>,
    /// How they write, by role.
    pub shapes: Vec<LogLayout>,
    /// How many buffers of `config.log.chunk_bytes` it has.
    pub buffers: usize,
    /// The time.
    pub clock: Clock,
    /// Where it counts.
    pub recorder: Recorder,
    /// Who makes, seals and deletes its files.
    pub file_threads: FileThreads,
    /// Where failures are reported.
    pub failure: Failure,
    /// When to stop before the end.
    pub stop: Stop,
}

/// What became of a shard.
#[derive(Clone, Debug)]
pub(crate) struct ShardOutcome {
    /// Batches that were due and were not started.
    pub unwritten: u64,
}
