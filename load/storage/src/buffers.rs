//! Pool of aligned write buffers: allocated once and included in the memory budget, with payload generated once.

use crate::error::{Error, Result};
use cliffwatch_measure::record::{HEADER_BYTES, Sealer, mix};
use memmap2::MmapMut;

/// Length in bytes of the pattern, first random and then zeros, that payload repeats, so that all blocks compress
/// alike.
const TURN_BYTES: usize = 256;
/// Alignment in bytes of addresses, offsets and lengths that O_DIRECT accepts on any drive.
pub(crate) const BLOCK_BYTES: usize = 4_096;

/// Pool of buffers of equal length, each filled with its own payload when created. If records have one length that
/// divides a buffer, only their headers are written later, for which the checksums of all payloads are cached.
pub(crate) struct Buffers {
    memory: &'static mut MmapMut,
    buffer_bytes: usize,
    count: usize,
    free: Vec<u32>,
    randomness: f64,
    slot_bytes: usize,
    checksums: Vec<u32>,
}

impl Buffers {
    /// Allocates `count` buffers of `buffer_bytes` each. `randomness` (0 to 1) is the incompressible share of the
    /// payload; `slot_bytes` is the record length if it is fixed and divides a buffer, else 0.
    ///
    /// The memory is never freed, because the kernel may read it as long as the process lives.
    pub(crate) fn new(count: usize, buffer_bytes: usize, randomness: f64, slot_bytes: usize) -> Result<Self> {
        let memory = MmapMut::map_anon(count * buffer_bytes).map_err(Error::system("allocating buffers"))?;
        let memory = Box::leak(Box::new(memory));
        let free = (0..u32::try_from(count).unwrap_or(u32::MAX)).rev().collect();
        let mut buffers = Self { memory, buffer_bytes, count, free, randomness, slot_bytes, checksums: Vec::new() };
        for buffer in 0..count {
            buffers.restore(buffer, 0, buffer_bytes);
        }
        if let Some(slots) = buffer_bytes.checked_div(slot_bytes) {
            buffers.checksums.reserve_exact(count * slots);
            for slot in 0..count * slots {
                let payload = &buffers.memory[slot * slot_bytes + HEADER_BYTES..(slot + 1) * slot_bytes];
                buffers.checksums.push(Sealer::payload_checksum(payload));
            }
        }
        Ok(buffers)
    }

    /// Returns the bytes of memory that a pool of this shape takes, free list and cached checksums included.
    pub(crate) fn memory_bytes(count: usize, buffer_bytes: usize, slot_bytes: usize) -> usize {
        let slots = buffer_bytes.checked_div(slot_bytes).unwrap_or(0);
        count * (buffer_bytes + 4 + 4 * slots)
    }

    /// Returns the address of the first buffer; the buffers are contiguous.
    pub(crate) fn address(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    /// Returns the length of each buffer in bytes.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// Returns the number of buffers, free or in use.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Returns the number of free buffers.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Removes a free buffer from the pool and returns its index, None if all are in use.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Returns a buffer to the pool.
    pub(crate) fn give(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// Returns the bytes of a buffer that was taken from the pool.
    pub(crate) fn bytes(&mut self, buffer: u32) -> &mut [u8] {
        let from = buffer as usize * self.buffer_bytes;
        &mut self.memory[from..from + self.buffer_bytes]
    }

    /// Returns the cached CRC-32C of the payload in a buffer's slot; panics if the pool has no slots.
    pub(crate) fn checksum(&self, buffer: u32, slot: usize) -> u32 {
        self.checksums[buffer as usize * (self.buffer_bytes / self.slot_bytes) + slot]
    }

    /// Regenerates a buffer's initial payload from byte `from` to byte `to`, both rounded outwards to multiples of
    /// `TURN_BYTES`; it overwrites headers of records, too.
    pub(crate) fn restore(&mut self, buffer: usize, from: usize, to: usize) {
        let incompressible = (self.randomness * TURN_BYTES as f64).round() as usize;
        let base = buffer * self.buffer_bytes;
        for turn in from / TURN_BYTES..to.div_ceil(TURN_BYTES) {
            let start = base + turn * TURN_BYTES;
            let end = (start + TURN_BYTES).min(base + self.buffer_bytes);
            for (place, word) in self.memory[start..end].chunks_mut(8).enumerate() {
                let random = mix((start + 8 * place) as u64).to_le_bytes();
                for (at, byte) in word.iter_mut().enumerate() {
                    *byte = if 8 * place + at < incompressible { random[at] } else { 0 };
                }
            }
        }
    }
}
