//! Recovery of the logs that earlier engines of the same run left in a directory.

use crate::error::{Error, Result};
use crate::log::{AppendLog, LogLayout, LogState, WriteGroup};
use crate::segments::{OFFSET_INDEX, RECORDS, Segments, TIME_INDEX, list, make_directory, segment_path};
use cliffwatch_measure::record::{HEADER_BYTES, check};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Maximum number of damaged records at the end of a segment to attribute to a crash and discard.
const TORN_LIMIT: u32 = 4_096;

/// Recovers a log: truncates its last segment to the records that were written whole. Returns the log's segments and
/// the next sequence of each of `partitions`.
pub(crate) fn recover(
    shape: &LogLayout,
    number: u32,
    partitions: &[u32],
    record_bytes: Option<u32>,
) -> Result<(Segments, Vec<u64>)> {
    let directory = shape.directory(number);
    make_directory(&directory)?;
    let mut found = list(&directory)?;
    let mut sequences = vec![None; partitions.len()];
    let mut newest = true;
    for segment in found.iter_mut().rev() {
        let path = segment_path(&directory, segment.base, RECORDS);
        if newest {
            segment.bytes = whole_bytes(&path, record_bytes)?;
            let opened = File::options().write(true).open(&path);
            let cut = opened.and_then(|file| file.set_len(segment.bytes));
            cut.map_err(Error::file(&path, "cut it"))?;
            newest = segment.bytes == 0;
        }
        if let [sequence] = &mut sequences[..] {
            // The name of an empty segment is the sequence of the record that would have followed.
            let last = last_record(&path, segment.bytes, record_bytes)?;
            *sequence = Some(last.map_or(segment.base, |(_, last)| last.saturating_add(1)));
        } else {
            read_sequences(&path, partitions, &mut sequences)?;
        }
        if sequences.iter().all(Option::is_some) {
            break;
        }
    }
    for empty in found.iter().filter(|segment| segment.bytes == 0) {
        // Keep the empty file that is named by the next sequence: its name marks the segments before it as full, also
        // for another recovery before it is written.
        let is_next = sequences == [Some(empty.base)];
        for kind in [RECORDS, OFFSET_INDEX, TIME_INDEX] {
            if kind != RECORDS || !is_next {
                let _ = std::fs::remove_file(segment_path(&directory, empty.base, kind));
            }
        }
    }
    found.retain(|segment| segment.bytes > 0);
    let sequences: Vec<u64> = sequences.into_iter().map(Option::unwrap_or_default).collect();
    let full_bytes = found.iter().map(|segment| segment.bytes).sum();
    let next_sequence = if sequences.len() == 1 { sequences[0] } else { 0 };
    Ok((Segments { full: found.into(), full_bytes, active: None, next_sequence, ended: Vec::new() }, sequences))
}

/// Creates a log that continues after its recovered segments, with batches `first`, `first + stride` and so on.
pub(crate) fn append_log(
    number: u32,
    first: u64,
    stride: u64,
    partition: u32,
    sequences: Vec<u64>,
    catalogue: &Arc<crate::segments::Catalogue>,
) -> AppendLog {
    let base = catalogue.segments(number as usize).full.back().map_or(0, |segment| segment.base);
    AppendLog {
        number,
        next: first,
        stride,
        state: LogState::Idle,
        group: WriteGroup::default(),
        queued: false,
        file: None,
        base,
        length: 0,
        limit: 0,
        allocated: 0,
        tail: None,
        first_partition: partition,
        sequences,
        indexes: None,
        catalogue: Arc::clone(catalogue),
    }
}

/// Returns the bytes of a segment to keep: without torn records and unwritten space at its end; without a fixed record
/// length, up to the first byte that is not of a whole record.
fn whole_bytes(path: &Path, record_bytes: Option<u32>) -> Result<u64> {
    let length = std::fs::metadata(path).map_err(Error::file(path, "look at it"))?.len();
    let Some(record_bytes) = record_bytes.map(u64::from) else {
        let mut end = 0;
        crate::verify::each_record(path, length, |_, bytes| end += bytes as u64)?;
        return Ok(end);
    };
    // Records are contiguous, so a binary search finds the end of written places. A damaged record counts as written,
    // since the records after it have to be kept.
    let file = File::open(path).map_err(Error::file(path, "open it"))?;
    let is_there = |number: u64| {
        let mut header = [0; HEADER_BYTES];
        let read = file.read_exact_at(&mut header, number * record_bytes);
        read.is_ok() && header != [0; HEADER_BYTES]
    };
    let places = length / record_bytes;
    // If the last place is written, there is no preallocated space behind the records.
    let (mut whole, mut beyond) =
        if places > 0 && is_there(places - 1) { (places, places + 1) } else { (0, places + 1) };
    while whole + 1 < beyond {
        let middle = (whole + beyond) / 2;
        if is_there(middle - 1) { whole = middle } else { beyond = middle }
    }
    // A crash may have torn the last writes.
    let mut torn = 0;
    while whole > 0
        && torn < TORN_LIMIT
        && record_at(path, (whole - 1) * record_bytes, record_bytes as usize)?.is_none()
    {
        (whole, torn) = (whole - 1, torn + 1);
    }
    Ok(whole * record_bytes)
}

