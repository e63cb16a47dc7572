//! Fuzz targets for received record batches, including malformed content with a valid CRC.

use cliffwatch_measure::fuzzing::Input;

use crate::batch::compress::{DECOMPRESSED_MAX, compress};
use crate::batch::read::ReceivedBatch;
use crate::batch::{CRC_AT, CRC_FROM, HEADER, LENGTH_FROM};
use crate::config::Compression;
use crate::consumer::partition::{Contents, Expected, Partition};
use crate::wire::length;

/// Fuzzes record batches. Input: a byte of options, the offset to read from, the batches.
pub fn batches(input: &[u8]) {
    let mut input = Input::new(input);
    let options = input.byte();
    let from = input.long().cast_signed();
    let mut bytes = input.rest().to_vec();
    if options & 1 != 0 {
        // With valid checksums, so that the content is parsed too.
        seal_all(&mut bytes);
    }
    examine(&bytes, from, expected(options));
}

/// Fuzzes one compressed batch. Input: a byte of options, base offset, record count, and the records, either compressed
/// already or to be compressed here.
pub fn compressed_batches(input: &[u8]) {
    let mut input = Input::new(input);
    let options = input.byte();
    let (base_offset, count) = (input.long() >> 2, input.word() >> 1);
    let records = input.rest();
    if options & 1 == 0 {
        examine(&batch(base_offset, i16::from(options >> 2 & 7), count, records), 0, expected(options));
        return;
    }
    let kinds = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];
    let kind = kinds[usize::from(options >> 2 & 3)];
    let mut packed = Vec::new();
    if compress(kind, records, &mut packed).is_ok() {
        let room = examine(&batch(base_offset, kind.bits(), count, &packed), 0, expected(options));
        assert_eq!(room, records, "other records than were compressed");
    }
}

fn expected(options: u8) -> Expected {
    Expected { incarnation: (options & 0x80 != 0).then_some(0) }
}

fn batch(base_offset: u64, attributes: i16, count: u32, records: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes.extend_from_slice(records);
    let after = length(bytes.len() - LENGTH_FROM);
    bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
    bytes[8..LENGTH_FROM].copy_from_slice(&after.to_be_bytes());
    bytes[16] = 2;
    bytes[CRC_FROM..23].copy_from_slice(&attributes.to_be_bytes());
    bytes[23..27].copy_from_slice(&count.saturating_sub(1).to_be_bytes());
    bytes[57..HEADER].copy_from_slice(&count.to_be_bytes());
    seal_all(&mut bytes);
    bytes
}

/// Writes the correct CRC into every batch that can be found.
fn seal_all(bytes: &mut [u8]) {
    let mut rest = bytes;
    while let Some(&field) = rest.get(8..LENGTH_FROM).and_then(|field| field.first_chunk()) {
        let end = usize::try_from(i32::from_be_bytes(field)).map_or(0, |after| after + LENGTH_FROM);
        if end < HEADER || end > rest.len() {
            return;
        }
        let (batch, others) = rest.split_at_mut(end);
        let checksum = crc32c::crc32c(&batch[CRC_FROM..]);
        batch[CRC_AT..CRC_FROM].copy_from_slice(&checksum.to_be_bytes());
        rest = others;
    }
}

/// Reads batches as a consumer does and checks invariants; returns the decompression buffer, with the last compressed
/// batch's records.
fn examine(mut bytes: &[u8], from: i64, expected: Expected) -> Vec<u8> {
    let mut partition = Partition::new(0, 0, 0);
    let (mut room, mut contents) = (Vec::new(), Contents::default());
    let all = bytes.len();
    let mut walked = 0;
    while let Some(Ok(batch)) = ReceivedBatch::take(&mut bytes) {
        walked += HEADER + batch.records().len();
        assert_eq!(walked + bytes.len(), all, "batches do not follow each other");
        assert!(batch.next_offset >= batch.base_offset, "offsets go back");
        let before = partition.track.found;
        partition.examine(&batch, from, expected, &mut room, &mut contents);
        let (found, ours) = (partition.track.found, contents.due_microseconds.len() as u64);
        assert!(room.len() < DECOMPRESSED_MAX, "more than what a batch may hold");
        assert_eq!(found.read - before.read, ours);
        assert!(ours + contents.foreign + contents.corrupted <= u64::try_from(batch.count).unwrap_or(0) || ours == 0);
        assert!(contents.value_bytes as usize <= room.len().max(batch.records().len()));
        if !batch.is_control() && !batch.is_intact() {
            assert!(contents.is_damaged && ours == 0, "a damaged batch was read");
        }
    }
    room
}
