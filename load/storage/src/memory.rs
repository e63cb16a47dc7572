//! Budget of memory, open files and space on the volume, checked before the start.

use crate::buffers::{BLOCK_BYTES, Buffers};
use crate::config::{Config, Layout, Retention};
use crate::encode::{BatchEncoder, slot_bytes};
use crate::error::{Error, Result};
use crate::figures::NAMES;
use crate::files::FileTask;
use crate::io::IoMethod;
use crate::log::AppendLog;
use rustix::fs::statvfs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Bytes of a histogram with the range and precision of those in windows.
const HISTOGRAM_BYTES: usize = 192 * 1024;
/// Bytes for the program itself, its stacks and the overhead of its allocator.
const PROGRAM_BYTES: usize = 12 << 20;
/// Bytes that the kernel takes for each request in an io_uring ring.
const REQUEST_BYTES: usize = 256;
/// Bytes read at once when records are read back.
pub(crate) const READ_BACK_BYTES: usize = 1 << 20;
/// Allowance for open files other than those of logs, background threads and consumers.
const OTHER_FILES: u64 = 64;
/// Maximum number of full segments that wait to be closed, if there are as many logs.
const WAITING_SEGMENTS: usize = 1024;
/// Open files of a background thread: a segment, the files beside it and their directory.
const BACKGROUND_FILES: usize = 4;

/// Resources that a load takes.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// Number of buffers of each thread.
    pub buffers: usize,
    /// Maximum bytes of all segments of all partitions.
    pub retention_bytes: u64,
    /// Bytes of memory by purpose.
    pub memory: Vec<(&'static str, usize)>,
    /// Number of files open at once.
    pub open_files: u64,
}

impl Budget {
    /// Computes the resources that `config` needs; `own_bytes` are bytes of the load already on the volume. Fails if
    /// memory, space or open files do not suffice. Raises the limit of open files if necessary.
    pub(crate) fn count(config: &Config, own_bytes: u64) -> Result<Self> {
        let retention_bytes = retention_bytes(config, own_bytes)?;
        let buffers = buffers(config)?;
        let mut budget = Self { buffers, retention_bytes, memory: Vec::new(), open_files: 0 };
        budget.memory = budget.memory_of(config);
        budget.check_memory(config)?;
        let closing = config.log.background_threads as usize * (queued_tasks(config) + BACKGROUND_FILES);
        budget.open_files = u64::from(config.logs()) + closing as u64 + OTHER_FILES + u64::from(config.readers.tailing);
        allow_open_files(budget.open_files)?;
        Ok(budget)
    }

    /// Returns the total memory in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.memory.iter().map(|(_, bytes)| bytes).sum()
    }

    fn memory_of(&self, config: &Config) -> Vec<(&'static str, usize)> {
        let (threads, logs) = (config.threads as usize, config.logs() as usize);
        let chunk_bytes = config.log.chunk_bytes as usize;
        let buffers = threads * Buffers::memory_bytes(self.buffers, chunk_bytes, slot_bytes(config, chunk_bytes));
        let readers = config.readers.tailing as usize + usize::from(config.readers.catch_up_bytes_per_second > 0.0);
        let tallies = threads + readers + 2;
        let blocks = config.fixed_record().is_some_and(|bytes| {
            (u64::from(bytes) * u64::from(config.batch_records)).is_multiple_of(BLOCK_BYTES as u64)
        });
        let tails = if config.log.direct && !blocks { logs * (BLOCK_BYTES + 16) } else { 0 };
        let waiting = config.log.background_threads as usize * queued_tasks(config);
        let indexes = if config.log.index_interval_bytes > 0 { (logs + waiting) * (2 * BLOCK_BYTES + 512) } else { 0 };
        let sequences = if config.log.layout == Layout::Shared { 2 * 8 * config.partitions as usize } else { 0 };
        let segments = (self.retention_bytes / config.log.segment_bytes) as usize * 2 * 32;
        let requests = if config.io == IoMethod::IoUring {
            threads * (self.buffers + logs / threads).min(4096) * REQUEST_BYTES
        } else {
            0
        };
        vec![
            ("buffers", buffers),
            ("logs", logs * (size_of::<AppendLog>() + 512) + sequences),
            ("the last block of each log", tails),
            ("mapped pages of indexes", indexes),
            ("the list of segments", segments),
            ("segments to be closed", waiting * (size_of::<FileTask>() + 512)),
            ("histograms", tallies * NAMES.latencies.len() * HISTOGRAM_BYTES),
            ("requests", requests),
            ("payload to copy from", threads * BatchEncoder::memory_bytes(config, chunk_bytes)),
            ("reading", (readers + 1) * (config.readers.read_bytes as usize).max(READ_BACK_BYTES)),
            ("the program", PROGRAM_BYTES),
        ]
    }

    fn check_memory(&self, config: &Config) -> Result<()> {
        let total = self.memory_bytes();
        if total as u64 <= config.memory_bytes {
            return Ok(());
        }
        let items: Vec<String> =
            self.memory.iter().filter(|(_, bytes)| *bytes > 0).map(|(what, bytes)| format!("{what} {bytes}")).collect();
        let advice = format!(
            "the load needs {total} bytes ({}), and may take {}: allow it more, or take fewer partitions or buffers",
            items.join(" + "),
            config.memory_bytes
        );
        Err(Error::setting("memory_bytes", advice))
    }
}

