//! What is asked for, as the JSON document that the service writes, and what cannot be asked for.

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

/// All that a load is.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Config {
    /// A directory of the run's own. Everything is written below it.
    pub directory: PathBuf,
    /// Where the journal goes, when not below `directory`.
    #[serde(default)]
    pub journal_directory: Option<PathBuf>,
    /// The length of a window.
    pub window_seconds: f64,
    /// When the load begins, in seconds since the epoch, on the window grid.
    pub start: f64,
    /// When it ends, likewise.
    pub stop: f64,
    /// When the first load of the run began, where this goes on with it; steps of rate count from then.
    #[serde(default)]
    pub begun: Option<f64>,
    /// How many partitions there are.
    pub partitions: u32,
    /// How many producers share the rate. Each keeps to a rhythm of its own.
    #[serde(default = "one")]
    pub producers: u32,
    /// What a record is.
    pub record: RecordSettings,
    /// Records that are appended together, which is what one latency is of.
    #[serde(default = "one")]
    pub batch_records: u32,
    /// Records that are due each second, in steps.
    pub rate: Vec<Step>,
    /// How much of the schedule is made up for after a stall; what is overdue by more is shed.
    #[serde(default = "default_burst_seconds")]
    pub burst_seconds: f64,
    /// Threads that append, each to partitions of its own.
    #[serde(default = "one")]
    pub threads: u32,
    /// How files are written.
    pub io: IoMethod,
    /// Memory for what is being written.
    #[serde(default = "default_buffer_bytes")]
    pub buffer_bytes: u64,
    /// The most memory that the load may count on.
    #[serde(default = "default_memory_bytes")]
    pub memory_bytes: u64,
    /// How records become files.
    pub log: LogSettings,
    /// A write-ahead log before it, of all partitions.
    #[serde(default)]
    pub journal: Option<JournalSettings>,
    /// When old segments are deleted.
    pub retention: Retention,
    /// The share of the retention that is written before the load begins.
    #[serde(default)]
    pub fill: f64,
    /// Freed space is discarded (FITRIM) so often; never when absent.
    #[serde(default)]
    pub trim_interval_seconds: Option<f64>,
    /// Who reads.
    #[serde(default)]
    pub readers: ReaderSettings,
    /// What is read back at the end.
    #[serde(default)]
    pub verify: VerifySettings,
    /// Files are kept when the volume fills up under way.
    #[serde(default)]
    pub keep_files: bool,
}

/// Sizes and payload of records.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordSettings {
    /// Sizes with their weights; one for a fixed size. A size includes the header.
    pub sizes: Vec<WeightedSize>,
    /// The share of the payload that cannot be compressed.
    #[serde(default = "all")]
    pub randomness: f64,
}

/// One size of records.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WeightedSize {
    /// The whole record's length.
    pub bytes: u32,
    /// How often it occurs, relative to the others.
    #[serde(default = "all")]
    pub weight: f64,
}

/// When a batch counts as appended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Acknowledge {
    /// The write returned.
    Written,
    /// And it is on the drive.
    Synced,
}

/// Which partitions share a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Layout {
    /// None: each has a directory and an active segment of its own.
    Partitioned,
    /// All: their records are interleaved in one active segment.
    Shared,
}

/// How records become files.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct LogSettings {
    /// Which partitions share one.
    pub layout: Layout,
    /// Past the page cache.
    pub direct: bool,
    /// The longest write.
    pub chunk_bytes: u32,
    /// Space is allocated ahead in steps of this length; 0: never.
    #[serde(default)]
    pub preallocate_bytes: u64,
    /// When a batch counts as appended.
    pub acknowledge: Acknowledge,
    /// Batches that wait for the one before are written together.
    #[serde(default)]
    pub coalesce: bool,
    /// A full segment is synced, in the background.
    #[serde(default)]
    pub sync_on_roll: bool,
    /// A file of so many bytes is made beside a full segment, and synced with it and their directory; 0: there is none.
    #[serde(default)]
    pub snapshot_bytes: u32,
    /// A file that says where a partition begins is replaced, and synced with its directory, when segments are deleted. Only
    /// with `sync_on_roll`.
    #[serde(default)]
    pub start_checkpoint: bool,
    /// A file with a line for each partition is replaced, and synced with its directory, so often; never when absent.
    #[serde(default)]
    pub offset_checkpoint_seconds: Option<f64>,
    /// Threads that close and sync full segments; those that do so at once share commits of the file system.
    #[serde(default = "one")]
    pub background_threads: u32,
    /// A segment is full when the next batch would make it longer.
    pub segment_bytes: u64,
    /// A segment may be full so much earlier, as a share of its length, each at another point.
    #[serde(default)]
    pub segment_jitter: f64,
    /// An offset index and a time index get an entry for so many bytes; 0: there are none.
    #[serde(default)]
    pub index_interval_bytes: u32,
    /// With a journal: what it holds is written to the log, and synced, so often.
    #[serde(default = "default_checkpoint_seconds")]
    pub checkpoint_seconds: f64,
}

/// A write-ahead log of all partitions. A batch is acknowledged when it is synced there.
#[derive(Clone, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JournalSettings {
    /// Past the page cache.
    #[serde(default)]
    pub direct: bool,
    /// A file is followed by another when it is so long.
    pub segment_bytes: u64,
    /// Space is allocated ahead in steps of this length; 0: never.
    #[serde(default)]
    pub preallocate_bytes: u64,
    /// A batch waits so long for others to be synced with.
    #[serde(default)]
    pub group_seconds: f64,
    /// It waits no longer when so many bytes wait.
    #[serde(default = "default_group_bytes")]
    pub group_bytes: u64,
}

/// When the oldest segment is deleted: before a new one would make all of them longer than this.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Retention {
    /// Bytes of all partitions together.
    Bytes(u64),
    /// The share of the volume, from 0 to 1, of all partitions together.
    Share(f64),
}

/// Who reads while it is written.
#[derive(Clone, Debug, Default, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReaderSettings {
    /// Consumers that follow the end of every partition.
    #[serde(default)]
    pub tailing: u32,
    /// Bytes a second, all consumers together, read from the oldest segments on; 0: none are.
    #[serde(default)]
    pub catch_up_bytes_per_second: f64,
    /// The longest read.
    #[serde(default = "default_read_bytes")]
    pub read_bytes: u32,
}

/// What is read back.
#[derive(Clone, Copy, Debug, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct VerifySettings {
    /// The most bytes that are read back at the end or on request; all when absent, none when 0.
    pub bytes: Option<u64>,
    /// Reading back ends after so long.
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
    /// From the JSON document, checked.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let config: Self = serde_json::from_str(text)?;
        config.check()?;
        Ok(config)
    }

    /// The longest record.
    pub(crate) fn longest_record(&self) -> u32 {
        self.record.sizes.iter().map(|size| size.bytes).max().unwrap_or(0)
    }

    /// The longest batch.
    pub(crate) fn batch_bytes(&self) -> u64 {
        u64::from(self.longest_record()) * u64::from(self.batch_records)
    }

    /// The length of all records, when they are equally long.
    pub(crate) fn fixed_record(&self) -> Option<u32> {
        let longest = self.longest_record();
        self.record.sizes.iter().all(|size| size.bytes == longest).then_some(longest)
    }

    /// Logs that are written by due time: one for each partition, or one for all.
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
