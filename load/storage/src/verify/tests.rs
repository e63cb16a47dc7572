use super::*;
use cliffwatch_measure::record::seal;

const RECORD_BYTES: usize = 1024;

/// Returns the findings for a log of one partition with two records, damaged by `damage`; `record_bytes` is the
/// marker's.
fn verified(record_bytes: Option<u32>, damage: impl FnOnce(&mut Vec<u8>)) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    let log = log_directory(&directory.path().join(LOG), 0);
    std::fs::create_dir_all(&log).unwrap();
    let mut bytes = Vec::new();
    for sequence in 0..2 {
        let mut record = vec![7; RECORD_BYTES];
        seal(&mut record, &Identity { producer: 0, partition: 0, sequence, timestamp_microseconds: 1 });
        bytes.extend_from_slice(&record);
    }
    damage(&mut bytes);
    std::fs::write(segment_path(&log, 0, RECORDS), bytes).unwrap();
    let marker = Marker { version: 1, partitions: 1, shared: false, record_bytes };
    std::fs::write(directory.path().join(crate::claim::MARKER), serde_json::to_vec(&marker).unwrap()).unwrap();
    verify_directory(directory.path(), Extent { bytes: None, time: Duration::MAX / 4 }).unwrap().findings
}

/// Returns the findings for a catalogue of one log with three segments of two records each, after `spoil` was applied.
/// With `shared` the records are of two partitions.
fn verified_catalogue(shared: bool, spoil: impl FnOnce(&Path, &Catalogue)) -> Findings {
    let directory = tempfile::tempdir().unwrap();
    let log = log_directory(directory.path(), 0);
    std::fs::create_dir_all(&log).unwrap();
    let mut segments = Segments { next_sequence: 6, ..Segments::default() };
    for number in 0..3_u64 {
        let mut bytes = Vec::new();
        for sequence in 2 * number..2 * number + 2 {
            let (partition, sequence) = if shared { (sequence as u32 % 2, sequence / 2) } else { (0, sequence) };
            let mut record = vec![7; RECORD_BYTES];
            seal(&mut record, &Identity { producer: 0, partition, sequence, timestamp_microseconds: 1 });
            bytes.extend_from_slice(&record);
        }
        let base = if shared { number } else { 2 * number };
        std::fs::write(segment_path(&log, base, RECORDS), &bytes).unwrap();
        segments.full.push_back(Segment { base, bytes: bytes.len() as u64 });
    }
    if shared {
        segments.ended = vec![(0, 3), (1, 3)];
    }
    let catalogue = Catalogue::new(vec![log.clone()], vec![segments]);
    spoil(&log, &catalogue);
    let extent = Extent { bytes: None, time: Duration::MAX / 4 };
    verify(&catalogue, shared, Some(RECORD_BYTES as u32), extent).unwrap().findings
}

#[test]
fn what_is_read_back_is_the_drive_s_also_where_it_was_not_synced() {
    let (mut buffer, mut found) = ([0; 16], None);
    verified_catalogue(false, |log, catalogue| {
        verify(catalogue, false, Some(RECORD_BYTES as u32), Extent { bytes: None, time: Duration::MAX / 4 }).unwrap();
        let file = File::open(segment_path(log, 0, RECORDS)).unwrap();
        let buffers = &mut [std::io::IoSliceMut::new(&mut buffer)];
        found = Some(rustix::io::preadv2(&file, buffers, 0, rustix::io::ReadWriteFlags::NOWAIT));
    });
    // A read that must not wait would succeed if the page cache still held the data.
    assert_eq!(found, Some(Err(rustix::io::Errno::AGAIN)));
}

#[test]
fn a_segment_that_is_gone_though_it_has_not_expired_is_lost() {
    for (base, intact) in [(0, 4), (2, 4), (4, 4)] {
        let findings =
            verified_catalogue(false, |log, _| std::fs::remove_file(segment_path(log, base, RECORDS)).unwrap());
        assert_eq!(findings, Findings { intact, lost: 2, ..Findings::default() }, "segment {base}");
    }
}

#[test]
fn a_segment_that_expires_while_it_is_read_is_not_lost() {
    let findings = verified_catalogue(false, |log, catalogue| {
        // Retention deletes a segment that a read-back in progress has listed.
        let reading = reading_of(&catalogue.segments(0), Some(0));
        catalogue.segments(0).full.pop_front();
        std::fs::remove_file(segment_path(log, 0, RECORDS)).unwrap();
        let mut report = ReadBackReport::default();
        let until = Instant::now() + Duration::from_secs(60);
        read_log(&Source { catalogue, log: 0, record_bytes: Some(1024), until }, &reading, &mut report).unwrap();
        assert_eq!(report.findings, Findings { intact: 4, ..Findings::default() });
    });
    assert_eq!(findings, Findings { intact: 4, ..Findings::default() });
}

#[test]
fn the_end_of_a_log_that_partitions_share_is_known_once_it_is_complete() {
    let cut = |bytes: u64| {
        verified_catalogue(true, |log, catalogue| {
            let path = segment_path(log, 2, RECORDS);
            let file = std::fs::OpenOptions::new().write(true).open(path).unwrap();
            file.set_len(bytes).unwrap();
            drop(file);
            assert!(catalogue.holds(0, 2));
        })
    };
    assert_eq!(cut(2 * RECORD_BYTES as u64), Findings { intact: 6, ..Findings::default() });
    assert_eq!(cut(RECORD_BYTES as u64), Findings { intact: 5, lost: 1, ..Findings::default() });
    assert_eq!(cut(0), Findings { intact: 4, lost: 2, ..Findings::default() });
}

#[test]
fn a_last_record_whose_length_became_0_is_damaged() {
    // A length of 1024 is a single bit; with that cleared, the length is 0.
    let findings = verified(Some(1024), |bytes| bytes[RECORD_BYTES + 5] = 0);
    assert_eq!(findings, Findings { intact: 1, corrupted: 1, ..Findings::default() });
}

#[test]
fn a_last_record_whose_header_was_wiped_out_is_damaged() {
    for record_bytes in [Some(1024), None] {
        let findings = verified(record_bytes, |bytes| bytes[RECORD_BYTES..][..512].fill(0));
        assert_eq!(findings, Findings { intact: 1, corrupted: 1, ..Findings::default() });
    }
}

#[test]
fn space_that_was_allocated_ahead_is_not_damaged_wherever_it_ends() {
    for record_bytes in [Some(1024), None] {
        let findings = verified(record_bytes, |bytes| bytes.resize(4 * RECORD_BYTES + 7, 0));
        assert_eq!(findings, Findings { intact: 2, ..Findings::default() });
    }
}
