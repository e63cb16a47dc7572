//! Record batch builder with reusable buffers.
//!
//! A record whose size equals that of the record that the buffer held at this place needs only a new header: payload,
//! its checksum and framing stay. A record then costs a few dozen bytes of writing, and the CRC of the batch.

use cliffwatch_measure::record::{HEADER_BYTES, Identity, Sealer};

use super::compress::compress;
use super::{CRC_AT, CRC_FROM, HEADER, LENGTH_FROM, varint};
use crate::config::Compression;
use crate::wire::length;

/// Length of a key: decimal digits, padded with zeros.
pub(crate) const KEY_BYTES: usize = 8;
/// Largest framing of a record, in bytes, besides key and value.
const FRAMING_MAX: usize = 24;
/// Size of the pool from which payloads are copied, in bytes.
const POOL_BYTES: usize = 1 << 20;
/// Grain of the payload pool, in bytes: each has the configured share of random bytes, and so has every stretch.
const GRAIN_BYTES: usize = 64;

/// Template of a record: its size and the sealer of its header.
pub(crate) struct RecordTemplate {
    size_bytes: usize,
    sealer: Sealer,
}

/// Record templates of a producer, one for each configured size, and the pool of their payloads.
pub(crate) struct RecordTemplates {
    shapes: Vec<RecordTemplate>,
    keyed: bool,
    pool: Vec<u8>,
}

impl RecordTemplates {
    /// Templates for values of these sizes; None when one is shorter than a record's header or too long. `random_ratio`
    /// is the incompressible share of a payload.
    #[must_use]
    pub(crate) fn new(sizes_bytes: &[usize], keyed: bool, random_ratio: f64) -> Option<Self> {
        let shapes = sizes_bytes
            .iter()
            .map(|&size_bytes| {
                let sealer = Sealer::new(u32::try_from(size_bytes).ok()?)?;
                Some(RecordTemplate { size_bytes, sealer })
            })
            .collect::<Option<_>>()?;
        Some(Self { shapes, keyed, pool: payload_pool(random_ratio) })
    }

    /// Largest size of a record of this template within a batch, framing and key included, in bytes.
    #[must_use]
    pub(crate) fn record_bytes_max(&self, shape: usize) -> usize {
        self.shapes[shape].size_bytes + FRAMING_MAX + if self.keyed { KEY_BYTES } else { 0 }
    }
}

fn payload_pool(random_ratio: f64) -> Vec<u8> {
    let random = (GRAIN_BYTES as f64 * random_ratio).round() as usize;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut pool = vec![b'.'; POOL_BYTES];
    for grain in pool.chunks_mut(GRAIN_BYTES) {
        for byte in &mut grain[..random] {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            *byte = (state >> 32) as u8;
        }
    }
    pool
}

/// Position of a record in the buffer.
#[derive(Debug, Clone, Copy)]
struct Slot {
    shape: usize,
    key_at: usize,
    value_at: usize,
    end: usize,
    payload_checksum: u32,
}

/// Producer id, epoch and base sequence in a batch header; all -1 without idempotence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProducerIdentity {
    /// Producer id assigned by the broker.
    pub(crate) producer_id: i64,
    /// Producer epoch assigned by the broker.
    pub(crate) epoch: i16,
    /// Base sequence: the sequence number of the batch's first record, for this producer id and partition.
    pub(crate) sequence: i32,
}

/// Identity of batches without idempotence: all -1.
pub(crate) const ANONYMOUS: ProducerIdentity = ProducerIdentity { producer_id: -1, epoch: -1, sequence: -1 };

/// Record batch being filled, waiting or in flight.
pub(crate) struct Batch {
    bytes: Vec<u8>,
    slots: Vec<Slot>,
    packed: Vec<u8>,
    is_packed: bool,
    limit_bytes: usize,
    count: usize,
    /// Due time of each record, in nanoseconds since the epoch.
    pub(crate) due: Vec<u64>,
    /// Total value bytes of all records.
    pub(crate) value_bytes: u64,
    /// Verification sequence of the first record (not the one that the broker sees).
    pub(crate) first_sequence: u64,
}

