//! Making room: closing and opening superblocks, and cleaning them all at once or a little at a time.

use super::{Frontier, Ftl, Media, VictimPolicy};
use crate::memory::announce;

/// A superblock whose valid pages are being copied away.
pub(super) struct Cleaning {
    block: usize,
    /// Offsets below this one are done with.
    cursor: u32,
    /// Copies due per host page, copies due but not yet made, and how many to make in one go, in 2^-16 pages.
    copies_per_host_page: u64,
    copies_due: u64,
    chunk: u64,
}

const ONE_COPY: u64 = 1 << 16;

/// With no more clean superblocks than this, a victim is cleaned at once whatever the pace: its copies may open one, and
/// the host another one before the next victim is done.
const LEAST_CLEAN: usize = 2;

impl<V: VictimPolicy> Ftl<V> {
    /// Gives a frontier that is full a new superblock, and has superblocks cleaned where that leaves too few.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room<M: Media>(&mut self, frontier: usize, media: &mut M) {
        // Copies share the first frontier, and may fill to the brim what was just opened.
        while self.frontiers[frontier].next == self.frontiers[frontier].end {
            self.close(frontier);
            self.open(frontier);
            let wanted = match self.shape.pacing_pages {
                0 => self.shape.reserve_blocks as usize,
                _ => LEAST_CLEAN + 1,
            };
            while self.clean.len() < wanted && self.begin_cleaning() {
                self.copy(u32::MAX, media);
            }
        }
    }

    /// Spreads the cleaning of a victim evenly over the pages that the host can write until it must be done.
    pub(super) fn clean_a_little<M: Media>(&mut self, media: &mut M) {
        if !self.begin_cleaning() {
            return;
        }
        let is_urgent = self.clean.len() <= LEAST_CLEAN;
        if let Some(cleaning) = &mut self.cleaning {
            cleaning.copies_due += cleaning.copies_per_host_page;
            if is_urgent {
                self.copy(u32::MAX, media);
            } else if cleaning.copies_due >= cleaning.chunk {
                let due = (cleaning.copies_due / ONE_COPY) as u32;
                cleaning.copies_due %= ONE_COPY;
                self.copy(due, media);
            }
        }
    }

    /// Cleans the victim under way, if there is one, to its end.
    pub(super) fn finish_cleaning<M: Media>(&mut self, media: &mut M) {
        self.copy(u32::MAX, media);
    }

    /// Makes sure that a victim is being cleaned. `false` if cleaning could not gain a superblock: everything on the
    /// drive is valid but for less than one superblock's worth.
    fn begin_cleaning(&mut self) -> bool {
        if self.cleaning.is_some() {
            return true;
        }
        let pages_per_block = u64::from(self.shape.pages_per_block);
        if u64::from(self.closed_blocks) * pages_per_block < u64::from(self.mapped_pages) + pages_per_block {
            return false;
        }
        let Some(block) = self.victims.take(self.closed_count) else { return false };
        self.closed_blocks -= 1;
        let copies = u64::from(self.valid_pages[block as usize]);
        self.cleaning = Some(Cleaning {
            block: block as usize,
            cursor: 0,
            copies_per_host_page: copies * ONE_COPY / (pages_per_block - copies).max(1) + 1,
            copies_due: 0,
            chunk: copies.min(u64::from(self.shape.pacing_pages)) * ONE_COPY,
        });
        true
    }

    /// Copies up to `limit` valid pages of the victim, and erases it after the last one.
    fn copy<M: Media>(&mut self, limit: u32, media: &mut M) {
        let Some(Cleaning { block, mut cursor, .. }) = self.cleaning else { return };
        let first_word = block * self.words_per_block;
        let first_index = block * self.shape.pages_per_block as usize;
        let copy_frontier = if self.shape.copies_apart { self.shape.frontiers as usize } else { 0 };
        let mut left = limit;
        while cursor < self.shape.pages_per_block {
            let word = cursor as usize / 64;
            let mut bits = self.valid[first_word + word] & (u64::MAX << (cursor % 64));
            // Once for each word, not again where a pause was made in the middle of it.
            if cursor.is_multiple_of(64) && word + 1 < self.words_per_block {
                self.announce_owners(self.valid[first_word + word + 1], first_index + (word + 1) * 64);
            }
            while bits != 0 {
                if left == 0 {
                    return self.pause_at(cursor);
                }
                left -= 1;
                let offset = word as u32 * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if self.frontiers[copy_frontier].next == self.frontiers[copy_frontier].end {
                    self.close(copy_frontier);
                    self.open(copy_frontier);
                }
                let target = self.program(self.owner[first_index + offset as usize], copy_frontier);
                self.counters.copied_pages += 1;
                media.copied_page(copy_frontier, target, offset);
                cursor = offset + 1;
            }
            cursor = (word as u32 + 1) * 64;
        }
        self.cleaning = None;
        self.clean.push_back(block as u32);
        self.counters.erased_blocks += 1;
        media.erased();
    }

    fn pause_at(&mut self, cursor: u32) {
        if let Some(cleaning) = &mut self.cleaning {
            cleaning.cursor = cursor;
        }
    }

    /// Announces the map entries of 64 physical pages' owners, of those that are valid.
    #[inline(always)]
    fn announce_owners(&self, mut bits: u64, first_index: usize) {
        while bits != 0 {
            let index = first_index + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            announce(&self.map, self.owner[index] as usize);
        }
    }

    fn close(&mut self, frontier: usize) {
        // The last page's address, because `end` belongs to the next superblock where offsets fill all their bits.
        let block = (self.frontiers[frontier].end - 1) >> self.offset_bits;
        self.closed_count += 1;
        self.closed_blocks += 1;
        self.closed_at[block as usize] = self.closed_count;
        self.victims.add(block, self.valid_pages[block as usize], self.closed_count);
    }

    /// Opens a clean superblock. All its pages count as valid from here on: that is not read before they are written,
    /// and each that is overwritten before the superblock is closed is taken off like any other.
    #[expect(clippy::expect_used, reason = "the reserve that Shape::check demands keeps the pool from running dry")]
    pub(super) fn open(&mut self, frontier: usize) {
        let block = self.clean.pop_front().expect("a clean superblock");
        let pages = self.shape.pages_per_block;
        let next = block << self.offset_bits;
        let next_index = block as usize * pages as usize;
        self.frontiers[frontier] = Frontier { next, end: next + pages, next_index };
        self.valid_pages[block as usize] = pages;
        // The young must not look old to placement by recency while they are still open.
        self.closed_at[block as usize] = self.closed_count;
        let first_word = block as usize * self.words_per_block;
        let words = &mut self.valid[first_word..first_word + self.words_per_block];
        words.fill(u64::MAX);
        if let (Some(last), remainder @ 1..) = (words.last_mut(), pages % 64) {
            *last = (1 << remainder) - 1;
        }
    }
}
