//! Read-back verification: checks that all records are present, once, in order and unchanged.

use crate::claim::Marker;
use crate::error::{Error, Result};
use crate::memory::READ_BACK_BYTES;
use crate::segments::{Catalogue, LOG, RECORDS, Segment, Segments, list, log_directory, segment_path};
use cliffwatch_measure::record::{Fault, HEADER_BYTES, Identity, check, mix};
use cliffwatch_measure::verify::{Findings, Verifier};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Number of logs that a sample is spread over, if there are as many.
const SAMPLED_LOGS: u64 = 16;

/// Limits of a read-back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// Bytes to read, from randomly chosen logs and segments, rounded up to whole segments; None: all.
    pub bytes: Option<u64>,
    /// Time limit, checked before each segment.
    pub time: Duration,
}

/// Result of a read-back.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct ReadBackReport {
    /// Bytes read.
    pub bytes: u64,
    /// Segments read.
    pub segments: u64,
    /// True unless a limit left segments out.
    pub complete: bool,
    /// Numbers of intact, lost, duplicated, reordered and corrupted records.
    #[serde(flatten)]
    pub findings: Findings,
}

/// Plan for reading one log: its segments and the sequences to expect.
struct LogReading {
    segments: Vec<Segment>,
    /// Partition of all records; None in a log that partitions share.
    partition: Option<u32>,
    /// Partitions with the sequence after their last record, where known.
    ends: Vec<(u32, u64)>,
}

/// Log to read, length of its records, and deadline.
struct Source<'a> {
    catalogue: &'a Catalogue,
    log: usize,
    record_bytes: Option<u32>,
    until: Instant,
}

/// Reads back and verifies the records of a catalogue, whose segments may grow and expire meanwhile. Faults of records
/// are in the result; fails only on I/O errors.
pub(crate) fn verify(
    catalogue: &Catalogue,
    shared: bool,
    record_bytes: Option<u32>,
    extent: Extent,
) -> Result<ReadBackReport> {
    let begun = Instant::now();
    let logs = catalogue.count() as u64;
    let share = extent.bytes.map(|bytes| bytes / logs.clamp(1, SAMPLED_LOGS));
    let mut left = extent.bytes.unwrap_or(u64::MAX);
    let mut report = ReadBackReport { complete: true, ..ReadBackReport::default() };
    let mut places: Vec<usize> = (0..catalogue.count()).collect();
    if share.is_some() {
        let chance = std::process::id();
        places.sort_by_key(|&log| mix(log as u64 ^ u64::from(chance) << 32));
    }
    for log in places {
        let within = begun.elapsed() < extent.time;
        let mut reading = reading_of(&catalogue.segments(log), (!shared).then_some(log as u32));
        if left == 0 || !within {
            report.complete &= reading.segments.is_empty();
            continue;
        }
        if let Some(share) = share {
            report.complete &= !reading.cut(share, mix(log as u64));
        }
        let before = report.bytes;
        read_log(&Source { catalogue, log, record_bytes, until: begun + extent.time }, &reading, &mut report)?;
        left = left.saturating_sub(report.bytes - before);
    }
    Ok(report)
}

/// Reads back and verifies the directory that an engine left; fails if its marker file is missing or damaged.
pub(crate) fn verify_directory(directory: &Path, extent: Extent) -> Result<ReadBackReport> {
    let marker = Marker::read(directory)?;
    let parent = directory.join(LOG);
    let (mut directories, mut logs) = (Vec::new(), Vec::new());
    for number in 0..marker.logs() {
        let log = log_directory(&parent, number);
        let full = if log.exists() { list(&log)? } else { Vec::new() };
        logs.push(Segments { full: full.into(), ..Segments::default() });
        directories.push(log);
    }
    verify(&Catalogue::new(directories, logs), marker.shared, marker.record_bytes, extent)
}

