//! Flash operations of the translation layer, reported to a timing model.

/// Observer of flash operations, called in the order in which the translation layer decides on them. The layer's
/// decisions do not depend on the implementation. The default methods do nothing.
pub(crate) trait Media {
    /// Called when a host page is programmed at `offset` of the superblock open at `frontier`.
    #[inline(always)]
    fn host_page(&mut self, _frontier: usize, _offset: u32) {}
    /// Called when garbage collection copies the page at `source_offset` of its victim to `offset` of the superblock
    /// open at `frontier`.
    #[inline(always)]
    fn copied_page(&mut self, _frontier: usize, _offset: u32, _source_offset: u32) {}
    /// Called when an empty page is programmed at `offset` to complete a program operation.
    #[inline(always)]
    fn padded_page(&mut self, _frontier: usize, _offset: u32) {}
    /// Called when a superblock is erased.
    #[inline(always)]
    fn erased(&mut self) {}
}

/// [`Media`] without a timing model: operations take no time.
pub(crate) struct Untimed;

impl Media for Untimed {}
