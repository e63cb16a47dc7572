//! The two requests of the hot path, written and read by hand. Both are of versions before the flexible ones, which all
//! brokers since Kafka 2.4 know.

pub(crate) mod fetch;
pub(crate) mod produce;
pub(crate) mod shapes;

/// Appends what every request begins with, its length left open.
pub(crate) fn begin(bytes: &mut Vec<u8>, api: i16, version: i16, correlation: i32, client_id: &str) {
    bytes.clear();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&api.to_be_bytes());
    bytes.extend_from_slice(&version.to_be_bytes());
    bytes.extend_from_slice(&correlation.to_be_bytes());
    string(bytes, client_id);
}

/// A length as the protocol has it; no buffer here comes near the limit.
#[must_use]
pub(crate) fn length(bytes: usize) -> i32 {
    i32::try_from(bytes).unwrap_or(i32::MAX)
}

/// Says how long a request is in all, its own length not counted.
pub(crate) fn set_length(bytes: &mut [u8], total: usize) {
    bytes[..4].copy_from_slice(&length(total).to_be_bytes());
}

/// Appends a string of at most 32 KB.
pub(crate) fn string(bytes: &mut Vec<u8>, text: &str) {
    bytes.extend_from_slice(&i16::try_from(text.len()).unwrap_or(i16::MAX).to_be_bytes());
    bytes.extend_from_slice(text.as_bytes());
}

/// Takes fields off an answer; every one may find that it has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WireReader<'a> {
    rest: &'a [u8],
}

/// An answer that ends too early or says what cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Malformed;

impl<'a> WireReader<'a> {
    /// Reads from the beginning of `bytes`.
    #[must_use]
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (field, rest) = self.rest.split_first_chunk::<N>().ok_or(Malformed)?;
        self.rest = rest;
        Ok(*field)
    }

    /// # Errors
    /// `Malformed` at the end.
    pub(crate) fn int16(&mut self) -> Result<i16, Malformed> {
        self.array().map(i16::from_be_bytes)
    }

    /// # Errors
    /// `Malformed` at the end.
    pub(crate) fn int32(&mut self) -> Result<i32, Malformed> {
        self.array().map(i32::from_be_bytes)
    }

    /// # Errors
    /// `Malformed` at the end.
    pub(crate) fn int64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_be_bytes)
    }

    /// How many elements follow; none for a null array.
    ///
    /// # Errors
    /// `Malformed` at the end, and when so many cannot follow.
    pub(crate) fn count(&mut self) -> Result<usize, Malformed> {
        let count = self.int32()?.max(0) as usize;
        // No element is smaller than a byte.
        if count > self.rest.len() { Err(Malformed) } else { Ok(count) }
    }

    /// A string; empty for a null one.
    ///
    /// # Errors
    /// `Malformed` at the end, and when it is not UTF-8.
    pub(crate) fn string(&mut self) -> Result<&'a str, Malformed> {
        let length = self.int16()?.max(0) as usize;
        std::str::from_utf8(self.take(length)?).map_err(|_| Malformed)
    }

    /// Bytes; none for null.
    ///
    /// # Errors
    /// `Malformed` at the end.
    pub(crate) fn bytes(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.int32()?.max(0) as usize;
        self.take(length)
    }

    /// The next `length` bytes.
    ///
    /// # Errors
    /// `Malformed` at the end.
    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self.rest.split_at_checked(length).ok_or(Malformed)?;
        self.rest = rest;
        Ok(taken)
    }
}
