//! Configuration of a load, as the JSON document that the service writes, and its validation.

use crate::buffers::BLOCK_BYTES;
use crate::error::{Error, Result};
use crate::io::IoMethod;
use cliffwatch_measure::record::HEADER_BYTES;
use cliffwatch_measure::schedule::Step;
use std::path::PathBuf;

pub(crate) const PARTITIONS_LIMIT: u32 = 100_000;
const MEBIBYTE: u64 = 1 << 20;
const BACKGROUND_LIMIT: u32 = 64;
const SNAPSHOT_LIMIT: u32 = 1 << 20;

/// Configuration of a load.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// The run's own directory; all files are written below it, except a journal in `journal_directory`.
    pub directory: PathBuf,
    /// Directory for the journal; `directory` if absent.
    #[serde(default)]
    pub journal_directory: Option<PathBuf>,
    /// Length of a window in seconds, 0.01 or more.
    pub window_seconds: f64,
    /// Start of the load in seconds since the epoch, on the window grid.
    pub start: f64,
    /// End of the load in seconds since the epoch, on the window grid.
    pub stop: f64,
    /// Start of the run's first load in seconds since the epoch, if this load continues it; steps of rate count from
    /// then.
    #[serde(default)]
    pub begun: Option<f64>,
    /// Number of partitions, 1 to `PARTITIONS_LIMIT`.
    pub partitions: u32,
    /// Number of producers that share the rate, each with its own timing; 1 or more.
    #[serde(default = "one")]
    pub producers: u32,
    /// Sizes and payload of records.
    pub record: RecordSettings,
    /// Number of records in a batch, 1 or more. Batches are the unit of append latencies.
    #[serde(default = "one")]
    pub batch_records: u32,
    /// Target rate in records per second, in steps.
    pub rate: Vec<Step>,
    /// Seconds of schedule that are caught up after a stall; batches overdue by more are shed.
    #[serde(default = "default_burst_seconds")]
    pub burst_seconds: f64,
    /// Number of appending threads, 1 to the number of logs; each has its own partitions.
    #[serde(default = "one")]
    pub threads: u32,
    /// Method of writing files.
    pub io: IoMethod,
    /// Memory for write buffers, all threads together, in bytes.
    #[serde(default = "default_buffer_bytes")]
    pub buffer_bytes: u64,
    /// Memory limit of the load in bytes; a load that needs more is refused.
    #[serde(default = "default_memory_bytes")]
    pub memory_bytes: u64,
    /// Settings of the logs.
    pub log: LogSettings,
    /// Settings of a write-ahead log of all partitions; absent: no journal.
    #[serde(default)]
    pub journal: Option<JournalSettings>,
    /// Limit of the segments' total size.
    pub retention: Retention,
    /// Share of the retention, 0 to 1, that is written before the load begins.
    #[serde(default)]
    pub fill: f64,
    /// Seconds between discards of free space (FITRIM), 1 or more; absent: never.
    #[serde(default)]
    pub trim_interval_seconds: Option<f64>,
    /// Settings of the consumers.
    #[serde(default)]
    pub readers: ReaderSettings,
    /// Limits of the read-back.
    #[serde(default)]
    pub verify: VerifySettings,
    /// Keep the files when the volume becomes full during the load; otherwise they are removed.
    #[serde(default)]
    pub keep_files: bool,
}

/// Sizes and payload of records.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordSettings {
    /// Sizes with their weights; a single one for a fixed size. A size includes the header.
    pub sizes: Vec<WeightedSize>,
    /// Share of the payload that cannot be compressed, 0 to 1.
    #[serde(default = "all")]
    pub randomness: f64,
}

/// Record size and its weight.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeightedSize {
    /// Length of the whole record in bytes, 32 or more.
    pub bytes: u32,
    /// Frequency relative to the other sizes, above 0.
    #[serde(default = "all")]
    pub weight: f64,
}

/// Condition for acknowledging a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Acknowledge {
    /// The write has returned.
    Written,
    /// The write and a subsequent fdatasync have returned.
    Synced,
}

/// Distribution of partitions over logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Layout {
    /// One log for each partition, with its own directory and active segment.
    Partitioned,
    /// One log for all partitions, whose records are interleaved in one active segment.
    Shared,
}

