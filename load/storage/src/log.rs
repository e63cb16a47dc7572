//! Append-only log: its layout, its active segment, and the state of the write in progress.

use crate::buffers::BLOCK_BYTES;
use crate::config::{Acknowledge, Config};
use crate::index::Indexes;
use crate::segments::{
    Catalogue, OFFSET_INDEX, RECORDS, SNAPSHOT, START, Segment, TIME_INDEX, log_directory, segment_path,
};
use cliffwatch_measure::record::mix;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Role of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// Log without a journal, which acknowledges batches itself.
    Main,
    /// Write-ahead log, which acknowledges batches before they are written to the entries.
    Journal,
    /// Log behind a journal, to which acknowledged batches are written at checkpoints.
    Entries,
}

/// Layout of a log, and settings for writing it.
#[derive(Clone, Debug)]
pub(crate) struct LogLayout {
    /// Role of the log.
    pub role: Role,
    /// Directory that holds the segments, or a directory for each log if `numbered`.
    pub parent: PathBuf,
    /// True if each log has its own directory below `parent`.
    pub numbered: bool,
    /// Bypass the page cache (O_DIRECT).
    pub direct: bool,
    /// Write waiting batches together.
    pub coalesce: bool,
    /// Sync after each group of batches.
    pub sync: bool,
    /// Sync full segments.
    pub sync_on_roll: bool,
    /// Length in bytes of the snapshot file beside a full segment; 0: no file.
    pub snapshot_bytes: u32,
    /// Record the first sequence of a log in a file whenever it changes.
    pub start_checkpoint: bool,
    /// Step of preallocation (fallocate) in bytes; 0: no preallocation.
    pub preallocate_bytes: u64,
    /// Maximum length of a segment in bytes.
    pub segment_bytes: u64,
    /// Share of `segment_bytes` by which a segment may be shorter.
    pub segment_jitter: f64,
    /// Maximum bytes of a log's segments; the oldest are deleted first.
    pub retention_bytes: u64,
    /// Bytes from one index entry to the next; 0: no indexes.
    pub index_interval_bytes: u32,
}

impl LogLayout {
    /// Returns the layout of the logs other than the journal, each limited to `retention_bytes`.
    pub(crate) fn of_log(config: &Config, retention_bytes: u64) -> Self {
        let log = &config.log;
        let journaled = config.journal.is_some();
        Self {
            role: if journaled { Role::Entries } else { Role::Main },
            parent: config.directory.join(crate::segments::LOG),
            numbered: true,
            direct: log.direct,
            coalesce: log.coalesce || journaled,
            sync: log.acknowledge == Acknowledge::Synced && !journaled,
            sync_on_roll: log.sync_on_roll,
            snapshot_bytes: log.snapshot_bytes,
            start_checkpoint: log.start_checkpoint && log.sync_on_roll,
            preallocate_bytes: log.preallocate_bytes,
            segment_bytes: log.segment_bytes,
            segment_jitter: log.segment_jitter,
            retention_bytes,
            index_interval_bytes: log.index_interval_bytes,
        }
    }

    /// Returns the layout of the journal, None if the load has none.
    pub(crate) fn of_journal(config: &Config) -> Option<Self> {
        let journal = config.journal.as_ref()?;
        Some(Self {
            role: Role::Journal,
            parent: config.journal_directory.as_ref().unwrap_or(&config.directory).join(crate::segments::JOURNAL),
            numbered: false,
            direct: journal.direct,
            coalesce: true,
            sync: true,
            sync_on_roll: false,
            snapshot_bytes: 0,
            start_checkpoint: false,
            preallocate_bytes: journal.preallocate_bytes,
            segment_bytes: journal.segment_bytes,
            segment_jitter: 0.0,
            retention_bytes: u64::MAX,
            index_interval_bytes: 0,
        })
    }

    /// Returns a layout with one directory for each log and all options off.
    #[cfg(any(test, feature = "fuzzing"))]
    pub(crate) fn plain(parent: &Path) -> Self {
        Self {
            role: Role::Main,
            parent: parent.to_owned(),
            numbered: true,
            direct: false,
            coalesce: false,
            sync: false,
            sync_on_roll: false,
            snapshot_bytes: 0,
            start_checkpoint: false,
            preallocate_bytes: 0,
            segment_bytes: u64::MAX,
            segment_jitter: 0.0,
            retention_bytes: u64::MAX,
            index_interval_bytes: 0,
        }
    }

    /// Returns the directory of log `number`.
    pub(crate) fn directory(&self, number: u32) -> PathBuf {
        if self.numbered { log_directory(&self.parent, number) } else { self.parent.clone() }
    }

    /// Returns the maximum length in bytes of segment `base` of log `number`: `segment_bytes`, shortened at random by
    /// up to `segment_jitter`, the same for the same segment.
    pub(crate) fn limit(&self, number: u32, base: u64) -> u64 {
        let share = mix(mix(u64::from(number)) ^ base) as f64 / 2_f64.powi(64);
        (self.segment_bytes as f64 * (1.0 - self.segment_jitter * share)) as u64
    }
}

/// State of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    /// No request in flight.
    Idle,
    /// The next segment's file is being created.
    Opening,
    /// Space is being allocated.
    Allocating,
    /// Batches are being written.
    Writing,
    /// The written batches are being synced.
    Syncing,
}