impl Batch {
    /// Empty batch, whose buffer doubles as it fills, up to `limit_bytes` or the record that needs more.
    #[must_use]
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            bytes: vec![0; HEADER],
            slots: Vec::new(),
            packed: Vec::new(),
            is_packed: false,
            limit_bytes,
            count: 0,
            due: Vec::new(),
            value_bytes: 0,
            first_sequence: 0,
        }
    }

    /// Empties the batch for reuse; the records' payload and framing stay in the buffer.
    pub(crate) fn clear(&mut self) {
        self.count = 0;
        self.due.clear();
        self.value_bytes = 0;
        self.is_packed = false;
    }

    /// Number of records.
    #[must_use]
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Uncompressed size with the header, in bytes.
    #[must_use]
    pub(crate) fn size_bytes(&self) -> usize {
        match self.count {
            0 => HEADER,
            count => self.slots[count - 1].end,
        }
    }

    /// Appends a record that was due at `due` (nanoseconds since the epoch).
    pub(crate) fn push(
        &mut self,
        shapes: &RecordTemplates,
        shape: usize,
        key: Option<u32>,
        identity: &Identity,
        due: u64,
    ) {
        if self.slots.get(self.count).is_none_or(|slot| slot.shape != shape) {
            self.lay_out(shapes, shape);
        }
        let slot = self.slots[self.count];
        if let Some(key) = key {
            write_key(&mut self.bytes[slot.key_at..slot.key_at + KEY_BYTES], key);
        }
        if let Some(header) = self.bytes[slot.value_at..].first_chunk_mut::<HEADER_BYTES>() {
            shapes.shapes[shape].sealer.seal(header, identity, slot.payload_checksum);
        }
        if self.count == 0 {
            self.first_sequence = identity.sequence;
        }
        self.due.push(due);
        self.value_bytes += shapes.shapes[shape].size_bytes as u64;
        self.count += 1;
    }

    fn lay_out(&mut self, shapes: &RecordTemplates, shape: usize) {
        let begins = self.size_bytes();
        self.slots.truncate(self.count);
        self.bytes.truncate(begins);
        self.grow(begins + shapes.record_bytes_max(shape));
        let size_bytes = shapes.shapes[shape].size_bytes;
        let key_bytes = if shapes.keyed { KEY_BYTES } else { 0 };
        let key_length = if shapes.keyed { i64::from(length(KEY_BYTES)) } else { -1 };
        let (delta, value_length) = (i64::from(length(self.count)), i64::from(length(size_bytes)));
        let framing = 2 + varint::size(delta) + varint::size(key_length) + varint::size(value_length) + 1;
        varint::write(&mut self.bytes, i64::from(length(framing + key_bytes + size_bytes)));
        self.bytes.push(0);
        varint::write(&mut self.bytes, 0);
        varint::write(&mut self.bytes, delta);
        varint::write(&mut self.bytes, key_length);
        let key_at = self.bytes.len();
        self.bytes.resize(key_at + key_bytes, b'0');
        varint::write(&mut self.bytes, value_length);
        let value_at = self.bytes.len();
        self.bytes.resize(value_at + HEADER_BYTES, 0);
        // The offset depends on the position, so that payloads differ from record to record.
        let mut from = (begins.wrapping_mul(7919)) % POOL_BYTES;
        while self.bytes.len() < value_at + size_bytes {
            let piece = (value_at + size_bytes - self.bytes.len()).min(POOL_BYTES - from);
            self.bytes.extend_from_slice(&shapes.pool[from..from + piece]);
            from = 0;
        }
        let payload_checksum = Sealer::payload_checksum(&self.bytes[value_at + HEADER_BYTES..]);
        self.bytes.push(0);
        self.slots.push(Slot { shape, key_at, value_at, end: self.bytes.len(), payload_checksum });
    }

    fn grow(&mut self, needed: usize) {
        let held = self.bytes.capacity();
        if needed > held {
            let wanted = (2 * held).clamp(needed, self.limit_bytes.max(needed));
            self.bytes.reserve_exact(wanted - self.bytes.len());
        }
    }

    /// Compresses the records and writes the header, so that [`Batch::wire`] can be sent. `timestamp` is in
    /// milliseconds since the epoch. May be called again with another identity, without compressing again.
    ///
    /// # Errors
    /// Errors of the compression library.
    pub(crate) fn finish(
        &mut self,
        identity: ProducerIdentity,
        timestamp: i64,
        compression: Compression,
    ) -> std::io::Result<()> {
        let end = self.size_bytes();
        if compression != Compression::None {
            if !self.is_packed {
                self.packed.clear();
                self.packed.resize(HEADER, 0);
                compress(compression, &self.bytes[HEADER..end], &mut self.packed)?;
                self.is_packed = true;
            }
            write_header(&mut self.packed, identity, timestamp, self.count, compression);
        } else {
            write_header(&mut self.bytes[..end], identity, timestamp, self.count, compression);
        }
        Ok(())
    }

    /// Bytes to send: the finished batch.
    #[must_use]
    pub(crate) fn wire(&self) -> &[u8] {
        if self.is_packed { &self.packed } else { &self.bytes[..self.size_bytes()] }
    }

    /// Memory allocated, in bytes.
    #[must_use]
    pub(crate) fn memory_bytes(&self) -> usize {
        let slots = self.slots.capacity() * size_of::<Slot>() + self.due.capacity() * size_of::<u64>();
        self.bytes.capacity() + self.packed.capacity() + slots
    }
}

