//! Saved state of a translation layer, with which an aged drive stays aged; the reverse map and validity are derived.

use super::{Counters, Frontier, Ftl, Geometry, NOWHERE, Untimed, VictimPolicy};
use serde::{Deserialize, Serialize};

/// State of a translation layer that has no victim partly collected.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedLayer {
    /// Geometry that must match on restore: logical pages, superblocks, pages per superblock, open superblocks.
    sizes: [u32; 4],
    counters: Counters,
    closed_at: Vec<u64>,
    closed_count: u64,
    /// Clean (erased) superblocks in the order in which they will be used.
    clean: Vec<u32>,
    /// Next and end physical address of each write frontier.
    frontiers: Vec<[u32; 2]>,
    /// Bytes written by the host, set by the caller that saves: the layer counts a partial write as a page.
    pub host_bytes: u64,
    /// Mapping table: logical page → physical address.
    #[serde(skip)]
    pub map: Vec<u32>,
}

fn sizes(shape: &Geometry) -> [u32; 4] {
    [shape.logical_pages, shape.total_blocks(), shape.pages_per_block, shape.open_blocks()]
}

impl<V: VictimPolicy> Ftl<V> {
    /// Finishes garbage collection in progress and returns the state, with `host_bytes` 0.
    pub(crate) fn save(&mut self) -> SavedLayer {
        self.finish_cleaning(&mut Untimed);
        SavedLayer {
            sizes: sizes(&self.shape),
            counters: self.counters,
            closed_at: self.closed_at.clone(),
            closed_count: self.closed_count,
            clean: self.clean.iter().copied().collect(),
            frontiers: self.frontiers.iter().map(|frontier| [frontier.next, frontier.end]).collect(),
            host_bytes: 0,
            map: self.map.clone(),
        }
    }

    /// Restores a saved state. Returns `None` if it is damaged or of another geometry; the layer must not be used then.
    pub(crate) fn restore(&mut self, state: SavedLayer) -> Option<()> {
        let blocks = self.shape.total_blocks();
        let fits = state.sizes == sizes(&self.shape)
            && state.map.len() == self.map.len()
            && state.closed_at.len() == blocks as usize
            && state.frontiers.len() == self.frontiers.len()
            && state.clean.iter().all(|&block| block < blocks);
        if !fits {
            return None;
        }
        (self.counters, self.closed_at, self.closed_count) = (state.counters, state.closed_at, state.closed_count);
        self.clean = state.clean.into();
        self.victims = V::new(blocks, self.shape.pages_per_block);
        self.valid.fill(0);
        self.valid_pages.fill(0);
        self.mapped_pages = 0;
        let mut is_closed = vec![true; blocks as usize];
        self.clean.iter().for_each(|&block| is_closed[block as usize] = false);
        for (frontier, &[next, end]) in state.frontiers.iter().enumerate() {
            is_closed[self.restore_frontier(frontier, next, end)?] = false;
        }
        for (page, &address) in state.map.iter().enumerate().filter(|&(_, &address)| address != NOWHERE) {
            let (block, offset) = self.split(address);
            if block >= blocks as usize || offset >= self.shape.pages_per_block {
                return None;
            }
            self.owner[block * self.shape.pages_per_block as usize + offset as usize] = page as u32;
            self.valid[block * self.words_per_block + offset as usize / 64] |= 1 << (offset % 64);
            self.valid_pages[block] += 1;
            self.mapped_pages += 1;
        }
        self.map = state.map;
        self.restore_closed(&is_closed);
        Some(())
    }

    /// Restores a frontier, with its unwritten pages counted as valid as in [`Ftl::open`]; returns its superblock.
    fn restore_frontier(&mut self, frontier: usize, next: u32, end: u32) -> Option<usize> {
        let block = (end.checked_sub(1)? >> self.offset_bits) as usize;
        let pages = self.shape.pages_per_block;
        let start = (block as u32) << self.offset_bits;
        if block >= self.shape.total_blocks() as usize || end != start + pages || !(start..=end).contains(&next) {
            return None;
        }
        let next_index = block * pages as usize + (next - start) as usize;
        self.frontiers[frontier] = Frontier { next, end, next_index };
        for offset in next - start..pages {
            self.valid[block * self.words_per_block + offset as usize / 64] |= 1 << (offset % 64);
            self.valid_pages[block] += 1;
        }
        Some(block)
    }

    /// Adds the closed superblocks to the victim policy, oldest first.
    fn restore_closed(&mut self, is_closed: &[bool]) {
        let mut closed: Vec<u32> = (0..is_closed.len() as u32).filter(|&block| is_closed[block as usize]).collect();
        closed.sort_by_key(|&block| self.closed_at[block as usize]);
        self.closed_blocks = closed.len() as u32;
        for block in closed {
            self.victims.add(block, self.valid_pages[block as usize], self.closed_at[block as usize]);
        }
    }
}
