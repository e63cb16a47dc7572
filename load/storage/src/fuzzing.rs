//! Fuzz targets: read-back and recovery of damaged logs.

use crate::claim::{MARKER, Marker};
use crate::error::Result;
use crate::log::LogLayout;
use crate::recover::recover;
use crate::segments::{LOG, RECORDS, log_directory, segment_path};
use crate::verify::{Extent, ReadBackReport, verify_directory, walk};
use cliffwatch_measure::fuzzing::Input;
use cliffwatch_measure::record::{HEADER_BYTES, Identity, check, seal};
use std::path::Path;
use std::time::Duration;

/// Maximum length in bytes of a segment after damage.
const SEGMENT_BYTES_MAX: usize = 1 << 14;
const PRODUCER: u32 = 0;

/// Properties of the damage done to a log.
#[derive(Default)]
struct Damage {
    /// True if nothing but zeros were appended to the last segment, as preallocation does: no damage.
    is_none: bool,
    /// True if nothing was done but to cut the last segment short.
    only_cut: bool,
    /// True if a record with a valid checksum was written into a segment.
    is_forged: bool,
}

/// Generated log: its marker and segments.
struct Written {
    marker: Marker,
    /// First sequence, or running number, of each segment, and its records.
    segments: Vec<(u64, Vec<u8>)>,
}

/// Fuzz target: damages a log in `directory` as `input` determines, then verifies and recovers it.
///
/// Panics unless visible damage is found, zeros behind the records are not taken for damage, recovery keeps at least
/// the whole records before the first damage, recovering again changes nothing, and the read size makes no difference.
pub fn segments(directory: &Path, input: &[u8]) {
    let mut input = Input::new(input);
    let mut log = write(&mut input);
    let last_before = log.segments.last().map_or_else(Vec::new, |(_, bytes)| bytes.clone());
    let damage = apply(&mut input, &mut log);
    assert!(examine(directory, &log, &damage, &last_before).is_ok(), "what can be read and written was refused");
}

/// Fuzz target: reads back a directory whose marker file holds `input`.
pub fn markers(directory: &Path, input: &[u8]) {
    let Ok(()) = std::fs::create_dir_all(log_directory(&directory.join(LOG), 0)) else { return };
    let _ = std::fs::write(segment_path(&log_directory(&directory.join(LOG), 0), 0, RECORDS), [0; 100]);
    let _ = std::fs::write(directory.join(MARKER), input);
    // Any result is right, as long as it comes soon and takes little memory.
    let _ = verify_directory(directory, everything());
}

fn write(input: &mut Input<'_>) -> Written {
    let options = input.byte();
    let shared = options & 1 != 0;
    let partitions = if shared { u32::from(options >> 1 & 3) + 1 } else { 1 };
    let record_bytes = (options & 8 != 0).then_some([32, 33, 64, 1024][usize::from(options >> 4 & 3)]);
    let first = if shared { 0 } else { u64::from(options >> 6) * 1_000 };
    let mut next = vec![first; partitions as usize];
    let mut segments = Vec::new();
    for place in 0..u64::from(input.byte() & 3) + 1 {
        let base = if shared { place } else { next[0] };
        let mut bytes = Vec::new();
        for _ in 0..input.byte() & 15 {
            let drawn = input.byte();
            let partition = u32::from(drawn) % partitions;
            let sequence = &mut next[partition as usize];
            let length = record_bytes.map_or(HEADER_BYTES + usize::from(drawn >> 2), |bytes| bytes as usize);
            append(&mut bytes, drawn, length, partition, *sequence);
            *sequence += 1;
        }
        // Skip an empty segment: it would not be rolled, and its successor would have the same name.
        if !bytes.is_empty() {
            segments.push((base, bytes));
        }
    }
    Written { marker: Marker { version: 1, partitions, shared, record_bytes }, segments }
}