/// Returns the queue length of each background thread in tasks: together about one full segment for each log, with a
/// limit.
pub(crate) fn queued_tasks(config: &Config) -> usize {
    (config.logs() as usize).min(WAITING_SEGMENTS).div_ceil(config.log.background_threads as usize)
}

/// Returns the maximum bytes of a journal with files of `segment_bytes`: the full file, its successor, and batches that
/// are not in the log yet (64 MiB).
pub(crate) fn journal_bytes(segment_bytes: u64) -> u64 {
    2 * segment_bytes + (64 << 20)
}

/// Returns the number of buffers of each thread; fails if they cannot hold a batch.
pub(crate) fn buffers(config: &Config) -> Result<usize> {
    let threads = config.threads as usize;
    let buffers = config.buffer_bytes as usize / threads / config.log.chunk_bytes as usize;
    let least = config.batch_bytes().div_ceil(u64::from(config.log.chunk_bytes)) as usize + 1;
    if buffers < least {
        let advice = format!(
            "{threads} threads need {least} chunks each; take {} or more",
            least * threads * config.log.chunk_bytes as usize
        );
        return Err(Error::setting("buffer_bytes", advice));
    }
    Ok(buffers)
}

fn retention_bytes(config: &Config, own_bytes: u64) -> Result<u64> {
    let volume = statvfs(&config.directory).map_err(Error::file(&config.directory, "look at its volume"))?;
    let (size, free) = (volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize + own_bytes);
    let bytes = match config.retention {
        Retention::Bytes(bytes) => bytes,
        Retention::Share(share) => (size as f64 * share) as u64,
    };
    let journal = config.journal.as_ref().filter(|_| config.journal_directory.is_none());
    let journal_bytes = journal.map_or(0, |journal| journal_bytes(journal.segment_bytes));
    if bytes + journal_bytes > free {
        let advice = format!(
            "{bytes} bytes of segments + {journal_bytes} of journals are more than the {free} that are free on the volume of \
             {size}: take less, or a larger volume"
        );
        return Err(Error::setting("retention", advice));
    }
    let logs = u64::from(config.logs());
    let each = bytes / logs;
    if each < 2 * config.log.segment_bytes {
        let advice = format!(
            "{bytes} bytes for {logs} logs are {each} each, and a log needs two segments of {}: keep {} or more, or take \
             smaller segments or fewer partitions",
            config.log.segment_bytes,
            2 * config.log.segment_bytes * logs
        );
        return Err(Error::setting("retention", advice));
    }
    Ok(bytes)
}

/// Raises the limit of open files to `needed` if it is lower; fails if that is not permitted.
fn allow_open_files(needed: u64) -> Result<()> {
    let limit = getrlimit(Resource::Nofile);
    if limit.current.is_none_or(|current| current >= needed) {
        return Ok(());
    }
    let maximum = limit.maximum.map(|maximum| maximum.max(needed));
    let raised = setrlimit(Resource::Nofile, Rlimit { current: Some(needed), maximum });
    raised.map_err(|_| {
        let most = limit.maximum.map_or_else(String::new, |most| format!(" of the {most} that are allowed"));
        let advice = format!("as many need {needed} open files{most}: raise the limit (ulimit -Hn), or take fewer");
        Error::setting("partitions", advice)
    })
}
