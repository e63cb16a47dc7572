//! Victim selection for garbage collection: the policy interface, and the greedy, FIFO and cost-benefit policies.

/// Victim policy of garbage collection. `time` is the number of superblocks closed so far.
pub(crate) trait VictimPolicy {
    /// Creates an empty policy for a drive of `blocks` superblocks with `pages_per_block` pages each.
    fn new(blocks: u32, pages_per_block: u32) -> Self;

    /// Adds a superblock that was closed, of which `valid_pages` pages are valid.
    fn add(&mut self, block: u32, valid_pages: u32, time: u64);

    /// Updates `block` after one of its pages became invalid; `valid_pages` are left. Also called for superblocks that
    /// are not closed, which are never victims.
    fn page_died(&mut self, block: u32, valid_pages: u32);

    /// Removes and returns the next victim, `None` if no superblock is closed.
    fn take(&mut self, time: u64) -> Option<u32>;

    /// Returns the bytes of memory of the policy's tables.
    fn memory_bytes(&self) -> usize;
}

const UNLISTED: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct ListNode {
    previous: u32,
    next: u32,
}

/// Lists of superblocks, one per class and each in order of insertion; every operation takes constant time. The lists
/// are circular through one sentinel per class, so removal has no special cases.
struct Classes {
    links: Vec<ListNode>,
    sentinels_from: u32,
}

impl Classes {
    fn new(blocks: u32, classes: u32) -> Self {
        let unlisted = ListNode { previous: UNLISTED, next: UNLISTED };
        let mut links = vec![unlisted; (blocks + classes) as usize];
        for sentinel in blocks..blocks + classes {
            links[sentinel as usize] = ListNode { previous: sentinel, next: sentinel };
        }
        Self { links, sentinels_from: blocks }
    }

    #[inline]
    fn is_listed(&self, block: u32) -> bool {
        self.links[block as usize].next != UNLISTED
    }

    #[inline]
    fn append(&mut self, block: u32, class: u32) {
        let sentinel = self.sentinels_from + class;
        let last = self.links[sentinel as usize].previous;
        self.links[block as usize] = ListNode { previous: last, next: sentinel };
        self.links[last as usize].next = block;
        self.links[sentinel as usize].previous = block;
    }

    #[inline]
    fn remove(&mut self, block: u32) {
        let ListNode { previous, next } = self.links[block as usize];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        self.links[block as usize].next = UNLISTED;
    }

    #[inline]
    fn first(&self, class: u32) -> Option<u32> {
        let sentinel = self.sentinels_from + class;
        let first = self.links[sentinel as usize].next;
        (first != sentinel).then_some(first)
    }

    fn memory_bytes(&self) -> usize {
        self.links.capacity() * size_of::<ListNode>()
    }
}

/// Greedy policy: selects the superblock with the fewest valid pages, among equals the one longest at that number.
///
/// Only superblocks with few valid pages are in the lists. For the others, the count and the time of its last change
/// are stored, so that invalidating a page, the most frequent event, mostly writes one table entry. When the lists are
/// empty, the emptiest share of the others is listed, which scans all of them but is rare.
pub(crate) struct Greedy {
    by_valid_pages: Classes,
    notes: Vec<BlockNote>,
    /// Number of changes to superblocks so far; the time in `notes`.
    events: u64,
    /// Closed superblocks with fewer valid pages than this are listed, all others are not.
    listed_below: u32,
    /// No superblock is listed in a class below this one.
    lowest: u32,
    listed: u32,
    closed: u32,
    /// Scratch space of [`Greedy::list_emptiest`].
    candidates: Vec<(u32, u64, u32)>,
}

/// State of one superblock.
#[derive(Clone, Copy, Default)]
struct BlockNote {
    /// Time of the last change of `valid_pages`, in events.
    since: u64,
    valid_pages: u32,
    is_closed: bool,
}

impl Greedy {
    /// Divisors of the closed superblocks: 1/32 are listed at a time, and above 1/8 the lists are shortened.
    const LISTED_SHARE: u32 = 32;
    const MOST_LISTED_SHARE: u32 = 8;

    #[inline]
    fn note(&mut self, block: u32, valid_pages: u32) -> &mut BlockNote {
        let note = &mut self.notes[block as usize];
        (note.since, note.valid_pages) = (self.events, valid_pages);
        self.events += 1;
        note
    }

    #[inline(never)]
    fn list(&mut self, block: u32, valid_pages: u32) {
        if self.by_valid_pages.is_listed(block) {
            self.by_valid_pages.remove(block);
        } else {
            self.listed += 1;
        }
        self.by_valid_pages.append(block, valid_pages);
        self.lowest = self.lowest.min(valid_pages);
        if self.listed > self.closed / Self::MOST_LISTED_SHARE {
            self.list_fewer();
        }
    }

