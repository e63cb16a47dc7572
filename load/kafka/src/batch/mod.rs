//! Record batches, magic 2: written once per shape and patched from then on, read where they lie.

pub(crate) mod compress;
pub(crate) mod read;
pub(crate) mod varint;
pub(crate) mod write;

/// Bytes before the first record.
pub(crate) const HEADER: usize = 61;
/// Where the CRC stands; what it covers begins after it.
pub(crate) const CRC_AT: usize = 17;
pub(crate) const CRC_FROM: usize = CRC_AT + 4;
/// `batchLength` counts what comes after it.
pub(crate) const LENGTH_FROM: usize = 12;
const COMPRESSION_BITS: i16 = 0b111;
const CONTROL_BIT: i16 = 0b10_0000;