/// Writes a key as decimal digits, padded with zeros.
fn write_key(bytes: &mut [u8], key: u32) {
    let mut rest = key;
    for digit in bytes.iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
}

/// Key as records carry it: decimal digits, padded with zeros.
#[must_use]
pub(crate) fn key_text(key: u32) -> [u8; KEY_BYTES] {
    let mut text = [0; KEY_BYTES];
    write_key(&mut text, key);
    text
}

fn write_header(bytes: &mut [u8], identity: ProducerIdentity, timestamp: i64, count: usize, compression: Compression) {
    let count = length(count);
    let after = length(bytes.len() - LENGTH_FROM);
    bytes[0..8].copy_from_slice(&0_i64.to_be_bytes());
    bytes[8..12].copy_from_slice(&after.to_be_bytes());
    bytes[12..16].copy_from_slice(&(-1_i32).to_be_bytes());
    bytes[16] = 2;
    bytes[21..23].copy_from_slice(&compression.bits().to_be_bytes());
    bytes[23..27].copy_from_slice(&(count - 1).to_be_bytes());
    bytes[27..35].copy_from_slice(&timestamp.to_be_bytes());
    bytes[35..43].copy_from_slice(&timestamp.to_be_bytes());
    bytes[43..51].copy_from_slice(&identity.producer_id.to_be_bytes());
    bytes[51..53].copy_from_slice(&identity.epoch.to_be_bytes());
    bytes[53..57].copy_from_slice(&identity.sequence.to_be_bytes());
    bytes[57..61].copy_from_slice(&count.to_be_bytes());
    let checksum = crc32c::crc32c(&bytes[CRC_FROM..]);
    bytes[CRC_AT..CRC_FROM].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::super::compress::decompress;
    use super::super::read;
    use super::*;
    use cliffwatch_measure::record;

    const LIMIT_BYTES: usize = 100_000;

    fn identity(sequence: u64) -> Identity {
        Identity { producer: 7, partition: 3, sequence, timestamp_microseconds: 1_790_000_000_000_000 + sequence }
    }

    fn contents(wire: &[u8]) -> Vec<(Option<Vec<u8>>, Identity, usize)> {
        let mut rest = wire;
        let batch = read::ReceivedBatch::take(&mut rest).unwrap().unwrap();
        assert!(rest.is_empty() && batch.is_intact());
        let mut unpacked = Vec::new();
        let mut records = match batch.compression() {
            0 => batch.records(),
            bits => {
                decompress(bits, batch.records(), &mut unpacked).unwrap();
                &unpacked
            }
        };
        let mut found = Vec::new();
        while !records.is_empty() {
            let one = read::ReceivedRecord::take(&mut records).unwrap();
            assert_eq!(one.offset_delta, i64::from(length(found.len())));
            let value = one.value.unwrap();
            found.push((one.key.map(<[u8]>::to_vec), record::check(value).unwrap().0, value.len()));
        }
        assert_eq!(batch.count as usize, found.len());
        found
    }

    #[test]
    fn a_buffer_that_is_used_again_holds_only_what_was_put_in_last() {
        let shapes = RecordTemplates::new(&[1024, 40], true, 1.0).unwrap();
        let mut batch = Batch::new(LIMIT_BYTES);
        for (round, sizes) in [[0, 0, 0].as_slice(), &[0, 1], &[0, 0, 1, 0], &[1; 100]].iter().enumerate() {
            batch.clear();
            for (index, &shape) in sizes.iter().enumerate() {
                let key = (round * 1000 + index) as u32;
                batch.push(&shapes, shape, Some(key), &identity(key.into()), 0);
            }
            batch.finish(ANONYMOUS, 5, Compression::None).unwrap();
            let found = contents(batch.wire());
            assert_eq!(found.len(), sizes.len());
            for (index, (key, who, size)) in found.iter().enumerate() {
                let expected = (round * 1000 + index) as u32;
                assert_eq!(key.as_deref(), Some(key_text(expected).as_slice()));
                assert_eq!((*who, *size), (identity(expected.into()), [1024, 40][sizes[index]]));
            }
        }
    }

    #[test]
    fn compressed_batches_hold_the_same_and_may_change_their_author() {
        let shapes = RecordTemplates::new(&[500], false, 0.5).unwrap();
        for compression in [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd] {
            let mut batch = Batch::new(LIMIT_BYTES);
            for sequence in 0..50 {
                batch.push(&shapes, 0, None, &identity(sequence), 0);
            }
            batch.finish(ANONYMOUS, 5, compression).unwrap();
            batch.finish(ProducerIdentity { producer_id: 9, epoch: 1, sequence: 77 }, 5, compression).unwrap();
            assert!(batch.wire().len() < batch.size_bytes() * 8 / 10);
            let found = contents(batch.wire());
            assert_eq!(found.len(), 50);
            assert!(found.iter().all(|(key, _, size)| key.is_none() && *size == 500));
        }
    }

    #[test]
    fn a_buffer_takes_no_more_memory_than_a_full_batch_needs() {
        let shapes = RecordTemplates::new(&[1024], false, 1.0).unwrap();
        let mut batch = Batch::new(LIMIT_BYTES);
        while batch.size_bytes() + shapes.record_bytes_max(0) <= LIMIT_BYTES {
            batch.push(&shapes, 0, None, &identity(0), 0);
        }
        assert!(batch.memory_bytes() < LIMIT_BYTES * 12 / 10, "{}", batch.memory_bytes());
    }

    #[test]
    fn any_flipped_bit_is_noticed_and_nothing_panics() {
        let shapes = RecordTemplates::new(&[64], false, 1.0).unwrap();
        let mut batch = Batch::new(LIMIT_BYTES);
        batch.push(&shapes, 0, None, &identity(1), 0);
        batch.finish(ANONYMOUS, 5, Compression::None).unwrap();
        let good = batch.wire().to_vec();
        for bit in 0..good.len() * 8 {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let mut rest = bad.as_slice();
            if let Some(Ok(found)) = read::ReceivedBatch::take(&mut rest) {
                // Base offset and leader epoch are set by the broker, and the CRC does not cover them.
                let is_covered = bit / 8 >= 16 || (8..12).contains(&(bit / 8));
                assert!(!(is_covered && found.is_intact()), "bit {bit}");
                let mut records = found.records();
                while !records.is_empty() && read::ReceivedRecord::take(&mut records).is_ok() {}
            }
        }
    }
}
