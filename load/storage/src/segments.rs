//! Segments of the logs: which there are, and the names of their files.

use crate::error::{Error, Result};
use rustix::fs::{Mode, OFlags, fsync, open};
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The part of a directory that holds segments.
pub(crate) const LOG: &str = "log";
/// The part that holds a journal.
pub(crate) const JOURNAL: &str = "journal";
/// A segment's records.
pub(crate) const RECORDS: &str = "log";
/// A segment's offset index.
pub(crate) const OFFSET_INDEX: &str = "index";
/// A segment's time index.
pub(crate) const TIME_INDEX: &str = "timeindex";
/// What a broker knew of its producers when a segment was full.
pub(crate) const SNAPSHOT: &str = "snapshot";

/// Where the first sequence of a partition is noted when segments are deleted.
pub(crate) const START: &str = "start-checkpoint";
/// Where the offsets of all partitions are noted now and then.
pub(crate) const OFFSETS: &str = "offset-checkpoint";

/// The directory of log `number` below `parent`.
pub(crate) fn log_directory(parent: &Path, number: u32) -> PathBuf {
    parent.join(format!("{number:06}"))
}

/// The file of a segment whose first record, or place in order, is `base`.
pub(crate) fn segment_path(directory: &Path, base: u64, kind: &str) -> PathBuf {
    directory.join(format!("{base:020}.{kind}"))
}

/// A full segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Segment {
    /// Its first record's sequence; in a log of many partitions, its place in order.
    pub base: u64,
    /// The length of its records.
    pub bytes: u64,
}

/// The segments of one log.
#[derive(Debug, Default)]
pub(crate) struct Segments {
    /// Full ones, oldest first.
    pub full: VecDeque<Segment>,
    /// Their bytes.
    pub full_bytes: u64,
    /// The active one: `bytes` of it were acknowledged.
    pub active: Option<Segment>,
    /// The sequence of the next record to be acknowledged, where all records are of one partition.
    pub next_sequence: u64,
    /// Where all records are not of one partition, and nothing more is appended: each partition with the sequence after
    /// its last record.
    pub ended: Vec<(u32, u64)>,
}

/// The segments of every log, for those who read them while they are written.
pub(crate) struct Catalogue {
    directories: Vec<PathBuf>,
    logs: Vec<Mutex<Segments>>,
}

impl Catalogue {
    /// Logs whose directories these are.
    pub(crate) fn new(directories: Vec<PathBuf>, logs: Vec<Segments>) -> Self {
        Self { directories, logs: logs.into_iter().map(Mutex::new).collect() }
    }

    /// How many logs there are.
    pub(crate) fn count(&self) -> usize {
        self.logs.len()
    }

    /// The directory of a log.
    pub(crate) fn directory(&self, log: usize) -> &Path {
        &self.directories[log]
    }

    /// A line for each log: its number and the sequence of the next record to be acknowledged.
    pub(crate) fn offsets(&self) -> String {
        (0..self.count()).map(|log| format!("{log} {}\n", self.segments(log).next_sequence)).collect()
    }

    /// True while a log has a segment with this base: its files are deleted only after it was taken out.
    pub(crate) fn holds(&self, log: usize, base: u64) -> bool {
        let segments = self.segments(log);
        segments.full.iter().chain(&segments.active).any(|segment| segment.base == base)
    }

    /// The segments of a log.
    pub(crate) fn segments(&self, log: usize) -> MutexGuard<'_, Segments> {
        self.logs[log].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The segments in a directory, oldest first, as long as their files are.
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

/// Makes a directory, and those above it.
pub(crate) fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(Error::file(path, "make the directory"))
}

/// Syncs a directory, so that what was made in it is there after a crash.
pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    let opened = open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty());
    fsync(opened.map_err(Error::file(path, "open it"))?).map_err(Error::file(path, "sync it"))
}
