//! Kafka wire protocol of the hot path: Produce and Fetch, encoded and decoded by hand, in non-flexible versions, which
//! all brokers since Kafka 2.4 support.

pub(crate) mod fetch;
pub(crate) mod produce;
pub(crate) mod shapes;

/// Begins a request in `bytes`, replacing its contents: size (left 0, see [`set_length`]) and request header.
pub(crate) fn begin(bytes: &mut Vec<u8>, api: i16, version: i16, correlation: i32, client_id: &str) {
    bytes.clear();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&api.to_be_bytes());
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&correlation.to_be_bytes());
    string(bytes, client_id);
}

/// Length as an int32 of the protocol; saturates, which no buffer here reaches.
#[must_use]
pub(crate) fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Writes the size field of a request: `total` bytes, without the field itself.
pub(crate) fn set_length(bytes: &mut [u8], total: usize) {
    bytes[..4].copy_from_slice(&length(total).to_be_bytes());
}

/// Appends a string (int16 length, at most 32,767 bytes).
pub(crate) fn string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&i16::try_from(text.len()).unwrap_or(i16::MAX).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Reader of protocol fields; each read checks that enough bytes are left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
}

/// Error: a response ends too early or contains invalid values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl<'a> WireReader<'a> {
    /// Reader from the start of `bytes`.
    #[must_use]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (field, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*field)
    }

    /// Reads a big-endian int16.
    ///
    /// # Errors
    /// `Malformed` if too few bytes are left.
    pub(crate) fn int16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    /// Reads a big-endian int32.
    ///
    /// # Errors
    /// `Malformed` if too few bytes are left.
    pub(crate) fn int32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    /// Reads a big-endian int64.
    ///
    /// # Errors
    /// `Malformed` if too few bytes are left.
    pub(crate) fn int64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// Reads the length of an array (int32); 0 for a null array.
    ///
    /// # Errors
    /// `Malformed` if too few bytes are left, or fewer than one for each element.
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.int32()?.max(0) as usize;
        // An element takes at least one byte.
        if count > self.rest.len() { Err(Malformed) } else { Ok(count) }
    }

    /// Reads a string (int16 length); empty for a null string.
    ///
    /// # Errors
    /// `Malformed` if too few bytes are left, or it is not UTF-8.
    pub(crate) fn string(&mut self) -> Result<&'a str, Malformed> {
        let length = self.int16()?.max(0) as usize;
        std::str::from_utf8(self.take(length)?).map_err(|_| Malformed)
    }

    /// Reads a byte array (int32 length); empty for null.
    ///
    /// # Errors
    /// `Malformed` if too few bytes are left.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.int32()?.max(0) as usize;
        self.take(length)
    }

    /// Reads `length` bytes.
    ///
    /// # Errors
    /// `Malformed` if too few bytes are left.
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }
}
