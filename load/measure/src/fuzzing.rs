//! Decoding of fuzz inputs into values.

/// Reader of values from a fuzz input. Past its end values are 0, so that every input is valid.
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Creates a reader of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether the whole input has been read.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// Reads 2 bytes as a little-endian number.
    pub fn short(&mut self) -> usize {
        u16::from_le_bytes(self.array()).into()
    }

    /// Reads 4 bytes as a little-endian number.
    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// Reads 8 bytes as a little-endian number.
    pub fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// Reads 2 bytes as a number below `limit`; panics if `limit` is 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.short() % limit
    }

    /// Reads up to `most` bytes.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(most.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// Reads the rest of the input.
    pub fn rest(&mut self) -> &'a [u8] {
        std::mem::take(&mut self.rest)
    }

    fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut found = [0; N];
        let taken = self.bytes(N);
        found[..taken.len()].copy_from_slice(taken);
        found
    }
}
