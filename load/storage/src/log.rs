//! One log: the files that it fills one after the other, and what of it is under way.

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

/// What a log is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// It acknowledges batches as they come.
    Main,
    /// It acknowledges batches before they are written to the entries.
    Journal,
    /// It takes over at checkpoints what a journal has acknowledged.
    Entries,
}

/// How a log writes.
#[derive(Clone, Debug)]
pub(crate) struct LogLayout {
    /// What it is for.
    pub role: Role,
    /// Where its segments are.
    pub parent: PathBuf,
    /// Whether it has a directory of its own below `parent`.
    pub numbered: bool,
    /// Past the page cache.
    pub direct: bool,
    /// Batches that wait are written together.
    pub coalesce: bool,
    /// Each group ends with a sync.
    pub sync: bool,
    /// A full segment is synced.
    pub sync_on_roll: bool,
    /// The length of the file that is made beside a full segment; 0: there is none.
    pub snapshot_bytes: u32,
    /// Where a log begins is noted when that changes.
    pub start_checkpoint: bool,
    /// Space is allocated in such steps; 0: never.
    pub preallocate_bytes: u64,
    /// The longest segment.
    pub segment_bytes: u64,
    /// Segments may be shorter by this share.
    pub segment_jitter: f64,
    /// All segments together; the oldest are deleted first.
    pub retention_bytes: u64,
    /// Bytes from one index entry to the next; 0: no indexes.
    pub index_interval_bytes: u32,
}

impl LogLayout {
    /// Of the log proper: of each partition, or of all, or of what a journal acknowledges.
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

    /// Of the journal, where there is one.
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

    /// A directory a log, and nothing that a load could ask for besides.
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

    /// The directory of a log.
    pub(crate) fn directory(&self, number: u32) -> PathBuf {
        if self.numbered { log_directory(&self.parent, number) } else { self.parent.clone() }
    }

    /// How long segment `base` of log `number` may become.
    pub(crate) fn limit(&self, number: u32, base: u64) -> u64 {
        let share = mix(mix(u64::from(number)) ^ base) as f64 / 2_f64.powi(64);
        (self.segment_bytes as f64 * (1.0 - self.segment_jitter * share)) as u64
    }
}

/// What a log is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogState {
    /// Nothing.
    Idle,
    /// Its next segment is being made.
    Opening,
    /// More space is being allocated.
    Allocating,
    /// Batches are being written.
    Writing,
    /// What was written is being synced.
    Syncing,
}

/// Batches that are written together.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct WriteGroup {
    /// The first's place in the schedule.
    pub first: u64,
    /// How many there are.
    pub batches: u64,
    /// Their bytes.
    pub bytes: u64,
    /// When the log turned to them.
    pub begun: Option<u64>,
    /// When their sync began.
    pub sync_begun: u64,
    /// Writes that are not done yet.
    pub outstanding: u32,
}

/// A log.
pub(crate) struct AppendLog {
    /// Its place among the logs of its kind.
    pub number: u32,
    /// The place in the schedule of the next batch to be written.
    pub next: u64,
    /// From one of its batches in the schedule to the next.
    pub stride: u64,
    /// What it is doing.
    pub state: LogState,
    /// What it is writing.
    pub group: WriteGroup,
    /// True while it waits for its turn.
    pub queued: bool,
    /// The active segment.
    pub file: Option<OwnedFd>,
    /// Its name.
    pub base: u64,
    /// Bytes of records in it.
    pub length: u64,
    /// Bytes at which it is full.
    pub limit: u64,
    /// Bytes that are allocated.
    pub allocated: u64,
    /// The beginning of the block that the next record begins in.
    pub tail: Option<Box<[u8; BLOCK_BYTES]>>,
    /// The partition of `sequences[0]`; the others follow.
    pub first_partition: u32,
    /// The next sequence of each of its partitions.
    pub sequences: Vec<u64>,
    /// The indexes of the active segment.
    pub indexes: Option<Box<Indexes>>,
    /// Its segments.
    pub catalogue: Arc<Catalogue>,
}

impl AppendLog {
    /// The active segment's file.
    pub(crate) fn descriptor(&self) -> RawFd {
        // A log writes only while it has a file; -1 makes the kernel say so if not.
        self.file.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }

    /// Files of one of its segments.
    pub(crate) fn paths(&self, base: u64, shape: &LogLayout) -> Vec<PathBuf> {
        let indexes: &[&str] = if shape.index_interval_bytes > 0 { &[OFFSET_INDEX, TIME_INDEX] } else { &[] };
        let snapshot: &[&str] = if shape.snapshot_bytes > 0 { &[SNAPSHOT] } else { &[] };
        let kinds = [RECORDS].iter().chain(indexes).chain(snapshot);
        kinds.map(|kind| segment_path(self.directory(), base, kind)).collect()
    }

    /// The file beside the active segment that is made when that is full.
    pub(crate) fn snapshot_path(&self) -> PathBuf {
        segment_path(self.directory(), self.base, SNAPSHOT)
    }

    /// The file of the active segment.
    pub(crate) fn path(&self) -> PathBuf {
        segment_path(self.directory(), self.base, RECORDS)
    }

    /// Where its segments are.
    pub(crate) fn directory(&self) -> &Path {
        self.catalogue.directory(self.number as usize)
    }

    /// The active segment is full: takes it away and returns what was in it.
    pub(crate) fn fill_up(&mut self) -> Option<(OwnedFd, Segment)> {
        let file = self.file.take()?;
        let full = Segment { base: self.base, bytes: self.length };
        let mut segments = self.catalogue.segments(self.number as usize);
        segments.full.push_back(full);
        segments.full_bytes += full.bytes;
        segments.active = None;
        Some((file, full))
    }

    /// Takes the oldest full segments away for as long as all would be longer than `retention_bytes` with a new one of
    /// `coming_bytes`.
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

    /// Space that its segments take up, what is allocated ahead included.
    pub(crate) fn taken_bytes(&self) -> u64 {
        let full_bytes = self.catalogue.segments(self.number as usize).full_bytes;
        full_bytes + self.allocated.max(self.length)
    }

    /// Where it notes the first record that it holds, and that record's sequence.
    pub(crate) fn start(&self) -> (PathBuf, u64) {
        let segments = self.catalogue.segments(self.number as usize);
        (self.directory().join(START), segments.full.front().map_or(self.base, |oldest| oldest.base))
    }

    /// Publishes to readers how much of the active segment was acknowledged.
    pub(crate) fn publish(&self) {
        let mut segments = self.catalogue.segments(self.number as usize);
        segments.active = Some(Segment { base: self.base, bytes: self.length });
        if let [next] = self.sequences[..] {
            segments.next_sequence = next;
        }
    }

    /// Publishes to readers that nothing more is appended, and what of each partition is there.
    pub(crate) fn end(&self) {
        if self.sequences.len() > 1 {
            let ended = (self.first_partition..).zip(self.sequences.iter().copied());
            self.catalogue.segments(self.number as usize).ended = ended.collect();
        }
    }
}