/// Settings of the logs: layout, writes, syncs and segments.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    /// Distribution of partitions over logs.
    pub layout: Layout,
    /// Bypass the page cache (O_DIRECT).
    pub direct: bool,
    /// Maximum length of a write in bytes, which is that of a buffer: 512 or more; with O_DIRECT a multiple of 4096.
    pub chunk_bytes: u32,
    /// Step of preallocation (fallocate) in bytes; 0: no preallocation.
    #[serde(default)]
    pub preallocate_bytes: u64,
    /// Condition for acknowledging a batch; not used with a journal.
    pub acknowledge: Acknowledge,
    /// Write together the batches that wait for an earlier write.
    #[serde(default)]
    pub coalesce: bool,
    /// Sync a full segment, in the background.
    #[serde(default)]
    pub sync_on_roll: bool,
    /// Length in bytes of a snapshot file created beside a full segment, 1 MiB at most; 0: no file. With `sync_on_roll`
    /// it is synced with the segment and their directory.
    #[serde(default)]
    pub snapshot_bytes: u32,
    /// Record the first sequence of a partition in a file that is replaced, and synced with its directory, when
    /// segments are deleted. Only with `sync_on_roll`.
    #[serde(default)]
    pub start_checkpoint: bool,
    /// Seconds between replacements of the file with the next sequence of each log, which is synced with its directory;
    /// 0.1 or more; absent: never.
    #[serde(default)]
    pub offset_checkpoint_seconds: Option<f64>,
    /// Number of threads that close and sync full segments, 1 to 64; concurrent syncs share commits of the file system.
    #[serde(default = "one")]
    pub background_threads: u32,
    /// Maximum length of a segment in bytes; a batch that would exceed it goes to the next segment.
    pub segment_bytes: u64,
    /// Share of `segment_bytes`, 0 to 0.5, by which a segment may be full earlier, different for each segment.
    #[serde(default)]
    pub segment_jitter: f64,
    /// Bytes from one entry of the offset index and time index to the next; 0: no indexes.
    #[serde(default)]
    pub index_interval_bytes: u32,
    /// With a journal: seconds between checkpoints, which write and sync the journaled batches to the log.
    #[serde(default = "default_checkpoint_seconds")]
    pub checkpoint_seconds: f64,
}

/// Settings of a write-ahead log of all partitions. A batch is acknowledged when it is synced there.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalSettings {
    /// Bypass the page cache (O_DIRECT).
    #[serde(default)]
    pub direct: bool,
    /// Length in bytes at which a file is full and the next one begins.
    pub segment_bytes: u64,
    /// Step of preallocation (fallocate) in bytes; 0: no preallocation.
    #[serde(default)]
    pub preallocate_bytes: u64,
    /// Seconds that a batch waits for others to share a sync with (group commit).
    #[serde(default)]
    pub group_seconds: f64,
    /// Bytes of waiting batches at which the wait of `group_seconds` ends early.
    #[serde(default = "default_group_bytes")]
    pub group_bytes: u64,
}

/// Limit of the segments' total size, divided equally among the logs: a log's oldest segments are deleted before a new
/// one would exceed its part.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Retention {
    /// Limit in bytes, all partitions together.
    Bytes(u64),
    /// Limit as a share of the volume's size, above 0 up to 1, all partitions together.
    Share(f64),
}

/// Settings of the consumers that read while the load writes.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReaderSettings {
    /// Number of consumers that follow the end of every partition.
    #[serde(default)]
    pub tailing: u32,
    /// Rate in bytes per second of a consumer that reads from the oldest segments on; 0: no such consumer.
    #[serde(default)]
    pub catch_up_bytes_per_second: f64,
    /// Maximum length of a read in bytes.
    #[serde(default = "default_read_bytes")]
    pub read_bytes: u32,
}

/// Limits of the read-back.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifySettings {
    /// Bytes to read back at the end or on request, rounded up to whole segments; absent: all, 0: none.
    pub bytes: Option<u64>,
    /// Time limit of the read-back in seconds.
    #[serde(default = "default_verify_seconds")]
    pub seconds: f64,
}

impl Default for VerifySettings {
    fn default() -> Self {
        Self { bytes: Some(256 * MEBIBYTE), seconds: default_verify_seconds() }
    }
}

fn one() -> u32 {
    1
}
fn all() -> f64 {
    1.0
}
fn default_burst_seconds() -> f64 {
    60.0
}
fn default_buffer_bytes() -> u64 {
    16 * MEBIBYTE
}
fn default_memory_bytes() -> u64 {
    1024 * MEBIBYTE
}
fn default_checkpoint_seconds() -> f64 {
    10.0
}
fn default_group_bytes() -> u64 {
    512 * 1024
}
fn default_read_bytes() -> u32 {
    MEBIBYTE as u32
}
fn default_verify_seconds() -> f64 {
    20.0
}

