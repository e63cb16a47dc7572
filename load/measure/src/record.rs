//! Self-describing records: reading them back shows which were lost, duplicated, reordered or corrupted.
//!
//! A record begins with a header of 32 bytes, little-endian: CRC-32C of all that follows it (4), length of the whole
//! record (4), producer (4), partition (4), sequence (8), microseconds since the epoch (8). The payload follows.

use crc32c::{crc32c, crc32c_append, crc32c_combine};

/// Length of the header in bytes, and of the smallest record.
pub const HEADER_BYTES: usize = 32;
const CHECKSUM_BYTES: usize = 4;

/// Identity of a record. `sequence` counts the records of one producer in one partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Identity {
    /// Producer id.
    pub producer: u32,
    /// Partition id.
    pub partition: u32,
    /// Sequence number within its producer and partition, from 0.
    pub sequence: u64,
    /// Due time in microseconds since the epoch.
    pub timestamp_microseconds: u64,
}

/// Reason why bytes are not a valid record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Header of zeros: nothing was written here.
    Empty,
    /// Invalid length, or bytes that end within the record.
    Length,
    /// Wrong checksum: the bytes are not those that were written.
    Checksum,
}

/// Writes the header over the first bytes of `record`, whose payload is in place. Returns false and writes nothing if
/// the record is shorter than a header or longer than `u32::MAX` bytes.
pub fn seal(record: &mut [u8], identity: &Identity) -> bool {
    let Ok(length) = u32::try_from(record.len()) else { return false };
    let Some((header, payload)) = record.split_first_chunk_mut::<HEADER_BYTES>() else { return false };
    write_fields(header, identity, length);
    let checksum = crc32c_append(crc32c(&header[CHECKSUM_BYTES..]), payload);
    header[..CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
    true
}

/// Checks the record at the start of `bytes`; returns its identity and its length in bytes.
pub fn check(bytes: &[u8]) -> Result<(Identity, usize), Fault> {
    let header = bytes.first_chunk::<HEADER_BYTES>().ok_or(Fault::Length)?;
    let word = |at: usize| u32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let long = |at: usize| u64::from(word(at)) | u64::from(word(at + 4)) << 32;
    let length = word(4) as usize;
    if *header == [0; HEADER_BYTES] {
        return Err(Fault::Empty);
    }
    if length < HEADER_BYTES || length > bytes.len() {
        return Err(Fault::Length);
    }
    if crc32c(&bytes[CHECKSUM_BYTES..length]) != word(0) {
        return Err(Fault::Checksum);
    }
    let identity =
        Identity { producer: word(8), partition: word(12), sequence: long(16), timestamp_microseconds: long(24) };
    Ok((identity, length))
}

fn write_fields(header: &mut [u8; HEADER_BYTES], identity: &Identity, length: u32) {
    header[4..8].copy_from_slice(&length.to_le_bytes());
    header[8..12].copy_from_slice(&identity.producer.to_le_bytes());
    header[12..16].copy_from_slice(&identity.partition.to_le_bytes());
    header[16..24].copy_from_slice(&identity.sequence.to_le_bytes());
    header[24..32].copy_from_slice(&identity.timestamp_microseconds.to_le_bytes());
}

/// Writer of headers for records of one length whose payloads are reused: only the header is read.
///
/// The CRC-32C of two strings put together is that of the first, extended over as many zero bytes as the second is
/// long, exclusive-or that of the second. The extension is linear, so four tables of 256 entries compute it.
#[derive(Clone)]
pub struct Sealer {
    length: u32,
    carried: Box<[[u32; 256]; 4]>,
}

impl Sealer {
    /// Creates a sealer for records of `length` bytes, header included; `None` if that is shorter than a header.
    pub fn new(length: u32) -> Option<Self> {
        let payload_bytes = (length as usize).checked_sub(HEADER_BYTES)?;
        let mut carried = Box::new([[0; 256]; 4]);
        for (place, table) in carried.iter_mut().enumerate() {
            for (value, entry) in table.iter_mut().enumerate() {
                *entry = crc32c_combine((value as u32) << (8 * place), 0, payload_bytes);
            }
        }
        Some(Self { length, carried })
    }

    /// Returns the CRC-32C of a payload, which [`Sealer::seal`] needs.
    pub fn payload_checksum(payload: &[u8]) -> u32 {
        crc32c(payload)
    }

    /// Writes the header of a record whose payload has this checksum.
    pub fn seal(&self, header: &mut [u8; HEADER_BYTES], identity: &Identity, payload_checksum: u32) {
        write_fields(header, identity, self.length);
        let [one, two, three, four] = crc32c(&header[CHECKSUM_BYTES..]).to_le_bytes();
        let carried = self.carried[0][one as usize]
            ^ self.carried[1][two as usize]
            ^ self.carried[2][three as usize]
            ^ self.carried[3][four as usize];
        header[..CHECKSUM_BYTES].copy_from_slice(&(carried ^ payload_checksum).to_le_bytes());
    }
}

/// Returns 64 pseudo-random bits that depend on `number` alone (the finalizer of SplitMix64).
pub fn mix(number: u64) -> u64 {
    let mut mixed = number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDENTITY: Identity =
        Identity { producer: 3, partition: 287, sequence: 1 << 40, timestamp_microseconds: 1_790_000_000_123_456 };

    fn payload(length: usize) -> Vec<u8> {
        (0..length).map(|at| (at * 31 % 251) as u8).collect()
    }

    #[test]
    fn what_was_sealed_is_read_back() {
        for length in [HEADER_BYTES, 33, 100, 1024, 70_001] {
            let mut record = payload(length);
            assert!(seal(&mut record, &IDENTITY));
            record.extend_from_slice(b"what follows");
            assert_eq!(check(&record), Ok((IDENTITY, length)));
        }
        assert!(!seal(&mut payload(HEADER_BYTES - 1), &IDENTITY));
    }

    #[test]
    fn any_flipped_bit_is_noticed() {
        let mut record = payload(100);
        seal(&mut record, &IDENTITY);
        for bit in 0..800 {
            record[bit / 8] ^= 1 << (bit % 8);
            assert!(check(&record).is_err(), "bit {bit}");
            record[bit / 8] ^= 1 << (bit % 8);
        }
    }

    #[test]
    fn nothing_and_half_a_record_are_distinguished() {
        assert_eq!(check(&[0; 64]), Err(Fault::Empty));
        let mut record = payload(64);
        seal(&mut record, &IDENTITY);
        assert_eq!(check(&record[..63]), Err(Fault::Length));
        assert_eq!(check(&record[..8]), Err(Fault::Length));
        // With one bit cleared the length is 0: the record is damaged, not absent.
        record[4] = 0;
        assert_eq!(check(&record), Err(Fault::Length));
    }

    #[test]
    fn sealing_by_the_header_alone_gives_the_same_bytes() {
        for length in [HEADER_BYTES, 33, 1024, 9_999] {
            let sealer = Sealer::new(length as u32).unwrap();
            let mut by_header = payload(length);
            let checksum = Sealer::payload_checksum(&by_header[HEADER_BYTES..]);
            let mut whole = by_header.clone();
            sealer.seal(by_header.first_chunk_mut().unwrap(), &IDENTITY, checksum);
            seal(&mut whole, &IDENTITY);
            assert_eq!(by_header, whole, "length {length}");
        }
        assert!(Sealer::new(31).is_none());
    }
}