fn reading_of(segments: &Segments, partition: Option<u32>) -> LogReading {
    let listed = segments.full.iter().copied().chain(segments.active).collect();
    let ends = match partition {
        Some(partition) if segments.next_sequence > 0 => vec![(partition, segments.next_sequence)],
        Some(_) => Vec::new(),
        None => segments.ended.clone(),
    };
    LogReading { segments: listed, partition, ends }
}

impl LogReading {
    /// Reduces the plan to adjacent segments of about `bytes` bytes in total, selected by `chance`. Returns true if
    /// other segments were left out.
    fn cut(&mut self, bytes: u64, chance: u64) -> bool {
        let total: u64 = self.segments.iter().map(|segment| segment.bytes).sum();
        if total <= bytes || self.segments.len() < 2 {
            return false;
        }
        let mut from = (chance % self.segments.len() as u64) as usize;
        let mut taken = self.segments[from].bytes;
        let mut to = from + 1;
        while taken < bytes && (to < self.segments.len() || from > 0) {
            if to < self.segments.len() {
                taken += self.segments[to].bytes;
                to += 1;
            } else {
                from -= 1;
                taken += self.segments[from].bytes;
            }
        }
        if to < self.segments.len() {
            self.ends.clear();
        }
        let cut = to - from < self.segments.len();
        self.segments = self.segments[from..to].to_vec();
        cut
    }
}

fn read_log(source: &Source, reading: &LogReading, report: &mut ReadBackReport) -> Result<()> {
    let directory = source.catalogue.directory(source.log);
    let mut verifier = Verifier::default();
    if let (Some(partition), Some(first)) = (reading.partition, reading.segments.first()) {
        verifier.begins((0, partition), first.base);
    }
    for (at, segment) in reading.segments.iter().enumerate() {
        if Instant::now() >= source.until {
            report.complete = false;
            report.findings.add(&verifier.findings());
            return Ok(());
        }
        let path = segment_path(directory, segment.base, RECORDS);
        match read_segment(&path, segment.bytes, source.record_bytes, reading.partition, &mut verifier) {
            Ok(()) => {
                report.bytes += segment.bytes;
                report.segments += 1;
            }
            Err(error) if path.exists() => return Err(error),
            Err(_) => {
                // The segment is missing: the following segments are verified as a new sequence.
                report.findings.add(&verifier.findings());
                verifier = Verifier::default();
                if source.catalogue.holds(source.log, segment.base) {
                    report.findings.lost += records_of(reading, at, source.record_bytes);
                }
            }
        }
    }
    for &(partition, sequence) in &reading.ends {
        verifier.ends((0, partition), sequence);
    }
    report.findings.add(&verifier.findings());
    Ok(())
}

/// Returns the number of records that a missing segment held, from the adjacent sequences or its length; if both are
/// unknown, 1, or 0 if it was empty.
fn records_of(reading: &LogReading, at: usize, record_bytes: Option<u32>) -> u64 {
    let segment = reading.segments[at];
    let next = reading.segments.get(at + 1).map(|next| next.base);
    let end = reading.partition.and_then(|_| next.or_else(|| reading.ends.first().map(|&(_, sequence)| sequence)));
    match (end, record_bytes) {
        (Some(end), _) => end.saturating_sub(segment.base),
        (None, Some(record_bytes)) => segment.bytes.div_ceil(u64::from(record_bytes)),
        (None, None) => segment.bytes.min(1),
    }
}

fn read_segment(
    path: &Path,
    bytes: u64,
    record_bytes: Option<u32>,
    partition: Option<u32>,
    verifier: &mut Verifier,
) -> Result<()> {
    // Sync first: only clean pages can be evicted from the page cache, so that the data is read from the drive.
    let file = File::open(path).map_err(Error::file(path, "open it"))?;
    file.sync_data().map_err(Error::file(path, "have the drive hold it"))?;
    let stream = partition.map(|partition| (0, partition));
    let mut was_damaged = false;
    walk(path, bytes, record_bytes, READ_BACK_BYTES, |found| match found {
        Ok((identity, _)) => {
            was_damaged = false;
            let own = (identity.producer, identity.partition);
            if stream.is_some_and(|stream| stream != own) {
                verifier.corrupted(stream);
            } else {
                verifier.intact(own, identity.sequence);
            }
        }
        // Unwritten space: a record missing here shows as a gap before its successor's sequence.
        Err(Fault::Empty) => {}
        Err(_) => {
            // Without a fixed length one damaged record yields a fault at each byte: count it once.
            if record_bytes.is_some() || !was_damaged {
                verifier.corrupted(stream);
            }
            was_damaged = true;
        }
    })
}