fn append(bytes: &mut Vec<u8>, payload: u8, length: usize, partition: u32, sequence: u64) {
    let mut record = vec![payload; length];
    let identity = Identity { producer: PRODUCER, partition, sequence, timestamp_microseconds: sequence };
    seal(&mut record, &identity);
    bytes.extend_from_slice(&record);
}

fn apply(input: &mut Input<'_>, log: &mut Written) -> Damage {
    let count = log.segments.len();
    let mut damage = Damage { is_none: true, only_cut: true, is_forged: false };
    while !input.is_over() && count > 0 {
        let (kind, place) = (input.byte(), input.byte() as usize % count);
        let bytes = &mut log.segments[place].1;
        let at = input.below(bytes.len() + 1);
        let rest = bytes.len() - at;
        damage.is_none &= kind % 8 == 7 && place + 1 == count;
        damage.only_cut &= kind % 8 == 1 && place + 1 == count;
        match kind % 8 {
            0 if rest > 0 => bytes[at] ^= input.byte(),
            1 => bytes.truncate(at),
            2 => bytes[at..].iter_mut().take(input.byte().into()).for_each(|byte| *byte = 0),
            3 => {
                let most = input.byte();
                let written = input.bytes(usize::from(most).min(rest));
                bytes[at..at + written.len()].copy_from_slice(written);
            }
            4 => {
                let most = input.byte();
                bytes.splice(at..at, input.bytes(most.into()).iter().copied());
            }
            5 => {
                // Copies bytes elsewhere: whole records are repeated if position and length match theirs.
                let taken = bytes[at..].iter().take(input.short()).copied().collect::<Vec<_>>();
                let to = input.below(bytes.len() + 1);
                bytes.splice(to..to, taken);
            }
            6 => {
                let (length, partition, sequence) =
                    (HEADER_BYTES + usize::from(input.byte()), input.word(), input.long());
                let mut forged = Vec::new();
                append(&mut forged, kind, length, partition, sequence);
                bytes.splice(at..at + forged.len().min(rest), forged);
                damage.is_forged = true;
            }
            7 => bytes.resize(bytes.len() + input.short(), 0),
            _ => {}
        }
        bytes.truncate(SEGMENT_BYTES_MAX);
    }
    damage
}

fn everything() -> Extent {
    Extent { bytes: None, time: Duration::from_secs(3_600) }
}

fn examine(directory: &Path, log: &Written, damage: &Damage, last_before: &[u8]) -> Result<()> {
    let parent = directory.join(LOG);
    let place = log_directory(&parent, 0);
    let made = lay(directory, &place, log);
    assert!(made.is_ok(), "{made:?}");
    let report = verify_directory(directory, everything())?;
    check_report(&report, log, damage);
    for (base, bytes) in &log.segments {
        check_windows(&segment_path(&place, *base, RECORDS), bytes.len() as u64, log.marker.record_bytes)?;
    }
    let shape = LogLayout::plain(&parent);
    let partitions: Vec<u32> = (0..log.marker.partitions).collect();
    let (found, next) = recover(&shape, 0, &partitions, log.marker.record_bytes)?;
    assert_eq!(found.full_bytes, found.full.iter().map(|segment| segment.bytes).sum::<u64>());
    let kept = |base: u64| found.full.iter().find(|segment| segment.base == base).map_or(0, |segment| segment.bytes);
    for (base, bytes) in &log.segments {
        let path = segment_path(&place, *base, RECORDS);
        let there = std::fs::read(&path).unwrap_or_default();
        assert_eq!(there.len() as u64, kept(*base), "a segment is not as long as recovery says");
        assert!(bytes.starts_with(&there), "recovery changed what it kept");
    }
    if let Some((base, bytes)) = log.segments.last() {
        let same = bytes.iter().zip(last_before).take_while(|(now, before)| now == before).count();
        let whole = whole_records(&bytes[..same], log.marker.record_bytes);
        assert!(kept(*base) >= whole as u64, "recovery took away {whole} bytes of whole records");
    }
    let (again, next_again) = recover(&shape, 0, &partitions, log.marker.record_bytes)?;
    let (then, now) = ((again.full, next_again), (found.full.clone(), next.clone()));
    assert_eq!(then, now, "recovering again changes something");
    if damage.is_none || damage.only_cut {
        let clean = verify_directory(directory, everything())?;
        assert!(clean.findings.are_clean() && clean.complete, "a log that was cut off and recovered: {clean:?}");
    }
    if !log.marker.shared && !damage.is_forged {
        let last = found.full.back().map_or(0, |segment| segment.base);
        assert!(next[0] >= last, "sequences are given again");
    }
    Ok(())
}

