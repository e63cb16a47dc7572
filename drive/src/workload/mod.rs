//! Workloads: operations of the host, in an order that depends only on the settings and the seed.

mod extents;
mod pick;
mod random_pages;
mod streams;
mod trace;

pub use random_pages::{HotCold, Uniform, WithReads};
pub use streams::{StreamSettings, Streams, Sync};
pub use trace::{Trace, TraceAction};

/// Kind of a host operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Write of whole pages.
    Write,
    /// Write of a part of one page.
    WritePart,
    /// Read of pages.
    Read,
    /// Trim (discard) of pages.
    Trim,
    /// Flush: data written before must survive a loss of power.
    Flush,
}

/// Operation of the host on consecutive logical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// Kind of the operation.
    pub kind: OperationKind,
    /// Whether a flush follows at once.
    pub flushed: bool,
    /// Stream number, a placement hint for the drive.
    pub stream: u16,
    /// First logical page.
    pub page: u32,
    /// Number of pages; 1 for a partial write, 0 for a flush.
    pub pages: u32,
    /// Bytes of a partial write; 0 for everything else.
    pub part_bytes: u32,
    /// Earliest time of issue in nanoseconds; 0 where the host's rate decides.
    pub due_nanoseconds: u64,
}

impl Operation {
    /// Creates an operation that is due when the host's rate says.
    #[must_use]
    pub fn new(kind: OperationKind, stream: u16, page: u32, pages: u32) -> Self {
        Self { kind, flushed: false, stream, page, pages, part_bytes: 0, due_nanoseconds: 0 }
    }

    /// Creates a partial write that is due when the host's rate says.
    #[must_use]
    pub fn part(stream: u16, page: u32, part_bytes: u32) -> Self {
        Self { part_bytes, ..Self::new(OperationKind::WritePart, stream, page, 1) }
    }

    /// Returns the bytes that the host writes; 0 for reads, trims and flushes.
    #[inline]
    #[must_use]
    pub fn written_bytes(&self, page_bytes: u64) -> u64 {
        match self.kind {
            OperationKind::Write => u64::from(self.pages) * page_bytes,
            OperationKind::WritePart => u64::from(self.part_bytes),
            OperationKind::Read | OperationKind::Trim | OperationKind::Flush => 0,
        }
    }
}

/// Source of operations, in batches so that the simulator can prefetch table entries.
pub trait Workload {
    /// Appends about `count` operations to `batch`. Appending none ends the run.
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize);

    /// Returns the bytes of memory of the workload's tables.
    fn memory_bytes(&self) -> usize {
        0
    }
}
