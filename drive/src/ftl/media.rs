//! Flash operations of the translation layer, as reported to the code that accounts for the time that they take.

/// Receives every operation in the order in which the layer decides on it. Nothing here flows back: the layer's decisions
/// are the same for every implementation. The default methods do nothing.
pub(crate) trait Media {
    /// A page of the host was put at `offset` of the superblock that `frontier` fills.
    #[inline(always)]
    fn host_page(&mut self, _frontier: usize, _offset: u32) {}
    /// Cleaning read the page at `source_offset` of its victim and put it at `offset` of the one that `frontier` fills.
    #[inline(always)]
    fn copied_page(&mut self, _frontier: usize, _offset: u32, _source_offset: u32) {}
    /// A page at `offset` was filled with nothing, to complete a program operation.
    #[inline(always)]
    fn padded_page(&mut self, _frontier: usize, _offset: u32) {}
    /// A superblock was erased.
    #[inline(always)]
    fn erased(&mut self) {}
}

/// Flash whose operations take no time.
pub(crate) struct Untimed;

impl Media for Untimed {}
