//! The shape of a translation layer: how many pages there are, and how writes are placed.

use crate::error::{Error, Result};

/// Which frontier (superblock being filled) a host write goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// By the stream that the host names, modulo the number of frontiers: multi-stream, or oracle hot/cold separation.
    Hint,
    /// Two frontiers: a page whose last version is younger than half the drive goes to the hot one.
    Recency,
}

/// Sizes and placement of a flash translation layer. Build it, then have [`Geometry::check`] prove that it can work.
#[derive(Clone, Debug)]
pub struct Geometry {
    /// Pages that the host can address.
    pub logical_pages: u32,
    /// Superblocks that hold data. Over-provisioning is these against `logical_pages`.
    pub blocks: u32,
    /// Superblocks on top of `blocks` that keep cleaning possible: clean ones and those being filled.
    pub reserve_blocks: u32,
    /// Pages of one superblock, the unit of cleaning and erasing.
    pub pages_per_block: u32,
    /// Pages programmed by one operation; what padding fills up to.
    pub pages_per_program: u32,
    /// Superblocks that host writes fill at the same time.
    pub frontiers: u32,
    /// Whether copies made by cleaning fill a superblock of their own rather than share the first frontier.
    pub copies_apart: bool,
    /// How host writes choose among the frontiers.
    pub placement: Placement,
    /// Pages that cleaning copies in one go before the host gets a turn; 0 cleans a whole superblock at once.
    pub pacing_pages: u32,
    /// Pages that the write buffer holds: a partial write to one of the last so many pages costs no program.
    pub buffer_pages: u32,
}

impl Geometry {
    /// The superblocks kept open at the same time.
    #[must_use]
    pub fn open_blocks(&self) -> u32 {
        self.frontiers + u32::from(self.copies_apart)
    }

    /// The smallest reserve with which cleaning can always go on: one per open superblock, and three so that neither an
    /// opening frontier nor the copies of one victim find the pool empty.
    #[must_use]
    pub fn least_reserve(&self) -> u32 {
        self.open_blocks() + 3
    }

    /// All superblocks of the drive.
    #[must_use]
    pub fn total_blocks(&self) -> u32 {
        self.blocks + self.reserve_blocks
    }

    /// Bits of a physical address that hold the offset in its superblock.
    #[must_use]
    pub fn offset_bits(&self) -> u32 {
        self.pages_per_block.next_power_of_two().trailing_zeros()
    }

    /// Bytes of the tables that grow with the drive.
    #[must_use]
    pub fn table_bytes(&self) -> u64 {
        let physical_pages = u64::from(self.total_blocks()) * u64::from(self.pages_per_block);
        u64::from(self.logical_pages) * 4 + physical_pages * 4 + physical_pages / 8
    }

    /// # Errors
    /// [`Error::Setting`] that names the setting to change when a drive of this shape could not work.
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
