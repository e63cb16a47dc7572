//! Variable-length integers (varint): seven bits a byte, low ones first, signed ones in zigzag encoding.

/// Appends `value` as a zigzag varint.
pub(crate) fn write(bytes: &mut Vec<u8>, value: i64) {
    let mut rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    while rest >= 0x80 {
        bytes.push(rest as u8 | 0x80);
        rest >>= 7;
    }
    bytes.push(rest as u8);
}

/// Encoded size of `value`, in bytes (1 to 10).
#[must_use]
pub(crate) fn size(value: i64) -> usize {
    let rest = ((value << 1) ^ (value >> 63)).cast_unsigned();
    (64 - (rest | 1).leading_zeros() as usize).div_ceil(7)
}

/// Decodes a varint and advances `bytes` past it; None when it is incomplete or longer than ten bytes.
#[inline]
pub(crate) fn read(bytes: &mut &[u8]) -> Option<i64> {
    let mut value = 0_u64;
    for (index, &byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            *bytes = &bytes[index + 1..];
            return Some((value >> 1).cast_signed() ^ -(value & 1).cast_signed());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_read_back_and_takes_its_stated_size() {
        for value in [0, -1, 1, 63, 64, -64, -65, 8191, 8192, 1 << 40, i64::MAX, i64::MIN] {
            let mut bytes = Vec::new();
            write(&mut bytes, value);
            assert_eq!(bytes.len(), size(value), "{value}");
            let mut rest = bytes.as_slice();
            assert_eq!(read(&mut rest), Some(value));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn truncated_and_overlong_values_are_refused() {
        assert_eq!(read(&mut [0x80, 0x80].as_slice()), None);
        assert_eq!(read(&mut [0xff; 11].as_slice()), None);
    }
}
