//! What a fuzz target makes of its input.

/// Takes values off an input. At its end they are 0, so that every input says something.
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// All of `bytes`.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// True when nothing is left.
    pub fn is_over(&self) -> bool {
        self.rest.is_empty()
    }

    /// The next byte.
    pub fn byte(&mut self) -> u8 {
        self.array::<1>()[0]
    }

    /// The next 2 bytes, as a number.
    pub fn short(&mut self) -> usize {
        u16::from_le_bytes(self.array()).into()
    }

    /// The next 4 bytes, as a number.
    pub fn word(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    /// The next 8 bytes, as a number.
    pub fn long(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    /// A number below `limit`, which is not 0.
    pub fn below(&mut self, limit: usize) -> usize {
        self.short() % limit
    }

    /// The next bytes, at most so many.
    pub fn bytes(&mut self, most: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(most.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// All that is left.
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
