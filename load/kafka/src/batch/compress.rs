//! Compression of record batches, in the formats of Kafka's clients.

use std::io::{Read, Write};

use crate::config::Compression;

/// Error: compressed data is malformed, too large or of an unknown codec.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged;

/// Magic of xerial's snappy framing; two version numbers follow, then blocks preceded by their lengths.
const XERIAL_MAGIC: &[u8] = b"\x82SNAPPY\0";
const XERIAL_HEADER: usize = 16;
const XERIAL_BLOCK: usize = 32 * 1024;
/// Largest size of decompressed records, in bytes; protects against decompression bombs.
pub(crate) const DECOMPRESSED_MAX: usize = 256 * 1024 * 1024;

/// Highest snappy ratio: a copy of 3 bytes yields 64 at most. Blocks that claim more are rejected unallocated.
const SNAPPY_RATIO_MAX: usize = 22;

impl Compression {
    /// Codec bits for the attributes of a record batch.
    #[must_use]
    pub(crate) fn bits(self) -> i16 {
        match self {
            Self::None => 0,
            Self::Gzip => 1,
            Self::Snappy => 2,
            Self::Lz4 => 3,
            Self::Zstd => 4,
        }
    }
}

/// Compresses `records` and appends them to `target`.
///
/// # Errors
/// Errors of the compression library.
pub(crate) fn compress(compression: Compression, records: &[u8], target: &mut Vec<u8>) -> std::io::Result<()> {
    match compression {
        Compression::None => target.extend_from_slice(records),
        Compression::Gzip => {
            let mut encoder = flate2::write::GzEncoder::new(target, flate2::Compression::default());
            encoder.write_all(records)?;
            encoder.finish()?;
        }
        Compression::Snappy => {
            target.extend_from_slice(XERIAL_MAGIC);
            target.extend_from_slice(&[0, 0, 0, 1, 0, 0, 0, 1]);
            let mut encoder = snap::raw::Encoder::new();
            for block in records.chunks(XERIAL_BLOCK) {
                let at = target.len();
                target.resize(at + 4 + snap::raw::max_compress_len(block.len()), 0);
                let size = encoder.compress(block, &mut target[at + 4..]).map_err(std::io::Error::other)?;
                target[at..at + 4].copy_from_slice(&(size as u32).to_be_bytes());
                target.truncate(at + 4 + size);
            }
        }
        Compression::Lz4 => {
            let mut encoder = lz4_flex::frame::FrameEncoder::new(target);
            encoder.write_all(records)?;
            encoder.finish().map_err(std::io::Error::other)?;
        }
        Compression::Zstd => zstd::stream::copy_encode(records, target, 3)?,
    }
    Ok(())
}

/// Decompresses `records` into `target`, replacing its contents; `bits` is the codec from the batch's attributes.
///
/// # Errors
/// `Damaged` when the data is malformed, too large (`DECOMPRESSED_MAX`) or of an unknown codec.
pub(crate) fn decompress(bits: i16, records: &[u8], target: &mut Vec<u8>) -> Result<(), Damaged> {
    target.clear();
    let limit = DECOMPRESSED_MAX as u64;
    let done = match bits {
        1 => flate2::read::GzDecoder::new(records).take(limit).read_to_end(target).map_err(|_| Damaged)?,
        2 => return decompress_snappy(records, target),
        3 => lz4_flex::frame::FrameDecoder::new(records).take(limit).read_to_end(target).map_err(|_| Damaged)?,
        4 => zstd::stream::read::Decoder::new(records)
            .map_err(|_| Damaged)?
            .take(limit)
            .read_to_end(target)
            .map_err(|_| Damaged)?,
        _ => return Err(Damaged),
    };
    if done < DECOMPRESSED_MAX { Ok(()) } else { Err(Damaged) }
}

fn decompress_snappy(records: &[u8], target: &mut Vec<u8>) -> Result<(), Damaged> {
    let Some(framed) = records.strip_prefix(XERIAL_MAGIC) else {
        return decompress_block(records, target);
    };
    let mut rest = framed.get(XERIAL_HEADER - XERIAL_MAGIC.len()..).ok_or(Damaged)?;
    while let Some((size, after)) = rest.split_first_chunk::<4>() {
        let (block, after) = after.split_at_checked(u32::from_be_bytes(*size) as usize).ok_or(Damaged)?;
        decompress_block(block, target)?;
        rest = after;
    }
    if rest.is_empty() { Ok(()) } else { Err(Damaged) }
}

fn decompress_block(block: &[u8], target: &mut Vec<u8>) -> Result<(), Damaged> {
    let size = snap::raw::decompress_len(block).map_err(|_| Damaged)?;
    let at = target.len();
    if at + size > DECOMPRESSED_MAX || size > block.len() * SNAPPY_RATIO_MAX {
        return Err(Damaged);
    }
    target.resize(at + size, 0);
    snap::raw::Decoder::new().decompress(block, &mut target[at..]).map_err(|_| Damaged)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Compression; 4] = [Compression::Gzip, Compression::Snappy, Compression::Lz4, Compression::Zstd];

    #[test]
    fn what_is_compressed_decompresses() {
        let records: Vec<u8> = (0..200_000_u32).map(|number| (number / 100) as u8).collect();
        for compression in ALL {
            let (mut packed, mut unpacked) = (Vec::new(), vec![1, 2, 3]);
            compress(compression, &records, &mut packed).unwrap();
            assert!(packed.len() < records.len() / 4, "{compression:?}");
            decompress(compression.bits(), &packed, &mut unpacked).unwrap();
            assert_eq!(unpacked, records, "{compression:?}");
        }
    }

    #[test]
    fn damage_is_an_error_and_not_a_panic() {
        let records = vec![7; 50_000];
        for compression in ALL {
            let (mut packed, mut unpacked) = (Vec::new(), Vec::new());
            compress(compression, &records, &mut packed).unwrap();
            packed.truncate(packed.len() / 2);
            let result = decompress(compression.bits(), &packed, &mut unpacked);
            assert!(result.is_err() || unpacked != records, "{compression:?}");
            assert_eq!(decompress(compression.bits(), &[0xff; 3], &mut unpacked), Err(Damaged), "{compression:?}");
        }
        // A snappy block that claims 200 MB and contains nothing.
        let (bomb, mut unpacked) = ([0x80, 0xc2, 0xd7, 0x5f], Vec::new());
        assert_eq!((decompress(2, &bomb, &mut unpacked), unpacked.capacity()), (Err(Damaged), 0));
        assert_eq!(decompress(7, &records, &mut Vec::new()), Err(Damaged));
    }
}
