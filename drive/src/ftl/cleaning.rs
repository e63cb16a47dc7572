//! Garbage collection: closes and opens superblocks, copies a victim's valid pages and erases it, at once or in steps.

use super::{Frontier, Ftl, Media, VictimPolicy};
use crate::memory::announce;

/// Garbage collection of one victim superblock, in progress.
pub(super) struct Cleaning {
    block: usize,
    /// Offsets below this one are already copied or invalid.
    cursor: u32,
    /// Pace, in 2^-16 pages: copies per host page, copies due but not yet made, and copies made in one step.
    copies_per_host_page: u64,
    copies_due: u64,
    chunk: u64,
}

const ONE_COPY: u64 = 1 << 16;

/// Number of clean superblocks at which a victim is collected at once whatever the pace: its copies may open one
/// superblock, and the host another one before the next victim is erased.
const LEAST_CLEAN: usize = 2;

impl<V: VictimPolicy> Ftl<V> {
    /// Replaces the full superblock of a frontier by a clean one, and collects garbage if too few clean ones are left.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room<M: Media>(&mut self, frontier: usize, media: &mut M) {
        // Copies may share this frontier and fill the superblock that was just opened.
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

    /// Collects a step of garbage after a host write: a victim's copies are spread evenly over the pages that the host
    /// can write until it must be erased.
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

    /// Finishes collecting the current victim, if there is one.
    pub(super) fn finish_cleaning<M: Media>(&mut self, media: &mut M) {
        self.copy(u32::MAX, media);
    }

    /// Selects a victim unless one is being collected. Returns `false` if that could not gain a superblock: fewer pages
    /// than one superblock's are invalid.
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
            // Prefetch once per word, not again after a pause in the middle of it.
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

    /// Prefetches the mapping table entries of the owners of the valid pages among 64 physical pages.
    #[inline(always)]
    fn announce_owners(&self, mut bits: u64, first_index: usize) {
        while bits != 0 {
            let index = first_index + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            announce(&self.map, self.owner[index] as usize);
        }
    }

    fn close(&mut self, frontier: usize) {
        // The last page's address: `end` itself lies in the next superblock where offsets use all their bits.
        let block = (self.frontiers[frontier].end - 1) >> self.offset_bits;
        self.closed_count += 1;
        self.closed_blocks += 1;
        self.closed_at[block as usize] = self.closed_count;
        self.victims.add(block, self.valid_pages[block as usize], self.closed_count);
    }

    /// Opens a clean superblock at a frontier; panics if there is none. All its pages count as valid from the start:
    /// that is not read before they are written, and pages overwritten before it is closed are subtracted as usual.
    #[expect(clippy::expect_used, reason = "the reserve that Shape::check demands keeps the pool from running dry")]
    pub(super) fn open(&mut self, frontier: usize) {
        let block = self.clean.pop_front().expect("a clean superblock");
        let pages = self.shape.pages_per_block;
        let next = block << self.offset_bits;
        let next_index = block as usize * pages as usize;
        self.frontiers[frontier] = Frontier { next, end: next + pages, next_index };
        self.valid_pages[block as usize] = pages;
        // Placement by recency must not take pages of an open superblock for old ones.
        self.closed_at[block as usize] = self.closed_count;
        let first_word = block as usize * self.words_per_block;
        let words = &mut self.valid[first_word..first_word + self.words_per_block];
        words.fill(u64::MAX);
        if let (Some(last), remainder @ 1..) = (words.last_mut(), pages % 64) {
            *last = (1 << remainder) - 1;
        }
    }
}