impl Config {
    /// Parses and validates the JSON document.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let config: Self = serde_json::from_str(text)?;
        config.check()?;
        Ok(config)
    }

    /// Returns the length of the longest record in bytes.
    pub(crate) fn longest_record(&self) -> u32 {
        self.record.sizes.iter().map(|size| size.bytes).max().unwrap_or(0)
    }

    /// Returns the length of the longest batch in bytes.
    pub(crate) fn batch_bytes(&self) -> u64 {
        u64::from(self.longest_record()) * u64::from(self.batch_records)
    }

    /// Returns the length of all records in bytes, None if lengths vary.
    pub(crate) fn fixed_record(&self) -> Option<u32> {
        let longest = self.longest_record();
        self.record.sizes.iter().all(|size| size.bytes == longest).then_some(longest)
    }

    /// Returns the number of logs, the journal excluded: one for each partition, or one for all.
    pub(crate) fn logs(&self) -> u32 {
        if self.log.layout == Layout::Shared { 1 } else { self.partitions }
    }

    fn check(&self) -> Result<()> {
        self.check_records()?;
        self.check_rate()?;
        self.check_log()?;
        if self.partitions == 0 || self.partitions > PARTITIONS_LIMIT {
            return Err(Error::setting("partitions", format!("take 1 to {PARTITIONS_LIMIT}")));
        }
        if self.producers == 0 {
            return Err(Error::setting("producers", "take 1 or more"));
        }
        if self.threads == 0 || self.threads > self.logs() {
            let advice =
                format!("take 1 to {}, the number of logs, since each thread has some of its own", self.logs());
            return Err(Error::setting("threads", advice));
        }
        if !(0.0..=1.0).contains(&self.fill) {
            return Err(Error::setting("fill", "take a share of the retention, 0 to 1"));
        }
        if matches!(self.retention, Retention::Share(share) if !(share > 0.0 && share <= 1.0)) {
            return Err(Error::setting("retention", "take a share of the volume above 0, and 1 at most"));
        }
        if self.trim_interval_seconds.is_some_and(|seconds| seconds.is_nan() || seconds < 1.0) {
            return Err(Error::setting("trim_interval_seconds", "take 1 second or more"));
        }
        Ok(())
    }

    fn check_records(&self) -> Result<()> {
        if self.record.sizes.is_empty() || self.record.sizes.iter().any(|size| (size.bytes as usize) < HEADER_BYTES) {
            let advice = format!("a record is {HEADER_BYTES} bytes or longer, which its identity and checksum take");
            return Err(Error::setting("record.sizes", advice));
        }
        if self.record.sizes.iter().any(|size| !(size.weight > 0.0 && size.weight.is_finite())) {
            return Err(Error::setting("record.sizes", "a weight is above 0"));
        }
        if !(0.0..=1.0).contains(&self.record.randomness) {
            return Err(Error::setting("record.randomness", "take a share, 0 to 1"));
        }
        if self.batch_records == 0 {
            return Err(Error::setting("batch_records", "take 1 or more"));
        }
        Ok(())
    }

    fn check_rate(&self) -> Result<()> {
        if self.window_seconds.is_nan() || self.window_seconds < 0.01 {
            return Err(Error::setting("window_seconds", "take 0.01 or more"));
        }
        if !(self.burst_seconds >= 0.0 && self.burst_seconds.is_finite()) {
            return Err(Error::setting("burst_seconds", "take 0 or more"));
        }
        if self.rate.is_empty() {
            return Err(Error::setting("rate", "say how many records are due each second"));
        }
        Ok(())
    }

    fn check_log(&self) -> Result<()> {
        let chunk = self.log.chunk_bytes as usize;
        let direct = self.log.direct || self.journal.as_ref().is_some_and(|journal| journal.direct);
        if chunk < 512 || direct && !chunk.is_multiple_of(BLOCK_BYTES) {
            let advice = format!("take 512 or more, and past the page cache a multiple of {BLOCK_BYTES}");
            return Err(Error::setting("log.chunk_bytes", advice));
        }
        if self.io == IoMethod::Inline && self.log.direct {
            return Err(Error::setting("io", "files that bypass the page cache are written with io_uring or threads"));
        }
        if self.journal.is_some() && self.log.layout != Layout::Shared {
            return Err(Error::setting("journal", "a journal goes with a log that all partitions share"));
        }
        if self.log.index_interval_bytes > 0 && (self.log.layout == Layout::Shared || self.log.direct) {
            return Err(Error::setting("log.index_interval_bytes", "indexes go with buffered logs, one a partition"));
        }
        if self.log.offset_checkpoint_seconds.is_some_and(|seconds| seconds.is_nan() || seconds < 0.1) {
            return Err(Error::setting("log.offset_checkpoint_seconds", "take 0.1 seconds or more"));
        }
        if self.log.background_threads == 0 || self.log.background_threads > BACKGROUND_LIMIT {
            return Err(Error::setting("log.background_threads", format!("take 1 to {BACKGROUND_LIMIT}")));
        }
        if self.log.snapshot_bytes > SNAPSHOT_LIMIT {
            return Err(Error::setting("log.snapshot_bytes", format!("take {SNAPSHOT_LIMIT} or less")));
        }
        if !(0.0..=0.5).contains(&self.log.segment_jitter) {
            return Err(Error::setting("log.segment_jitter", "take a share, 0 to 0.5"));
        }
        let shortest = self.batch_bytes() + 2 * BLOCK_BYTES as u64;
        for (field, bytes) in [
            ("log.segment_bytes", self.log.segment_bytes),
            ("journal.segment_bytes", self.journal.as_ref().map_or(u64::MAX, |journal| journal.segment_bytes)),
        ] {
            if ((bytes as f64) * (1.0 - self.log.segment_jitter)) < shortest as f64 {
                return Err(Error::setting(field, format!("take {} or more, so that a batch fits in", shortest * 2)));
            }
        }
        if self.batch_bytes() + 2 * u64::from(self.log.chunk_bytes) > self.buffer_bytes {
            let advice = format!("a batch of {} bytes does not fit into it", self.batch_bytes());
            return Err(Error::setting("buffer_bytes", advice));
        }
        Ok(())
    }
}