/// Returns partition and sequence of the last record, None if it is missing or damaged.
fn last_record(path: &Path, bytes: u64, record_bytes: Option<u32>) -> Result<Option<(u32, u64)>> {
    if let Some(record_bytes) = record_bytes.map(u64::from) {
        return if bytes < record_bytes {
            Ok(None)
        } else {
            record_at(path, bytes - record_bytes, record_bytes as usize)
        };
    }
    let mut last = None;
    crate::verify::each_record(path, bytes, |identity, _| last = Some((identity.partition, identity.sequence)))?;
    Ok(last)
}

fn record_at(path: &Path, offset: u64, record_bytes: usize) -> Result<Option<(u32, u64)>> {
    let mut bytes = vec![0; record_bytes];
    let file = File::open(path).map_err(Error::file(path, "open it"))?;
    if file.read_exact_at(&mut bytes, offset).is_err() {
        return Ok(None);
    }
    Ok(check(&bytes).ok().map(|(identity, _)| (identity.partition, identity.sequence)))
}

fn read_sequences(path: &Path, partitions: &[u32], sequences: &mut [Option<u64>]) -> Result<()> {
    let bytes = std::fs::metadata(path).map_err(Error::file(path, "look at it"))?.len();
    let mut found = vec![None; sequences.len()];
    crate::verify::each_record(path, bytes, |identity, _| {
        if let Some(place) = identity.partition.checked_sub(partitions[0])
            && let Some(next) = found.get_mut(place as usize)
        {
            *next = Some(identity.sequence.saturating_add(1));
        }
    })?;
    for (known, new) in sequences.iter_mut().zip(found) {
        *known = known.or(new);
    }
    Ok(())
}

/// Returns the directories of all logs of a layout.
pub(crate) fn directories(shape: &LogLayout, logs: u32) -> Vec<PathBuf> {
    (0..logs).map(|number| shape.directory(number)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use cliffwatch_measure::record::{Identity, seal};

    const RECORD_BYTES: usize = 64;

    fn records(count: u64) -> Vec<u8> {
        let mut bytes = vec![7; RECORD_BYTES * count as usize];
        for (sequence, record) in (0..).zip(bytes.chunks_mut(RECORD_BYTES)) {
            seal(record, &Identity { producer: 0, partition: 0, sequence, timestamp_microseconds: 1 });
        }
        bytes
    }

    fn whole(bytes: &[u8], record_bytes: Option<u32>) -> u64 {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), bytes).unwrap();
        whole_bytes(file.path(), record_bytes).unwrap()
    }

    #[test]
    fn what_follows_a_damaged_length_is_kept_wherever_it_is() {
        for damaged in 0..99 {
            let mut bytes = records(100);
            bytes[damaged * RECORD_BYTES + 4] ^= 1;
            assert_eq!(whole(&bytes, Some(64)), 6_400, "record {damaged}");
            bytes.resize(20_000, 0);
            assert_eq!(whole(&bytes, Some(64)), 6_400, "record {damaged}, and space allocated ahead");
        }
    }

    #[test]
    fn a_write_that_was_cut_short_is_cut_off_and_no_more() {
        for record_bytes in [Some(64), None] {
            for cut in 0..=640 {
                let mut bytes = records(10);
                bytes.truncate(cut);
                assert_eq!(whole(&bytes, record_bytes), cut as u64 / 64 * 64);
                bytes.resize(1_000, 0);
                assert_eq!(whole(&bytes, record_bytes), cut as u64 / 64 * 64, "with space allocated ahead");
            }
        }
    }

    #[test]
    fn recovering_twice_does_not_take_a_full_segment_for_the_last() {
        let parent = tempfile::tempdir().unwrap();
        let directory = parent.path().join("000000");
        std::fs::create_dir(&directory).unwrap();
        let mut full = records(10);
        full[3 * RECORD_BYTES + 40] ^= 1;
        std::fs::write(segment_path(&directory, 0, RECORDS), &full).unwrap();
        // The next segment was created, and not written to before the crash.
        std::fs::write(segment_path(&directory, 10, RECORDS), [0; 100]).unwrap();
        let shape = LogLayout::plain(parent.path());
        for _ in 0..2 {
            let (segments, next) = recover(&shape, 0, &[0], None).unwrap();
            assert_eq!((segments.full_bytes, next), (640, vec![10]), "what is damaged stays, to be found");
        }
    }
}
