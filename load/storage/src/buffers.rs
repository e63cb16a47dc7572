//! Memory to write from: aligned, counted before the start, its payloads made once.

use crate::error::{Error, Result};
use cliffwatch_measure::record::{HEADER_BYTES, Sealer, mix};
use memmap2::MmapMut;

/// Payloads are random and compressible in turns of this length, so that every block of a file is alike.
const TURN_BYTES: usize = 256;
/// What O_DIRECT asks of addresses, offsets and lengths on any drive.
pub(crate) const BLOCK_BYTES: usize = 4_096;

/// Equally long buffers. Each is filled with payload of its own when it is made; records are laid over it by writing their
/// headers only. Where all records are as long as divides a buffer, the payloads' checksums are kept too.
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
    /// `count` buffers of `buffer_bytes` with payload of which `randomness` (0 to 1) cannot be compressed. `slot_bytes` is
    /// the length of every record, when all are as long and divide a buffer; 0 otherwise.
    ///
    /// The memory is never given back, because the kernel may be reading it for as long as the process lives.
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

    /// Bytes of memory that buffers so shaped take.
    pub(crate) fn memory_bytes(count: usize, buffer_bytes: usize, slot_bytes: usize) -> usize {
        let slots = buffer_bytes.checked_div(slot_bytes).unwrap_or(0);
        count * (buffer_bytes + 4 + 4 * slots)
    }

    /// Where the first begins. Each begins where the one before ends.
    pub(crate) fn address(&self) -> *const u8 {
        self.memory.as_ptr()
    }

    /// How long each is.
    pub(crate) fn buffer_bytes(&self) -> usize {
        self.buffer_bytes
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// How many are free.
    pub(crate) fn free(&self) -> usize {
        self.free.len()
    }

    /// Takes a free one.
    pub(crate) fn take(&mut self) -> Option<u32> {
        self.free.pop()
    }

    /// Gives one back.
    pub(crate) fn give(&mut self, buffer: u32) {
        self.free.push(buffer);
    }

    /// A buffer that was taken.
    pub(crate) fn bytes(&mut self, buffer: u32) -> &mut [u8] {
        let from = buffer as usize * self.buffer_bytes;
        &mut self.memory[from..from + self.buffer_bytes]
    }

    /// The checksum of the payload in a buffer's slot.
    pub(crate) fn checksum(&self, buffer: u32, slot: usize) -> u32 {
        self.checksums[buffer as usize * (self.buffer_bytes / self.slot_bytes) + slot]
    }

    /// Makes part of a buffer's payload again as it was, headers of records included.
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
