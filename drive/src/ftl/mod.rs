//! Page-mapped flash translation layer (FTL): maps logical to physical pages, places writes and collects garbage.
//!
//! A physical address has the superblock number in its upper bits and the page offset in a fixed number of lower bits,
//! so the hot path needs no division. Memory that grows with the drive: 4 bytes per logical page (mapping table), 4
//! bytes per physical page (reverse map) and one bit per physical page (validity).

mod cleaning;
mod media;
mod shape;
mod state;
mod victim;

pub(crate) use media::{Media, Untimed};
pub(crate) use shape::{Geometry, Placement};
pub(crate) use state::SavedLayer;
pub(crate) use victim::{CostBenefit, Fifo, Greedy, VictimPolicy};

use crate::error::{Error, Result};
use crate::memory::{announce, available_bytes, table};
use cleaning::Cleaning;
use std::collections::VecDeque;

/// Sentinel: address of an unmapped logical page, and owner of a physical page that has none.
const NOWHERE: u32 = u32::MAX;

/// Counts of pages written, copied, padded and trimmed, and of superblocks erased, since the drive was new.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Counters {
    /// Pages written by the host, including partial writes merged in the write buffer.
    pub host_pages: u64,
    /// Partial writes merged with their page in the write buffer, which cost no program; part of `host_pages`.
    pub merged_pages: u64,
    /// Partial writes that first read the old page (read-modify-write).
    pub rewritten_pages: u64,
    /// Valid pages copied by garbage collection.
    pub copied_pages: u64,
    /// Empty pages programmed to complete a program operation.
    pub padded_pages: u64,
    /// Mapped pages invalidated by TRIM.
    pub trimmed_pages: u64,
    /// Superblocks erased.
    pub erased_blocks: u64,
}

impl Counters {
    /// Returns the pages programmed on the flash: host pages that were not merged, copies and padding.
    #[must_use]
    pub fn media_pages(&self) -> u64 {
        self.host_pages - self.merged_pages + self.copied_pages + self.padded_pages
    }
}

/// Write frontier: an open superblock, filled page by page; full when `next == end`.
#[derive(Clone, Copy, Default)]
struct Frontier {
    next: u32,
    end: u32,
    /// Index in `owner` of the page at `next`.
    next_index: usize,
}

/// Write buffer entry: a page, and the count of host pages at its last partial write.
#[derive(Clone, Copy)]
struct Buffered {
    page: u32,
    at: u64,
}

/// Flash translation layer of one drive, with the victim policy `V`.
pub(crate) struct Ftl<V> {
    shape: Geometry,
    offset_bits: u32,
    words_per_block: usize,
    /// Mapping table: logical page → physical address.
    map: Vec<u32>,
    /// Reverse map: physical page (densely numbered) → logical page. Correct only for valid pages.
    owner: Vec<u32>,
    /// Validity bitmap: one bit per physical page, whole words per superblock.
    valid: Vec<u64>,
    valid_pages: Vec<u32>,
    closed_at: Vec<u64>,
    closed_count: u64,
    closed_blocks: u32,
    mapped_pages: u32,
    clean: VecDeque<u32>,
    frontiers: Vec<Frontier>,
    victims: V,
    cleaning: Option<Cleaning>,
    buffered: Vec<Buffered>,
    counters: Counters,
}

impl<V: VictimPolicy> Ftl<V> {
    /// Creates the layer of a new drive, on which no logical page is mapped.
    ///
    /// # Errors
    /// Those of [`Geometry::check`], and [`Error::Setting`] if the tables need more memory than is available.
    pub(crate) fn new(shape: Geometry) -> Result<Self> {
        shape.check()?;
        let (needed, available) = (shape.table_bytes(), available_bytes().unwrap_or(u64::MAX));
        if needed > available {
            let advice = format!(
                "the drive needs {needed} bytes of memory of which {available} are free: use --scale, a larger --page-size or a smaller drive"
            );
            return Err(Error::setting("capacity", advice));
        }
        let blocks = shape.total_blocks() as usize;
        let words_per_block = shape.pages_per_block.div_ceil(64) as usize;
        let nothing = Buffered { page: NOWHERE, at: 0 };
        let mut ftl = Self {
            offset_bits: shape.offset_bits(),
            words_per_block,
            map: table(shape.logical_pages as usize, NOWHERE),
            owner: table(blocks * shape.pages_per_block as usize, NOWHERE),
            valid: table(blocks * words_per_block, 0),
            valid_pages: vec![0; blocks],
            closed_at: vec![0; blocks],
            closed_count: 0,
            closed_blocks: 0,
            mapped_pages: 0,
            clean: (0..shape.total_blocks()).collect(),
            frontiers: vec![Frontier::default(); shape.open_blocks() as usize],
            victims: V::new(shape.total_blocks(), shape.pages_per_block),
            cleaning: None,
            buffered: vec![nothing; shape.buffer_pages.next_power_of_two() as usize],
            counters: Counters::default(),
            shape,
        };
        (0..ftl.frontiers.len()).for_each(|frontier| ftl.open(frontier));
        Ok(ftl)
    }

