//! Reading records back: are all of them there, once, in order and unchanged?

use crate::error::{Error, Result};
use crate::files::{Catalogue, LOG, RECORDS, Segment, Segments, log_directory, segment_path};
use crate::memory::READ_BACK_BYTES;
use crate::recover::{Marker, list};
use cliffwatch_measure::record::{Fault, HEADER_BYTES, Identity, check, mix};
use cliffwatch_measure::verify::{Findings, Verifier};
use rustix::fs::{Advice, fadvise};
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::{Duration, Instant};

/// Logs that a sample is drawn from, where there are so many.
const SAMPLED_LOGS: u64 = 16;

/// How much is read back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extent {
    /// At most so many bytes, from logs and segments chosen by chance; all when None.
    pub bytes: Option<u64>,
    /// For at most so long.
    pub time: Duration,
}

/// What was read back and what was found.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub(crate) struct ReadBackReport {
    /// Bytes read.
    pub bytes: u64,
    /// Segments read.
    pub segments: u64,
    /// True when everything there was has been read.
    pub complete: bool,
    /// What became of the records.
    #[serde(flatten)]
    pub findings: Findings,
}

/// What is read of a log.
struct LogReading {
    segments: Vec<Segment>,
    /// Its own partition, where all records are of one.
    partition: Option<u32>,
    /// The sequence after its last record, where that is known.
    ends: Option<u64>,
}

/// Reads back what is in a catalogue, which may be written and expire meanwhile.
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
        read_log(catalogue.directory(log), &reading, record_bytes, begun + extent.time, &mut report)?;
        left = left.saturating_sub(report.bytes - before);
    }
    Ok(report)
}

/// Reads back what an engine left in a directory.
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
    let ends = (segments.next_sequence > 0 && partition.is_some()).then_some(segments.next_sequence);
    LogReading { segments: listed, partition, ends }
}

impl LogReading {
    /// Leaves neighbouring segments of about so many bytes, chosen by chance. True when others were left out.
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
            self.ends = None;
        }
        let cut = to - from < self.segments.len();
        self.segments = self.segments[from..to].to_vec();
        cut
    }
}

fn read_log(
    directory: &Path,
    reading: &LogReading,
    record_bytes: Option<u32>,
    until: Instant,
    report: &mut ReadBackReport,
) -> Result<()> {
    let mut verifier = Verifier::default();
    if let (Some(partition), Some(first)) = (reading.partition, reading.segments.first()) {
        verifier.begins((0, partition), first.base);
    }
    for segment in &reading.segments {
        if Instant::now() >= until {
            report.complete = false;
            report.findings.add(&verifier.findings());
            return Ok(());
        }
        let path = segment_path(directory, segment.base, RECORDS);
        if !path.exists() {
            // Retention was faster. What comes after it begins anew.
            report.findings.add(&verifier.findings());
            verifier = Verifier::default();
            continue;
        }
        report.bytes += segment.bytes;
        report.segments += 1;
        read_segment(&path, segment.bytes, record_bytes, reading.partition, &mut verifier)?;
    }
    if let (Some(partition), Some(ends)) = (reading.partition, reading.ends) {
        verifier.ends((0, partition), ends);
    }
    report.findings.add(&verifier.findings());
    Ok(())
}

fn read_segment(
    path: &Path,
    bytes: u64,
    record_bytes: Option<u32>,
    partition: Option<u32>,
    verifier: &mut Verifier,
) -> Result<()> {
    let stream = partition.map(|partition| (0, partition));
    let mut was_damaged = false;
    walk(path, bytes, record_bytes, |found| match found {
        Ok((identity, _)) => {
            was_damaged = false;
            let own = (identity.producer, identity.partition);
            if stream.is_some_and(|stream| stream != own) {
                verifier.corrupted(stream);
            } else {
                verifier.intact(own, identity.sequence);
            }
        }
        // Where nothing was written a record is missing, which its successor's sequence shows.
        Err(Fault::Empty) => {}
        Err(_) => {
            // Without a fixed length one damaged record is many places at which none begins.
            if record_bytes.is_some() || !was_damaged {
                verifier.corrupted(stream);
            }
            was_damaged = true;
        }
    })
}

/// Calls `found` with each whole record and its length, up to the first byte that is not of one.
pub(crate) fn each_record(path: &Path, bytes: u64, mut found: impl FnMut(Identity, usize)) -> Result<()> {
    let mut over = false;
    walk(path, bytes, None, |record| match record {
        Ok((identity, length)) if !over => found(identity, length),
        _ => over = true,
    })
}

/// Calls `found` with what is at each place where a record could begin.
fn walk(
    path: &Path,
    bytes: u64,
    record_bytes: Option<u32>,
    mut found: impl FnMut(std::result::Result<(Identity, usize), Fault>),
) -> Result<()> {
    let mut file = File::open(path).map_err(Error::file(path, "open it"))?;
    // From the drive, not from the page cache; where it cannot be had so, from where it is.
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    let mut window = vec![0; READ_BACK_BYTES.max(4 * record_bytes.unwrap_or(0) as usize)];
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
            // A record longer than what is read at once: make room for it.
            window.resize(2 * window.len(), 0);
        }
        window.copy_within(used..filled, 0);
        filled -= used;
    }
    let _ = fadvise(&file, 0, None, Advice::DontNeed);
    Ok(())
}

/// Looks at as many records as lie in `bytes` wholly; returns how many bytes it has dealt with.
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
                found(Err(Fault::Length));
            }
            return if last { bytes.len() } else { at };
        }
        if record_bytes.is_none() && !last {
            let length = u32::from_le_bytes([rest[4], rest[5], rest[6], rest[7]]) as usize;
            if length > rest.len() && length <= READ_BACK_BYTES * 64 {
                return at;
            }
        }
        let record = check(rest);
        at += record.as_ref().map_or(step, |(_, length)| record_bytes.map_or(*length, |bytes| bytes as usize));
        found(record);
    }
}