    /// Removes the superblocks with the most valid pages from the lists, as long as enough are left.
    fn list_fewer(&mut self) {
        while self.listed > self.closed / Self::LISTED_SHARE && self.listed_below > self.lowest + 1 {
            self.listed_below -= 1;
            while let Some(block) = self.by_valid_pages.first(self.listed_below) {
                self.by_valid_pages.remove(block);
                self.listed -= 1;
            }
        }
    }

    /// Lists the closed superblocks with the fewest valid pages. None may be listed yet, and at least one must be
    /// closed.
    fn list_emptiest(&mut self) {
        self.candidates.clear();
        let closed = (0..).zip(&self.notes).filter(|(_, note)| note.is_closed);
        self.candidates.extend(closed.map(|(block, note)| (note.valid_pages, note.since, block)));
        let last = self.candidates.len() / Self::LISTED_SHARE as usize;
        let (_, &mut (valid_pages, ..), _) = self.candidates.select_nth_unstable(last);
        self.listed_below = valid_pages + 1;
        self.candidates.retain(|&(valid_pages, ..)| valid_pages < self.listed_below);
        self.candidates.sort_unstable();
        for &(valid_pages, _, block) in &self.candidates {
            self.by_valid_pages.append(block, valid_pages);
        }
        self.lowest = self.candidates[0].0;
        self.listed = self.candidates.len() as u32;
    }
}

impl VictimPolicy for Greedy {
    fn new(blocks: u32, pages_per_block: u32) -> Self {
        Self {
            by_valid_pages: Classes::new(blocks, pages_per_block + 1),
            notes: vec![BlockNote::default(); blocks as usize],
            events: 0,
            listed_below: 0,
            lowest: 0,
            listed: 0,
            closed: 0,
            candidates: Vec::with_capacity(blocks as usize),
        }
    }

    fn add(&mut self, block: u32, valid_pages: u32, _time: u64) {
        self.note(block, valid_pages).is_closed = true;
        self.closed += 1;
        if valid_pages < self.listed_below {
            self.list(block, valid_pages);
        }
    }

    #[inline(always)]
    fn page_died(&mut self, block: u32, valid_pages: u32) {
        if self.note(block, valid_pages).is_closed && valid_pages < self.listed_below {
            self.list(block, valid_pages);
        }
    }

    fn take(&mut self, _time: u64) -> Option<u32> {
        if self.closed == 0 {
            return None;
        }
        if self.listed == 0 {
            self.list_emptiest();
        }
        loop {
            if let Some(block) = self.by_valid_pages.first(self.lowest) {
                self.by_valid_pages.remove(block);
                self.notes[block as usize].is_closed = false;
                self.listed -= 1;
                self.closed -= 1;
                return Some(block);
            }
            self.lowest += 1;
        }
    }

    fn memory_bytes(&self) -> usize {
        self.by_valid_pages.memory_bytes()
            + self.notes.capacity() * size_of::<BlockNote>()
            + self.candidates.capacity() * size_of::<(u32, u64, u32)>()
    }
}

/// First-in-first-out policy: selects the superblock that was closed longest ago.
pub(crate) struct Fifo {
    closed: std::collections::VecDeque<u32>,
}

impl VictimPolicy for Fifo {
    fn new(blocks: u32, _pages_per_block: u32) -> Self {
        Self { closed: std::collections::VecDeque::with_capacity(blocks as usize) }
    }

    fn add(&mut self, block: u32, _valid_pages: u32, _time: u64) {
        self.closed.push_back(block);
    }

    #[inline]
    fn page_died(&mut self, _block: u32, _valid_pages: u32) {}

    fn take(&mut self, _time: u64) -> Option<u32> {
        self.closed.pop_front()
    }

    fn memory_bytes(&self) -> usize {
        self.closed.capacity() * size_of::<u32>()
    }
}

/// Cost-benefit policy (Rosenblum and Ousterhout 1992): selects the largest (1 − u) · age / (1 + u), where u is the
/// share of valid pages. Superblocks are kept in 64 classes of u, and the longest-listed of each class is compared, so
/// a selection looks at no more than 64 superblocks however large the drive is.
pub(crate) struct CostBenefit {
    by_utilisation: Classes,
    closed_at: Vec<u64>,
    valid_pages: Vec<u32>,
    pages_per_block: u32,
}

impl CostBenefit {
    const CLASSES: u32 = 64;

    fn class_of(&self, valid_pages: u32) -> u32 {
        (u64::from(valid_pages) * u64::from(Self::CLASSES - 1) / u64::from(self.pages_per_block)) as u32
    }

    fn benefit(&self, block: u32, time: u64) -> f64 {
        let used = f64::from(self.valid_pages[block as usize]) / f64::from(self.pages_per_block);
        let age = (time - self.closed_at[block as usize] + 1) as f64;
        (1.0 - used) * age / (1.0 + used)
    }
}