    /// Writes one whole logical page and collects garbage where that is due. `stream` is the host's hint for
    /// [`Placement::Hint`]. Panics if `page` is not below the geometry's `logical_pages`.
    #[inline]
    pub(crate) fn write<M: Media>(&mut self, page: u32, stream: u32, media: &mut M) {
        let frontier = self.frontier_for(page, stream);
        if self.frontiers[frontier].next == self.frontiers[frontier].end {
            self.make_room(frontier, media);
        }
        // Read after `make_room`, which may have moved the page.
        let old = self.map[page as usize];
        if old == NOWHERE {
            self.mapped_pages += 1;
        } else {
            self.invalidate(old);
        }
        let offset = self.program(page, frontier);
        self.counters.host_pages += 1;
        media.host_page(frontier, offset);
        if self.shape.pacing_pages != 0 && self.clean.len() < self.shape.reserve_blocks as usize {
            self.clean_a_little(media);
        }
    }

    /// Writes part of a logical page. Costs nothing while the page is in the write buffer; otherwise a read of the old
    /// page (if it is mapped) and a whole program.
    pub(crate) fn write_part<M: Media>(&mut self, page: u32, stream: u32, media: &mut M) -> PartialWrite {
        let slot = page as usize & (self.buffered.len() - 1);
        let Buffered { page: waiting, at } = self.buffered[slot];
        let buffer_pages = u64::from(self.shape.buffer_pages);
        if waiting == page && self.counters.host_pages - at <= buffer_pages && self.map[page as usize] != NOWHERE {
            self.counters.host_pages += 1;
            self.counters.merged_pages += 1;
            return PartialWrite::Merged;
        }
        self.buffered[slot] = Buffered { page, at: self.counters.host_pages };
        let old = self.locate(page);
        self.write(page, stream, media);
        match old {
            Some(location) => {
                self.counters.rewritten_pages += 1;
                PartialWrite::Rewrote(location)
            }
            None => PartialWrite::New,
        }
    }

    /// Trims (discards) a logical page: unmaps it and invalidates its physical page.
    pub(crate) fn trim(&mut self, page: u32) {
        let old = std::mem::replace(&mut self.map[page as usize], NOWHERE);
        if old != NOWHERE {
            self.invalidate(old);
            self.mapped_pages -= 1;
            self.counters.trimmed_pages += 1;
        }
    }

    /// Pads every partly filled program operation of the host's frontiers with empty pages, as a flush does on a drive
    /// whose write buffer does not survive a loss of power.
    pub(crate) fn pad<M: Media>(&mut self, media: &mut M) {
        for frontier in 0..self.shape.frontiers as usize {
            while !(self.frontiers[frontier].next & self.offset_mask()).is_multiple_of(self.shape.pages_per_program)
                && self.frontiers[frontier].next != self.frontiers[frontier].end
            {
                let Frontier { next, next_index, .. } = &mut self.frontiers[frontier];
                let address = *next;
                self.owner[*next_index] = NOWHERE;
                *next += 1;
                *next_index += 1;
                self.invalidate(address);
                self.counters.padded_pages += 1;
                media.padded_page(frontier, address & self.offset_mask());
            }
        }
    }

    /// Returns the offset of a logical page in its superblock, `None` if the page is unmapped.
    #[inline]
    #[must_use]
    pub(crate) fn locate(&self, page: u32) -> Option<u32> {
        let address = self.map[page as usize];
        (address != NOWHERE).then_some(address & self.offset_mask())
    }