/// Calls `found` with each whole record and its length in bytes, up to the first byte that is not part of one.
pub(crate) fn each_record(path: &Path, bytes: u64, mut found: impl FnMut(Identity, usize)) -> Result<()> {
    let mut over = false;
    walk(path, bytes, None, READ_BACK_BYTES, |record| match record {
        Ok((identity, length)) if !over => found(identity, length),
        _ => over = true,
    })
}

/// Calls `found` with the record or fault at each position where a record could begin. Reads `at_once` bytes at a time,
/// or more if records are longer.
pub(crate) fn walk(
    path: &Path,
    bytes: u64,
    record_bytes: Option<u32>,
    at_once: usize,
    mut found: impl FnMut(std::result::Result<(Identity, usize), Fault>),
) -> Result<()> {
    let mut file = File::open(path).map_err(Error::file(path, "open it"))?;
    // Evict the file from the page cache, to read from the drive; where that fails, read from the cache.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    let at_once = at_once.max(4 * record_bytes.unwrap_or(0) as usize);
    let mut window = vec![0; at_once.min(usize::try_from(bytes).unwrap_or(at_once))];
    let (mut filled, mut left) = (0, bytes);
    while left > 0 || filled > 0 {
        let want = (window.len() - filled).min(usize::try_from(left).unwrap_or(usize::MAX));
        let got = file.read(&mut window[filled..filled + want]).map_err(Error::file(path, "read it"))?;
        left = if got == 0 { 0 } else { left - got as u64 };
        filled += got;
        let used = scan(&window[..filled], left == 0, record_bytes, &mut found);
        if used == 0 && left == 0 {
            break;
        }
        if used == 0 && filled == window.len() {
            // A record longer than the window: double the window.
            window.resize(2 * window.len(), 0);
        }
        window.copy_within(used..filled, 0);
        filled -= used;
    }
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Checks the records that lie wholly in `bytes`; with `last`, the rest, too. Returns the number of bytes consumed.
fn scan(
    bytes: &[u8],
    last: bool,
    record_bytes: Option<u32>,
    found: &mut impl FnMut(std::result::Result<(Identity, usize), Fault>),
) -> usize {
    let mut at = 0;
    let step = record_bytes.map_or(1, |bytes| bytes as usize);
    loop {
        let rest = &bytes[at..];
        let least = record_bytes.map_or(HEADER_BYTES, |bytes| bytes as usize);
        if rest.len() < least {
            if last && !rest.is_empty() {
                // Preallocated space need not end at a record boundary.
                found(Err(if is_zero(rest) { Fault::Empty } else { Fault::Length }));
            }
            return if last { bytes.len() } else { at };
        }
        if record_bytes.is_none() && !last {
            let length = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]) as usize;
            if length > rest.len() && length <= READ_BACK_BYTES * 64 {
                return at;
            }
        }
        let record = match check(record_bytes.map_or(rest, |_| &rest[..step])) {
            // A zeroed header with payload behind it is damage, not unwritten space.
            Err(Fault::Empty) if !is_zero(&rest[..step]) => Err(Fault::Checksum),
            Ok((_, length)) if record_bytes.is_some() && length != step => Err(Fault::Length),
            record => record,
        };
        at += record.as_ref().map_or(step, |(_, length)| record_bytes.map_or(*length, |bytes| bytes as usize));
        found(record);
    }
}

fn is_zero(bytes: &[u8]) -> bool {
    bytes.iter().all(|byte| *byte == 0)
}

#[cfg(test)]
mod tests;
