//! Invariants of the translation layer after any mixture of writes, trims and padding under every policy.

use super::*;
use crate::random::{Purpose, Random};

fn shape(pages_per_block: u32, over_provisioning: f64) -> Geometry {
    let blocks = 64;
    Geometry {
        logical_pages: (f64::from(blocks * pages_per_block) / (1.0 + over_provisioning)) as u32,
        blocks,
        reserve_blocks: 8,
        pages_per_block,
        pages_per_program: 4,
        frontiers: 1,
        copies_apart: false,
        placement: Placement::Hint,
        pacing_pages: 0,
        buffer_pages: 16,
    }
}

/// Asserts that each mapped page's physical page is valid and owned by it, and that no other page is valid.
fn assert_consistent<V: VictimPolicy>(ftl: &Ftl<V>) {
    let mut mapped = 0;
    for (page, &address) in ftl.map.iter().enumerate().filter(|&(_, &address)| address != NOWHERE) {
        let (block, offset) = ftl.split(address);
        let index = block * ftl.shape.pages_per_block as usize + offset as usize;
        assert_eq!(ftl.owner[index] as usize, page);
        assert_ne!(ftl.valid[block * ftl.words_per_block + offset as usize / 64] & 1 << (offset % 64), 0);
        mapped += 1;
    }
    assert_eq!(ftl.mapped_pages, mapped);
    let ahead: u32 = ftl.frontiers.iter().map(|frontier| frontier.end - frontier.next).sum();
    // Clean superblocks may keep stale counts, and so may a victim for pages already copied.
    let clean: std::collections::HashSet<u32> = ftl.clean.iter().copied().collect();
    let counted: u32 =
        (0..ftl.shape.total_blocks()).filter(|b| !clean.contains(b)).map(|b| ftl.valid_pages[b as usize]).sum();
    if ftl.cleaning.is_none() {
        assert_eq!(counted - ahead, mapped);
    }
}

fn exercise<V: VictimPolicy>(shape: Geometry, seed: u64) {
    let mut ftl: Ftl<V> = Ftl::new(shape.clone()).unwrap();
    let mut random = Random::new(seed, Purpose::Workload);
    for step in 0..shape.logical_pages * 20 {
        let page = random.below(shape.logical_pages);
        match random.below(100) {
            0 => ftl.trim(page),
            1 => ftl.pad(&mut Untimed),
            2..10 => {
                ftl.write_part(page, step, &mut Untimed);
            }
            _ => ftl.write(page, step, &mut Untimed),
        }
        if step % 5000 == 0 {
            assert_consistent(&ftl);
        }
    }
    assert_consistent(&ftl);
    assert!(ftl.counters.media_pages() > ftl.counters.host_pages);
}

#[test]
fn stays_consistent_under_every_policy_and_option() {
    for (seed, pages_per_block) in [(1, 64), (2, 100), (3, 32), (4, 129)] {
        let plain = shape(pages_per_block, 0.07);
        let paced = Geometry { pacing_pages: 4, ..plain.clone() };
        let streams = Geometry { frontiers: 3, copies_apart: true, ..plain.clone() };
        let recency = Geometry { frontiers: 2, placement: Placement::Recency, ..paced.clone() };
        let paced_streams = Geometry { pacing_pages: 1, ..streams.clone() };
        for shape in [plain, paced, streams, recency, paced_streams] {
            exercise::<Greedy>(shape.clone(), seed);
            exercise::<Fifo>(shape.clone(), seed);
            exercise::<CostBenefit>(shape, seed);
        }
    }
}

#[test]
fn works_with_no_over_provisioning_at_all_by_living_on_its_reserve() {
    let full = shape(64, 0.0);
    exercise::<Greedy>(full.clone(), 5);
    exercise::<Fifo>(Geometry { pacing_pages: 8, ..full }, 5);
}

#[test]
fn sequential_overwriting_copies_nothing() {
    let mut ftl: Ftl<Greedy> = Ftl::new(shape(64, 0.07)).unwrap();
    for page in (0..ftl.shape.logical_pages).cycle().take(20 * 64 * 64) {
        ftl.write(page, 0, &mut Untimed);
    }
    assert_eq!(ftl.counters.copied_pages, 0);
}

#[test]
fn a_partial_write_is_merged_only_while_its_page_is_buffered() {
    let mut ftl: Ftl<Greedy> = Ftl::new(shape(64, 0.07)).unwrap();
    assert_eq!(ftl.write_part(5, 0, &mut Untimed), PartialWrite::New);
    assert_eq!(ftl.write_part(5, 0, &mut Untimed), PartialWrite::Merged);
    (100..120).for_each(|page| ftl.write(page, 0, &mut Untimed));
    assert_eq!(ftl.write_part(5, 0, &mut Untimed), PartialWrite::Rewrote(0));
    assert_eq!(ftl.counters().media_pages(), 22);
}

#[test]
fn a_reserve_too_small_to_clean_with_is_refused() {
    let Err(error) = Ftl::<Greedy>::new(Geometry { reserve_blocks: 2, ..shape(64, 0.07) }) else { panic!("accepted") };
    assert!(error.to_string().contains("reserve-blocks"), "{error}");
}

#[test]
fn a_restored_layer_goes_on_as_the_saved_one_does() {
    let shape = Geometry { pacing_pages: 4, frontiers: 2, copies_apart: true, ..shape(64, 0.07) };
    let mut random = Random::new(1, Purpose::Workload);
    let mut saved: Ftl<Fifo> = Ftl::new(shape.clone()).unwrap();
    let churn = |ftl: &mut Ftl<Fifo>, random: &mut Random| {
        for step in 0..30_000 {
            ftl.write(random.below(shape.logical_pages), step, &mut Untimed);
        }
    };
    churn(&mut saved, &mut random);
    let state = saved.save();
    let mut restored: Ftl<Fifo> = Ftl::new(shape.clone()).unwrap();
    restored.restore(state.clone()).unwrap();
    assert_consistent(&restored);
    churn(&mut saved, &mut random.clone());
    churn(&mut restored, &mut random);
    assert_eq!(saved.save(), restored.save());
    let other = Geometry { logical_pages: shape.logical_pages - 1, ..shape };
    assert_eq!(Ftl::<Fifo>::new(other).unwrap().restore(state), None);
}
