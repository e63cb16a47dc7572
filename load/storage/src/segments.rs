//! Catalogue of the logs' segments, and names of their files.

use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags, fsync, open};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Subdirectory that holds the segments of the logs.
pub(crate) const LOG: &str = "log";
/// Subdirectory that holds the journal.
pub(crate) const JOURNAL: &str = "journal";
/// File name extension of a segment's records.
pub(crate) const RECORDS: &str = "log";
/// File name extension of a segment's offset index.
pub(crate) const OFFSET_INDEX: &str = "index";
/// File name extension of a segment's time index.
pub(crate) const TIME_INDEX: &str = "timeindex";
/// File name extension of a full segment's snapshot, which stands for a broker's producer state.
pub(crate) const SNAPSHOT: &str = "snapshot";

/// Name of the file that records the first sequence of a partition; replaced when segments are deleted.
pub(crate) const START: &str = "start-checkpoint";
/// Name of the file that records the next sequences of all partitions; replaced periodically.
pub(crate) const OFFSETS: &str = "offset-checkpoint";

/// Returns the directory of log `number` below `parent`.
pub(crate) fn log_directory(parent: &Path, number: u32) -> PathBuf {
    parent.join(format!("{number:06}"))
}

/// Returns the path of a segment's file with extension `kind`. `base` is the sequence of the segment's first record, or
/// its running number in a log of several partitions.
pub(crate) fn segment_path(directory: &Path, base: u64, kind: &str) -> PathBuf {
    directory.join(format!("{base:020}.{kind}"))
}

/// Base and length of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Sequence of the first record; in a log of several partitions, the running number of the segment.
    pub base: u64,
    /// Length of the records in bytes.
    pub bytes: u64,
}

/// The segments of one log.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Full segments, oldest first.
    pub full: VecDeque<Segment>,
    /// Total bytes of the full segments.
    pub full_bytes: u64,
    /// Active segment; its `bytes` are those acknowledged.
    pub active: Option<Segment>,
    /// Sequence of the next record to be acknowledged, where all records are of one partition.
    pub next_sequence: u64,
    /// In a log of several partitions to which nothing more is appended: each partition with the sequence after its
    /// last record.
    pub ended: Vec<(u32, u64)>,
}

/// Segments of all logs, shared between the appending threads and those that read.
pub(crate) struct Catalogue {
    directories: Vec<PathBuf>,
    logs: Vec<Mutex<Segments>>,
}

impl Catalogue {
    /// Creates a catalogue from the directories and segments of the logs, in order of log number.
    pub(crate) fn new(directories: Vec<PathBuf>, logs: Vec<Segments>) -> Self {
        Self { directories, logs: logs.into_iter().map(Mutex::new).collect() }
    }

    /// Returns the number of logs.
    pub(crate) fn count(&self) -> usize {
        self.logs.len()
    }

    /// Returns the directory of a log.
    pub(crate) fn directory(&self, log: usize) -> &Path {
        &self.directories[log]
    }

    /// Returns the offset checkpoint: for each log a line with its number and the sequence of the next record to be
    /// acknowledged.
    pub(crate) fn offsets(&self) -> String {
        (0..self.count()).map(|log| format!("{log} {}\n", self.segments(log).next_sequence)).collect()
    }

    /// Returns true while a log has a segment with this base. A segment leaves the catalogue before its files are
    /// deleted.
    pub(crate) fn holds(&self, log: usize, base: u64) -> bool {
        let segments = self.segments(log);
        segments.full.iter().chain(&segments.active).any(|segment| segment.base == base)
    }

    /// Locks and returns the segments of a log.
    pub(crate) fn segments(&self, log: usize) -> MutexGuard<'_, Segments> {
        self.logs[log].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the segments in a directory, oldest first, with the lengths of their files.
pub(crate) fn list(directory: &Path) -> Result<Vec<Segment>> {
    let mut segments = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(Error::file(directory, "list it"))? {
        let entry = entry.map_err(Error::file(directory, "list it"))?;
        let path = entry.path();
        let base = path.file_stem().and_then(|stem| stem.to_str()).and_then(|stem| stem.parse().ok());
        if let (Some(base), true) = (base, path.extension().is_some_and(|kind| kind == RECORDS)) {
            let bytes = entry.metadata().map_err(Error::file(path, "look at it"))?.len();
            segments.push(Segment { base, bytes });
        }
    }
    segments.sort_by_key(|segment| segment.base);
    Ok(segments)
}

/// Creates a directory and its parents.
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(Error::file(path, "make the directory"))
}

/// Syncs a directory, so that its new entries survive a crash.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    let opened = open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    fsync(opened.map_err(Error::file(path, "open it"))?).map_err(Error::file(path, "sync it"))
}