/// Writes the log and its marker, replacing the files of an earlier input.
fn lay(directory: &Path, place: &Path, log: &Written) -> std::io::Result<()> {
    std::fs::create_dir_all(place)?;
    for entry in std::fs::read_dir(place)? {
        std::fs::remove_file(entry?.path())?;
    }
    for (base, bytes) in &log.segments {
        std::fs::write(segment_path(place, *base, RECORDS), bytes)?;
    }
    std::fs::write(directory.join(MARKER), serde_json::to_vec(&log.marker)?)
}

fn check_report(report: &ReadBackReport, log: &Written, damage: &Damage) {
    let all: usize = log.segments.iter().map(|(_, bytes)| bytes.len()).sum();
    assert!(report.complete && report.bytes == all as u64 && report.segments == log.segments.len() as u64);
    assert!(report.findings.intact <= (all / HEADER_BYTES) as u64, "{report:?}: records come from nowhere");
    if damage.is_none {
        assert!(report.findings.are_clean(), "what nothing was done to is called damaged: {report:?}");
    }
    if report.findings.are_clean() {
        assert!(is_faultless(log), "damaged, and called clean: {report:?}");
    }
}

/// Returns true if the log consists of whole records in sequence, and zeros.
fn is_faultless(log: &Written) -> bool {
    let mut next: Vec<((u32, u32), u64)> = Vec::new();
    if let (false, Some((base, _))) = (log.marker.shared, log.segments.first()) {
        next.push(((PRODUCER, 0), *base));
    }
    for (_, bytes) in &log.segments {
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let place = log.marker.record_bytes.map_or(rest.len(), |bytes| rest.len().min(bytes as usize));
            let Ok((identity, length)) = check(&rest[..place]) else {
                if rest[0] != 0 {
                    return false;
                }
                rest = &rest[1..];
                continue;
            };
            if log.marker.record_bytes.is_some_and(|bytes| bytes as usize != length) {
                return false;
            }
            let stream = (identity.producer, identity.partition);
            match next.iter_mut().find(|(known, _)| *known == stream) {
                Some((_, awaited)) if *awaited != identity.sequence => return false,
                Some((_, awaited)) => *awaited = awaited.saturating_add(1),
                None if log.marker.shared => next.push((stream, identity.sequence.saturating_add(1))),
                None => return false,
            }
            rest = &rest[length..];
        }
    }
    true
}

/// Returns the bytes of the whole records at the beginning of `bytes`.
fn whole_records(bytes: &[u8], record_bytes: Option<u32>) -> usize {
    let mut at = 0;
    while let Ok((_, length)) = check(&bytes[at..]) {
        if record_bytes.is_some_and(|bytes| bytes as usize != length) {
            break;
        }
        at += length;
    }
    at
}

/// Asserts that `walk` finds the same for any read size.
fn check_windows(path: &Path, bytes: u64, record_bytes: Option<u32>) -> Result<()> {
    let mut found = Vec::new();
    walk(path, bytes, record_bytes, 1 << 20, |record| found.push(record))?;
    for at_once in [HEADER_BYTES, 100] {
        let mut others = found.iter();
        walk(path, bytes, record_bytes, at_once, |record| {
            assert_eq!(Some(&record), others.next(), "{at_once} bytes at once");
        })?;
        assert!(others.next().is_none(), "{at_once} bytes at once");
    }
    Ok(())
}
