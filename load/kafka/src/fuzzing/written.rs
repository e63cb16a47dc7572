//! Fuzz target for written batches: each is read back by our reader, by the consumer, and by the protocol library.

use std::sync::OnceLock;

use bytes::Bytes;
use cliffwatch_measure::fuzzing::Input;
use cliffwatch_measure::record::{Identity, check};
use kafka_protocol::messages::{ProduceRequest, RequestHeader};
use kafka_protocol::protocol::Decodable;

use crate::batch::compress::decompress;
use crate::batch::read::{ReceivedBatch, ReceivedRecord};
use crate::batch::write::{ANONYMOUS, Batch, ProducerIdentity, RecordTemplates, key_text};
use crate::config::Compression;
use crate::consumer::partition::{Contents, Expected, Partition};
use crate::wire::length;
use crate::wire::produce::{self, ProduceHead};

const LIMIT_BYTES: usize = 200_000;
/// Record sizes: the shortest, odd ones, varint limits, and one longer than a snappy block.
const SIZES_BYTES: [usize; 6] = [32, 33, 63, 1_000, 8_192, 40_000];
const COMPRESSIONS: [Compression; 5] =
    [Compression::None, Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

/// Record that was put into a batch, for comparison.
struct Put {
    size_bytes: usize,
    key: Option<u32>,
    identity: Identity,
}

/// Fuzzes batch writing: builds batches in one reused buffer as the input directs, and verifies each.
pub fn written_batches(input: &[u8]) {
    static TEMPLATES: OnceLock<[Option<RecordTemplates>; 2]> = OnceLock::new();
    let made = || [false, true].map(|keyed| RecordTemplates::new(&SIZES_BYTES, keyed, 0.5));
    let mut input = Input::new(input);
    let keyed = input.byte() & 1 != 0;
    let Some(templates) = &TEMPLATES.get_or_init(made)[usize::from(keyed)] else { return };
    let mut batch = Batch::new(LIMIT_BYTES);
    let mut partition = Partition::new(3, 0, 0);
    let (mut sequence, mut puts) = (0, Vec::new());
    while !input.is_over() {
        let said = input.byte();
        let shape = usize::from(said) % SIZES_BYTES.len();
        let is_full = batch.size_bytes() + templates.record_bytes_max(shape) > LIMIT_BYTES;
        if said < 0xe0 && !is_full {
            let key = keyed.then(|| input.word() % 100_000_000);
            let identity =
                Identity { producer: 7 << 8, partition: 3, sequence, timestamp_microseconds: input.word().into() };
            batch.push(templates, shape, key, &identity, identity.timestamp_microseconds);
            puts.push(Put { size_bytes: SIZES_BYTES[shape], key, identity });
            sequence += 1;
        } else if !puts.is_empty() {
            let compression = COMPRESSIONS[usize::from(said) % COMPRESSIONS.len()];
            let identity = ProducerIdentity { producer_id: input.long().cast_signed(), epoch: 1, sequence: 5 };
            let finished = batch.finish(identity, i64::from(input.word()), compression);
            assert!(finished.is_ok() && batch.count() == puts.len(), "{compression:?}: {finished:?}");
            read_again(batch.wire(), &puts, &mut partition);
            damage(batch.wire(), input.word() as usize, input.byte());
            ask(batch.wire(), input.byte());
            puts.clear();
            batch.clear();
        }
    }
}

fn read_again(wire: &[u8], puts: &[Put], partition: &mut Partition) {
    let mut rest = wire;
    let Some(Ok(batch)) = ReceivedBatch::take(&mut rest) else { return assert!(wire.is_empty(), "no batch") };
    assert!(rest.is_empty() && batch.is_intact() && batch.count as usize == puts.len());
    let mut unpacked = Vec::new();
    let mut records = batch.records();
    if batch.compression() != 0 {
        assert_eq!(decompress(batch.compression(), records, &mut unpacked), Ok(()));
        records = &unpacked;
    }
    for (place, put) in puts.iter().enumerate() {
        let Ok(record) = ReceivedRecord::take(&mut records) else { return assert!(records.is_empty(), "no record") };
        assert_eq!(
            (record.offset_delta, record.key),
            (i64::from(length(place)), put.key.map(key_text).as_ref().map(|key| &key[..]))
        );
        assert_eq!(record.value.map(check), Some(Ok((put.identity, put.size_bytes))));
    }
    assert!(records.is_empty(), "more records than were put in");
    let (mut room, mut contents) = (Vec::new(), Contents::default());
    partition.examine(&batch, 0, Expected { incarnation: Some(7) }, &mut room, &mut contents);
    assert_eq!(contents.due_microseconds.len(), puts.len());
    assert_eq!(contents.value_bytes as usize, puts.iter().map(|put| put.size_bytes).sum::<usize>());
    let faults = contents.reordered + contents.duplicated + contents.corrupted + contents.foreign;
    assert!(faults == 0 && !contents.is_damaged && partition.track.missing() == 0, "{contents:?}");
}

/// Asserts that a changed byte is detected, except in base offset and leader epoch, which the broker may change.
fn damage(wire: &[u8], at: usize, mask: u8) {
    let at = at % wire.len();
    let mut bytes = wire.to_vec();
    bytes[at] ^= mask;
    if let Some(Ok(batch)) = ReceivedBatch::take(&mut bytes.as_slice()) {
        let is_brokers = at < 8 || (12..16).contains(&at);
        assert_eq!(batch.is_intact(), mask == 0 || is_brokers, "byte {at}");
    }
}

/// Encodes a produce request with the batch and asserts that the library decodes it the same.
fn ask(wire: &[u8], version: u8) {
    let version = produce::VERSIONS.0 + i16::from(version) % (produce::VERSIONS.1 - produce::VERSIONS.0 + 1);
    let mut bytes = Vec::new();
    let mut head = ProduceHead::begin(&mut bytes, version, 9, "client", -1, 1_000);
    head.topic("topic");
    head.partition(4, wire.len());
    let total = head.end();
    bytes.extend_from_slice(wire);
    assert_eq!(bytes.len(), total);
    let mut rest = Bytes::from(bytes).slice(4..);
    let header = RequestHeader::decode(&mut rest, 1).map(|header| (header.request_api_version, header.correlation_id));
    assert_eq!(header.ok(), Some((version, 9)));
    let request = ProduceRequest::decode(&mut rest, version).ok();
    let data = request.as_ref().and_then(|request| request.topic_data.first()?.partition_data.first());
    let found = data.map(|data| (data.index, data.records.as_deref()));
    assert!(found == Some((4, Some(wire))) && rest.is_empty(), "the library reads another request");
}

/// Seed inputs: one batch of each compression type, as a producer writes it.
pub fn sample_batches() -> Vec<Vec<u8>> {
    let Some(templates) = RecordTemplates::new(&[40, 60], true, 0.5) else { return Vec::new() };
    let made = |compression| {
        let mut batch = Batch::new(LIMIT_BYTES);
        for sequence in 0..4 {
            let identity = Identity { producer: 7 << 8, partition: 0, sequence, timestamp_microseconds: 1 };
            batch.push(&templates, (sequence % 2) as usize, Some(5), &identity, 1);
        }
        let finished = batch.finish(ANONYMOUS, 0, compression);
        finished.map(|()| batch.wire().to_vec()).ok()
    };
    COMPRESSIONS.into_iter().filter_map(made).collect()
}
