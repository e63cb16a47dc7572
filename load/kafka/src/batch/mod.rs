//! Record batches (magic 2): built in reusable buffers, parsed without copying.

pub(crate) mod compress;
pub(crate) mod read;
pub(crate) mod varint;
pub(crate) mod write;

/// Size of a batch header, in bytes.
pub(crate) const HEADER: usize = 61;
/// Offset of the CRC in the header; it covers all bytes after it.
pub(crate) const CRC_AT: usize = 17;
pub(crate) const CRC_FROM: usize = CRC_AT + 4;
/// Bytes that `batchLength` does not count: base offset and the length itself.
pub(crate) const LENGTH_FROM: usize = 12;
const COMPRESSION_BITS: i16 = 0b111;
const CONTROL_BIT: i16 = 0b10_0000;