/// Group of batches that are written together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteGroup {
    /// Index of the first batch in the schedule.
    pub first: u64,
    /// Number of batches.
    pub batches: u64,
    /// Bytes of the batches; during an allocation, the bytes to allocate.
    pub bytes: u64,
    /// Time when the log began to process the group, in nanoseconds since the epoch; None before.
    pub begun: Option<u64>,
    /// Start of the sync, in nanoseconds since the epoch.
    pub sync_begun: u64,
    /// Number of writes in flight.
    pub outstanding: u32,
}

/// Log to which a shard appends.
pub(crate) struct AppendLog {
    /// Number of the log among those of its kind.
    pub number: u32,
    /// Index in the schedule of the next batch to write.
    pub next: u64,
    /// Distance in the schedule from one batch of the log to its next.
    pub stride: u64,
    /// Current state.
    pub state: LogState,
    /// Group of batches in progress.
    pub group: WriteGroup,
    /// True while the log is in the shard's queue of ready logs.
    pub queued: bool,
    /// File of the active segment, None if there is none.
    pub file: Option<OwnedFd>,
    /// Base of the active segment, by which its files are named.
    pub base: u64,
    /// Bytes of records in the active segment.
    pub length: u64,
    /// Length in bytes at which the active segment is full.
    pub limit: u64,
    /// Bytes allocated to the file of the active segment.
    pub allocated: u64,
    /// Content of the partly filled block at the end of the active segment; only with O_DIRECT.
    pub tail: Option<Box<[u8; BLOCK_BYTES]>>,
    /// Partition of `sequences[0]`; the others follow in order.
    pub first_partition: u32,
    /// Next sequence of each partition of the log.
    pub sequences: Vec<u64>,
    /// Indexes of the active segment.
    pub indexes: Option<Box<Indexes>>,
    /// Catalogue that holds the segments of the log.
    pub catalogue: Arc<Catalogue>,
}

impl AppendLog {
    /// Returns the file descriptor of the active segment, -1 if there is none.
    pub(crate) fn descriptor(&self) -> RawFd {
        // A log writes only while it has a file; otherwise -1 makes the kernel return EBADF.
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Returns the paths of all files of segment `base`.
    pub(crate) fn paths(&self, base: u64, shape: &LogLayout) -> Vec<PathBuf> {
        let indexes: &[&str] = if shape.index_interval_bytes > 0 { &[OFFSET_INDEX, TIME_INDEX] } else { &[] };
        let snapshot: &[&str] = if shape.snapshot_bytes > 0 { &[SNAPSHOT] } else { &[] };
        let kinds = [RECORDS].iter().chain(indexes).chain(snapshot);
        kinds.map(|kind| segment_path(self.directory(), base, kind)).collect()
    }

    /// Returns the path of the active segment's snapshot file.
    pub(crate) fn snapshot_path(&self) -> PathBuf {
        segment_path(self.directory(), self.base, SNAPSHOT)
    }

    /// Returns the path of the active segment's records.
    pub(crate) fn path(&self) -> PathBuf {
        segment_path(self.directory(), self.base, RECORDS)
    }

    /// Returns the directory of the log's segments.
    pub(crate) fn directory(&self) -> &Path {
        self.catalogue.directory(self.number as usize)
    }

    /// Moves the active segment to the full ones and returns its file and size, None if there is no active segment.
    pub(crate) fn fill_up(&mut self) -> Option<(OwnedFd, Segment)> {
        let file = self.file.take()?;
        let full = Segment { base: self.base, bytes: self.length };
        let mut segments = self.catalogue.segments(self.number as usize);
        segments.full.push_back(full);
        segments.full_bytes += full.bytes;
        segments.active = None;
        Some((file, full))
    }

    /// Removes the oldest full segments from the catalogue, until the others and a new one of `coming_bytes` fit in
    /// `retention_bytes`. Returns the removed segments.
    pub(crate) fn expire(&mut self, retention_bytes: u64, coming_bytes: u64) -> Vec<Segment> {
        let mut expired = Vec::new();
        let mut segments = self.catalogue.segments(self.number as usize);
        while segments.full_bytes + coming_bytes > retention_bytes {
            let Some(oldest) = segments.full.pop_front() else { break };
            segments.full_bytes -= oldest.bytes;
            expired.push(oldest);
        }
        expired
    }

    /// Returns the bytes that the log's segments take, preallocated space included.
    pub(crate) fn taken_bytes(&self) -> u64 {
        let full_bytes = self.catalogue.segments(self.number as usize).full_bytes;
        full_bytes + self.allocated.max(self.length)
    }

    /// Returns the path of the file that records the log's first sequence, and that sequence.
    pub(crate) fn start(&self) -> (PathBuf, u64) {
        let segments = self.catalogue.segments(self.number as usize);
        (self.directory().join(START), segments.full.front().map_or(self.base, |oldest| oldest.base))
    }

    /// Publishes to readers how many bytes of the active segment are acknowledged.
    pub(crate) fn publish(&self) {
        let mut segments = self.catalogue.segments(self.number as usize);
        segments.active = Some(Segment { base: self.base, bytes: self.length });
        if let [next] = self.sequences[..] {
            segments.next_sequence = next;
        }
    }

    /// Publishes to readers that nothing more is appended, and the end of each partition.
    pub(crate) fn end(&self) {
        if self.sequences.len() > 1 {
            let ended = (self.first_partition..).zip(self.sequences.iter().copied());
            self.catalogue.segments(self.number as usize).ended = ended.collect();
        }
    }
}
