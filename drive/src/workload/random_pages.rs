//! Random workloads of single pages, and reads added to any workload.

use super::{Operation, OperationKind, Workload};
use crate::random::{Purpose, Random};

/// Uniform random writes of single pages over the volume.
pub struct Uniform {
    random: Random,
    volume_pages: u32,
}

impl Uniform {
    /// Creates uniform writes over a volume of `volume_pages` pages.
    #[must_use]
    pub fn new(volume_pages: u32, seed: u64) -> Self {
        Self { random: Random::new(seed, Purpose::Workload), volume_pages }
    }
}

impl Workload for Uniform {
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize) {
        batch.extend(
            (0..count).map(|_| Operation::new(OperationKind::Write, 0, self.random.below(self.volume_pages), 1)),
        );
    }
}

/// Random writes of single pages in which a share of the pages takes a larger share of the writes, uniform within
/// either. The hot pages are stream 0, the cold ones stream 1.
pub struct HotCold {
    random: Random,
    hot_pages: u32,
    cold_pages: u32,
    /// Share of the writes that are hot, in 2^-64.
    hot_below: u64,
}

impl HotCold {
    /// Creates writes of which `hot_space` of the volume takes `hot_writes`; both in (0, 1).
    #[must_use]
    pub fn new(volume_pages: u32, hot_space: f64, hot_writes: f64, seed: u64) -> Self {
        let hot_pages = ((f64::from(volume_pages) * hot_space) as u32).clamp(1, volume_pages - 1);
        Self {
            random: Random::new(seed, Purpose::Workload),
            hot_pages,
            cold_pages: volume_pages - hot_pages,
            hot_below: (hot_writes * 2f64.powi(64)) as u64,
        }
    }
}

impl Workload for HotCold {
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize) {
        batch.extend((0..count).map(|_| {
            if self.random.bits() < self.hot_below {
                Operation::new(OperationKind::Write, 0, self.random.below(self.hot_pages), 1)
            } else {
                Operation::new(OperationKind::Write, 1, self.hot_pages + self.random.below(self.cold_pages), 1)
            }
        }));
    }
}

/// Workload with reads of random pages added between its writes. The reads have their own stream of random numbers, so
/// the writes are the same with them and without.
pub struct WithReads<W> {
    inner: W,
    random: Random,
    volume_pages: u32,
    reads_per_write: f64,
    owed: f64,
    writes: Vec<Operation>,
}

impl<W: Workload> WithReads<W> {
    /// Adds `reads_per_write` single-page reads per write, evenly.
    #[must_use]
    pub fn new(inner: W, volume_pages: u32, reads_per_write: f64, seed: u64) -> Self {
        let random = Random::new(seed.rotate_left(32) ^ 0x5eed, Purpose::Workload);
        Self { inner, random, volume_pages, reads_per_write, owed: 0.0, writes: Vec::new() }
    }
}

impl<W: Workload> Workload for WithReads<W> {
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize) {
        self.writes.clear();
        self.inner.fill(&mut self.writes, count);
        for &operation in &self.writes {
            if matches!(operation.kind, OperationKind::Write | OperationKind::WritePart) {
                self.owed += self.reads_per_write;
            }
            if self.owed < 1.0 {
                batch.push(operation);
                continue;
            }
            // Reads come between a write and its flush.
            batch.push(Operation { flushed: false, ..operation });
            let due_nanoseconds = operation.due_nanoseconds;
            while self.owed >= 1.0 {
                self.owed -= 1.0;
                let page = self.random.below(self.volume_pages);
                batch.push(Operation { due_nanoseconds, ..Operation::new(OperationKind::Read, 0, page, 1) });
            }
            if operation.flushed {
                batch.push(Operation {
                    due_nanoseconds,
                    ..Operation::new(OperationKind::Flush, operation.stream, 0, 0)
                });
            }
        }
    }

    fn memory_bytes(&self) -> usize {
        self.inner.memory_bytes()
    }
}

impl<W: Workload + ?Sized> Workload for Box<W> {
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize) {
        (**self).fill(batch, count);
    }

    fn memory_bytes(&self) -> usize {
        (**self).memory_bytes()
    }
}
