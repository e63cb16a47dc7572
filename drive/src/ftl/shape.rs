//! Geometry of a translation layer: page and superblock counts, reserve, and placement of writes.

use crate::error::{Error, Result};

/// Rule by which a host write is assigned to a frontier (open superblock).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// Stream number given by the host, modulo the number of frontiers: multi-stream, or ideal hot/cold separation.
    Hint,
    /// Age, with two frontiers: a page goes to the hot one if half of `blocks` have not been closed since its last
    /// write.
    Recency,
}

/// Geometry of a flash translation layer. [`Geometry::check`] validates it.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Pages that the host can address.
    pub logical_pages: u32,
    /// Superblocks that hold data. Over-provisioning = their pages / `logical_pages` - 1.
    pub blocks: u32,
    /// Superblocks in addition to `blocks` that keep garbage collection possible: clean and open ones.
    pub reserve_blocks: u32,
    /// Pages per superblock, the unit of garbage collection and erasing.
    pub pages_per_block: u32,
    /// Pages programmed by one operation; a flush pads up to a multiple of this.
    pub pages_per_program: u32,
    /// Superblocks that host writes fill at the same time.
    pub frontiers: u32,
    /// Whether garbage collection copies into an open superblock of its own instead of the first frontier.
    pub copies_apart: bool,
    /// Rule by which a host write is assigned to a frontier.
    pub placement: Placement,
    /// Pages copied by one step of garbage collection between host writes; 0 collects a whole superblock at once.
    pub pacing_pages: u32,
    /// Pages in the write buffer: a partial write to one of the last `buffer_pages` pages costs no program.
    pub buffer_pages: u32,
}

impl Geometry {
    /// Returns the number of superblocks open at the same time.
    #[must_use]
    pub fn open_blocks(&self) -> u32 {
        self.frontiers + u32::from(self.copies_apart)
    }

    /// Returns the smallest reserve, in superblocks, with which garbage collection can always proceed: one per open
    /// superblock, and three so that neither an opening frontier nor the copies of one victim find no clean superblock.
    #[must_use]
    pub fn least_reserve(&self) -> u32 {
        self.open_blocks() + 3
    }

    /// Returns the number of superblocks of the drive, reserve included.
    #[must_use]
    pub fn total_blocks(&self) -> u32 {
        self.blocks + self.reserve_blocks
    }

    /// Returns the number of bits of a physical address that hold the offset in its superblock.
    #[must_use]
    pub fn offset_bits(&self) -> u32 {
        self.pages_per_block.next_power_of_two().trailing_zeros()
    }

    /// Returns the bytes of the mapping table, reverse map and validity bitmap.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        let physical_pages = u64::from(self.total_blocks()) * u64::from(self.pages_per_block);
        u64::from(self.logical_pages) * 4 + physical_pages * 4 + physical_pages / 8
    }

    /// Checks that a drive of this geometry can work.
    ///
    /// # Errors
    /// [`Error::Setting`] that names the setting to change.
    pub fn check(&self) -> Result<()> {
        let data_pages = u64::from(self.blocks) * u64::from(self.pages_per_block);
        let addresses = u64::from(self.total_blocks()) << self.offset_bits();
        if self.pages_per_block == 0 || self.blocks == 0 || self.logical_pages == 0 {
            return Err(Error::setting("blocks", "the drive has no pages: give it at least one superblock of pages"));
        }
        if addresses >= u64::from(u32::MAX) {
            let advice = "the drive has more than 2^32 pages: use a larger --page-size, or --scale";
            return Err(Error::setting("blocks", advice));
        }
        if self.frontiers == 0 || self.frontiers > 256 {
            return Err(Error::setting("frontiers", "must be between 1 and 256"));
        }
        if self.placement == Placement::Recency && self.frontiers != 2 {
            return Err(Error::setting("frontiers", "placement by recency needs exactly 2 frontiers"));
        }
        if self.reserve_blocks < self.least_reserve() {
            let advice = format!("cleaning needs at least {} superblocks in reserve", self.least_reserve());
            return Err(Error::setting("reserve-blocks", advice));
        }
        if u64::from(self.logical_pages) > data_pages {
            let advice = "the host sees more pages than there are: use more blocks or a smaller capacity";
            return Err(Error::setting("capacity", advice));
        }
        Ok(())
    }
}
