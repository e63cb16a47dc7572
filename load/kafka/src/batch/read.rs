//! Parser of record batches in a fetch response, without copying.

use super::{COMPRESSION_BITS, CONTROL_BIT, CRC_AT, CRC_FROM, HEADER, LENGTH_FROM, varint};
use crate::wire::Malformed;

/// Record batch in a fetch response; borrows its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ReceivedBatch<'a> {
    /// Offset of the first record.
    pub(crate) base_offset: i64,
    /// Offset after the last record.
    pub(crate) next_offset: i64,
    /// Attribute bits: compression codec, transactional, control.
    pub(crate) attributes: i16,
    /// Number of records that the header states; unchecked.
    pub(crate) count: i32,
    /// The whole batch, header included.
    bytes: &'a [u8],
}

impl<'a> ReceivedBatch<'a> {
    /// Parses the first batch of `bytes` and advances past it. None at the end, and for an incomplete batch, which the
    /// broker sends when the response reaches its size limit.
    ///
    /// # Errors
    /// [`Malformed`] when the header is invalid; later batches cannot be located then.
    pub(crate) fn take(bytes: &mut &'a [u8]) -> Option<Result<Self, Malformed>> {
        let all = *bytes;
        let length = i32::from_be_bytes(all.get(8..LENGTH_FROM)?.try_into().ok()?);
        let Some(end) = usize::try_from(length).ok().map(|length| length + LENGTH_FROM) else {
            return Some(Err(Malformed));
        };
        if end < HEADER {
            return Some(Err(Malformed));
        }
        let batch = all.get(..end)?;
        *bytes = &all[end..];
        if batch[16] != 2 {
            return Some(Err(Malformed));
        }
        let base_offset = i64::from_be_bytes(field(batch, 0));
        let last = u32::try_from(i32::from_be_bytes(field(batch, 23))).ok();
        let Some(next_offset) = last.and_then(|last| base_offset.checked_add(i64::from(last) + 1)) else {
            return Some(Err(Malformed));
        };
        Some(Ok(Self {
            base_offset,
            next_offset,
            attributes: i16::from_be_bytes(field(batch, CRC_FROM)),
            count: i32::from_be_bytes(field(batch, 57)),
            bytes: batch,
        }))
    }

    /// Verifies the CRC-32C.
    #[must_use]
    pub(crate) fn is_intact(&self) -> bool {
        u32::from_be_bytes(field(self.bytes, CRC_AT)) == crc32c::crc32c(&self.bytes[CRC_FROM..])
    }

    /// True for control batches (transaction markers), which contain no data records.
    #[must_use]
    pub(crate) fn is_control(&self) -> bool {
        self.attributes & CONTROL_BIT != 0
    }

    /// Compression codec: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.
    #[must_use]
    pub(crate) fn compression(&self) -> i16 {
        self.attributes & COMPRESSION_BITS
    }

    /// The records section, still compressed.
    #[must_use]
    pub(crate) fn records(&self) -> &'a [u8] {
        &self.bytes[HEADER..]
    }
}

fn field<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut found = [0; N];
    found.copy_from_slice(&bytes[at..at + N]);
    found
}

/// Record within a batch; borrows its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ReceivedRecord<'a> {
    /// Offset relative to the batch's base offset.
    pub(crate) offset_delta: i64,
    /// Key; None if null.
    pub(crate) key: Option<&'a [u8]>,
    /// Value; None if null.
    pub(crate) value: Option<&'a [u8]>,
}

impl<'a> ReceivedRecord<'a> {
    /// Parses the first record of uncompressed `bytes` and advances past it.
    ///
    /// # Errors
    /// [`Malformed`] when it is incomplete or invalid.
    #[inline]
    pub(crate) fn take(bytes: &mut &'a [u8]) -> Result<Self, Malformed> {
        Self::parse(bytes).ok_or(Malformed)
    }

    #[inline]
    fn parse(bytes: &mut &'a [u8]) -> Option<Self> {
        let length = usize::try_from(varint::read(bytes)?).ok()?;
        let mut record = bytes.get(..length)?;
        *bytes = &bytes[length..];
        record = record.get(1..)?;
        varint::read(&mut record)?;
        let offset_delta = varint::read(&mut record)?;
        let key = Self::sized(&mut record)?;
        let value = Self::sized(&mut record)?;
        Some(Self { offset_delta, key, value })
    }

    #[inline]
    #[allow(clippy::option_option)] // Absent and malformed are different things.
    fn sized(record: &mut &'a [u8]) -> Option<Option<&'a [u8]>> {
        let length = varint::read(record)?;
        if length < 0 {
            return Some(None);
        }
        let (field, rest) = record.split_at_checked(usize::try_from(length).ok()?)?;
        *record = rest;
        Some(Some(field))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn offsets_that_go_back_or_beyond_the_last_are_malformed() {
        let take = |base_offset: i64, last: i32| {
            let mut bytes = [0; HEADER];
            bytes[..8].copy_from_slice(&base_offset.to_be_bytes());
            bytes[8..LENGTH_FROM].copy_from_slice(&49_i32.to_be_bytes());
            bytes[16] = 2;
            bytes[23..27].copy_from_slice(&last.to_be_bytes());
            ReceivedBatch::take(&mut bytes.as_slice()).unwrap().map(|batch| batch.next_offset)
        };
        assert_eq!(take(7, 2), Ok(10));
        assert_eq!(take(7, -2), Err(Malformed));
        assert_eq!(take(i64::MAX, 0), Err(Malformed));
    }
}
