//! Encoding of record batches into buffers.

use crate::buffers::Buffers;
use crate::config::Config;
use cliffwatch_measure::record::{HEADER_BYTES, Identity, Sealer, mix, seal};

/// Bytes of payload from which copied records are cut; one longest record follows.
const SOURCE_BYTES: usize = 1 << 20;

/// Encoder of records, with two modes. Slot mode: all records have one length that divides a buffer, payload stays in
/// place, and only headers are written. Copy mode: records are assembled in a scratch buffer and copied.
pub(crate) struct BatchEncoder {
    slots: Option<(usize, Sealer)>,
    sizes: Vec<(f64, u32)>,
    source: Vec<u8>,
    scratch: Vec<u8>,
}

impl BatchEncoder {
    /// Creates an encoder for the records of `config` in buffers of `buffer_bytes` bytes.
    pub(crate) fn new(config: &Config, buffer_bytes: usize) -> Self {
        let slots = slot_bytes(config, buffer_bytes);
        let sealer = u32::try_from(slots).ok().filter(|&slot| slot > 0).and_then(Sealer::new);
        let mut encoder = Self {
            slots: sealer.map(|sealer| (slots, sealer)),
            sizes: Vec::new(),
            source: Vec::new(),
            scratch: Vec::new(),
        };
        if encoder.slots.is_none() {
            let total: f64 = config.record.sizes.iter().map(|size| size.weight).sum();
            let mut below = 0.0;
            for size in &config.record.sizes {
                below += size.weight / total;
                encoder.sizes.push((below, size.bytes));
            }
            encoder.source = payload(SOURCE_BYTES + config.longest_record() as usize, config.record.randomness);
            encoder.scratch = vec![0; config.longest_record() as usize];
        }
        encoder
    }

    /// Returns the length of a slot in bytes; 0 in copy mode.
    pub(crate) fn slot_bytes(&self) -> usize {
        self.slots.as_ref().map_or(0, |(bytes, _)| *bytes)
    }

    /// Writes the header of the record in the slot at byte `at` of a buffer. Does nothing in copy mode.
    pub(crate) fn seal_slot(&self, buffers: &mut Buffers, buffer: u32, at: usize, identity: &Identity) {
        let Some((bytes, sealer)) = &self.slots else { return };
        let checksum = buffers.checksum(buffer, at / bytes);
        if let Some(header) = buffers.bytes(buffer)[at..].first_chunk_mut::<HEADER_BYTES>() {
            sealer.seal(header, identity, checksum);
        }
    }

    /// Returns the length of a record in bytes, drawn by weight and the same for the same partition and sequence; 0 in
    /// slot mode.
    pub(crate) fn record_bytes(&self, partition: u32, sequence: u64) -> u32 {
        let drawn = mix(mix(u64::from(partition)) ^ sequence) as f64 / 2_f64.powi(64);
        let found = self.sizes.iter().find(|(below, _)| drawn < *below).or(self.sizes.last());
        found.map_or(0, |(_, bytes)| *bytes)
    }

    /// Assembles a whole record in the scratch buffer and returns its length in bytes. Copy mode only.
    pub(crate) fn make_record(&mut self, identity: &Identity) -> usize {
        let bytes = self.record_bytes(identity.partition, identity.sequence) as usize;
        let from = mix(identity.sequence ^ u64::from(identity.partition) << 40) as usize % SOURCE_BYTES;
        let record = &mut self.scratch[..bytes];
        record.copy_from_slice(&self.source[from..from + bytes]);
        seal(record, identity);
        bytes
    }

    /// Returns the scratch buffer: the record assembled last, followed by stale bytes.
    pub(crate) fn made_record(&self) -> &[u8] {
        &self.scratch
    }

    /// Returns the memory that an encoder takes, in bytes.
    pub(crate) fn memory_bytes(config: &Config, buffer_bytes: usize) -> usize {
        if slot_bytes(config, buffer_bytes) > 0 { 4096 } else { SOURCE_BYTES + 2 * config.longest_record() as usize }
    }
}

/// Returns the length of a slot in bytes: the record length if it is fixed and divides `buffer_bytes`, else 0.
pub(crate) fn slot_bytes(config: &Config, buffer_bytes: usize) -> usize {
    let fixed = config.fixed_record().map_or(0, |bytes| bytes as usize);
    if fixed > 0 && buffer_bytes.is_multiple_of(fixed) { fixed } else { 0 }
}

fn payload(bytes: usize, randomness: f64) -> Vec<u8> {
    const TURN: usize = 256;
    let incompressible = (randomness * TURN as f64).round() as usize;
    let byte = |at: usize| if at % TURN < incompressible { mix(at as u64) as u8 } else { 0 };
    (0..bytes).map(byte).collect()
}