impl VictimPolicy for CostBenefit {
    fn new(blocks: u32, pages_per_block: u32) -> Self {
        Self {
            by_utilisation: Classes::new(blocks, Self::CLASSES),
            closed_at: vec![0; blocks as usize],
            valid_pages: vec![0; blocks as usize],
            pages_per_block,
        }
    }

    fn add(&mut self, block: u32, valid_pages: u32, time: u64) {
        self.closed_at[block as usize] = time;
        self.valid_pages[block as usize] = valid_pages;
        self.by_utilisation.append(block, self.class_of(valid_pages));
    }

    #[inline]
    fn page_died(&mut self, block: u32, valid_pages: u32) {
        if self.by_utilisation.is_listed(block) {
            let before = std::mem::replace(&mut self.valid_pages[block as usize], valid_pages);
            if self.class_of(before) != self.class_of(valid_pages) {
                self.by_utilisation.remove(block);
                self.by_utilisation.append(block, self.class_of(valid_pages));
            }
        }
    }

    fn take(&mut self, time: u64) -> Option<u32> {
        let heads = (0..Self::CLASSES).filter_map(|class| self.by_utilisation.first(class));
        let best = heads.max_by(|&a, &b| self.benefit(a, time).total_cmp(&self.benefit(b, time)))?;
        self.by_utilisation.remove(best);
        Some(best)
    }

    fn memory_bytes(&self) -> usize {
        self.by_utilisation.memory_bytes() + self.closed_at.capacity() * 8 + self.valid_pages.capacity() * 4
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Purpose, Random};

    #[test]
    fn greedy_takes_the_emptiest_and_the_oldest_among_equals() {
        let mut greedy = Greedy::new(4, 8);
        for (block, valid) in [(0, 5), (1, 3), (2, 4), (3, 3)] {
            greedy.add(block, valid, 0);
        }
        greedy.page_died(2, 3);
        assert_eq!([(); 5].map(|()| greedy.take(0)), [Some(1), Some(3), Some(2), Some(0), None]);
    }

    #[test]
    fn greedy_lists_few_superblocks_and_takes_the_same_as_if_it_listed_all() {
        const BLOCKS: u32 = 500;
        let mut random = Random::new(1, Purpose::Workload);
        let mut greedy = Greedy::new(BLOCKS, 64);
        // `closed`: valid pages and the event of their last change. `open`: valid pages of those that are not closed.
        let mut closed: Vec<Option<(u32, u64)>> = vec![None; BLOCKS as usize];
        let mut open = vec![64; BLOCKS as usize];
        for event in 0..200_000 {
            let block = random.below(BLOCKS) as usize;
            match (&mut closed[block], random.below(100)) {
                (_, 0..2) => {
                    let emptiest =
                        (0..BLOCKS).filter(|&b| closed[b as usize].is_some()).min_by_key(|&b| closed[b as usize]);
                    assert_eq!(greedy.take(0), emptiest, "event {event}");
                    if let Some(taken) = emptiest {
                        closed[taken as usize] = None;
                        open[taken as usize] = 64;
                    }
                }
                (Some((valid, since)), 2..95) if *valid > 0 => {
                    (*valid, *since) = (*valid - 1, event);
                    greedy.page_died(block as u32, *valid);
                }
                (None, 2..50) if open[block] > 0 => {
                    open[block] -= 1;
                    greedy.page_died(block as u32, open[block]);
                }
                (state @ None, 50..) => {
                    *state = Some((open[block], event));
                    greedy.add(block as u32, open[block], 0);
                }
                _ => {}
            }
            let listed = closed.iter().flatten().filter(|(valid, _)| *valid < greedy.listed_below).count();
            assert_eq!(greedy.listed as usize, listed);
        }
    }

    #[test]
    fn greedy_ignores_blocks_that_are_not_closed() {
        let mut greedy = Greedy::new(2, 8);
        greedy.page_died(0, 1);
        greedy.add(1, 8, 0);
        assert_eq!((greedy.take(0), greedy.take(0)), (Some(1), None));
    }

    #[test]
    fn fifo_takes_the_one_closed_first() {
        let mut fifo = Fifo::new(2, 8);
        fifo.add(1, 0, 0);
        fifo.add(0, 8, 1);
        assert_eq!((fifo.take(2), fifo.take(2), fifo.take(2)), (Some(1), Some(0), None));
    }

    #[test]
    fn cost_benefit_prefers_an_old_block_to_a_slightly_emptier_young_one() {
        let mut policy = CostBenefit::new(2, 100);
        policy.add(0, 60, 0);
        policy.add(1, 50, 100);
        assert_eq!(policy.take(100), Some(0));
        assert_eq!(policy.take(100), Some(1));
    }
}