    /// Prefetches the mapping table entry of `page`, ahead of a write to it.
    #[inline(always)]
    pub(crate) fn announce_map(&self, page: u32) {
        announce(&self.map, page as usize);
    }

    /// Prefetches the validity word of the old version of `page`, whose mapping table entry is already in the cache.
    #[inline(always)]
    pub(crate) fn announce_old(&self, page: u32) {
        let old = self.map[page as usize];
        if old != NOWHERE {
            let (block, offset) = self.split(old);
            announce(&self.valid, block * self.words_per_block + offset as usize / 64);
        }
    }

    /// Returns the page counts since the drive was new.
    #[must_use]
    pub(crate) fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns the geometry of the layer.
    #[must_use]
    pub(crate) fn shape(&self) -> &Geometry {
        &self.shape
    }

    /// Returns the number of mapped logical pages: written and not trimmed.
    #[must_use]
    pub(crate) fn mapped_pages(&self) -> u32 {
        self.mapped_pages
    }

    /// Returns mapped logical pages / all physical pages.
    #[must_use]
    pub(crate) fn mapped_ratio(&self) -> f64 {
        f64::from(self.mapped_pages) / (f64::from(self.shape.total_blocks()) * f64::from(self.shape.pages_per_block))
    }

    /// Returns clean superblocks (erased and not open) / all superblocks.
    #[must_use]
    pub(crate) fn clean_ratio(&self) -> f64 {
        self.clean.len() as f64 / f64::from(self.shape.total_blocks())
    }

    /// Whether no more superblocks than the reserve are clean, so that garbage collection has to keep up with the host.
    #[must_use]
    pub(crate) fn is_out_of_clean_blocks(&self) -> bool {
        self.clean.len() <= self.shape.reserve_blocks as usize
    }

    /// Returns the bytes of memory of the layer's tables, including the victim policy's.
    #[must_use]
    pub(crate) fn memory_bytes(&self) -> usize {
        (self.map.capacity() + self.owner.capacity() + self.valid_pages.capacity() + self.clean.capacity()) * 4
            + (self.valid.capacity() + self.closed_at.capacity()) * 8
            + self.buffered.capacity() * size_of::<Buffered>()
            + self.victims.memory_bytes()
    }

    #[inline(always)]
    fn offset_mask(&self) -> u32 {
        (1 << self.offset_bits) - 1
    }

    /// Splits a physical address into superblock and offset.
    #[inline(always)]
    fn split(&self, address: u32) -> (usize, u32) {
        ((address >> self.offset_bits) as usize, address & self.offset_mask())
    }

    #[inline(always)]
    fn frontier_for(&self, page: u32, stream: u32) -> usize {
        if self.shape.frontiers == 1 {
            return 0;
        }
        match self.shape.placement {
            Placement::Hint => (stream % self.shape.frontiers) as usize,
            Placement::Recency => match self.map[page as usize] {
                NOWHERE => 0,
                address => {
                    let age = self.closed_count - self.closed_at[(address >> self.offset_bits) as usize];
                    usize::from(age < u64::from(self.shape.blocks / 2))
                }
            },
        }
    }

    /// Programs `page` at the frontier, which must have room, maps it there and returns the offset.
    #[inline(always)]
    fn program(&mut self, page: u32, frontier: usize) -> u32 {
        let Frontier { next, next_index, .. } = &mut self.frontiers[frontier];
        let address = *next;
        self.owner[*next_index] = page;
        *next += 1;
        *next_index += 1;
        self.map[page as usize] = address;
        address & self.offset_mask()
    }

    #[inline(always)]
    fn invalidate(&mut self, address: u32) {
        let (block, offset) = self.split(address);
        self.valid[block * self.words_per_block + offset as usize / 64] &= !(1 << (offset % 64));
        self.valid_pages[block] -= 1;
        self.victims.page_died(block as u32, self.valid_pages[block]);
    }
}

/// Flash operations caused by a partial write of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PartialWrite {
    /// None: the page was still in the write buffer.
    Merged,
    /// A program; the page was unmapped before.
    New,
    /// A read of the old page at this offset of its superblock, and a program (read-modify-write).
    Rewrote(u32),
}

#[cfg(test)]
mod tests;
