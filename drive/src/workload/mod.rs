//! What the host does to the drive, in an order that depends on nothing but the settings and the seed.

mod extents;
mod pick;
mod random_pages;
mod streams;
mod trace;

pub use random_pages::{HotCold, Uniform, WithReads};
pub use streams::{StreamSettings, Streams, Sync};
pub use trace::{Trace, TraceAction};

/// What one operation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OperationKind {
    /// Whole pages are written.
    Write,
    /// A part of one page is written.
    WritePart,
    /// Pages are read.
    Read,
    /// Pages are no longer needed.
    Trim,
    /// What was written must survive a loss of power.
    Flush,
}

/// One operation on consecutive logical pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Operation {
    /// What is done.
    pub kind: OperationKind,
    /// Whether a flush follows at once.
    pub flushed: bool,
    /// Which stream it belongs to, as a hint for the drive.
    pub stream: u16,
    /// The first page.
    pub page: u32,
    /// How many pages; 1 for a partial write, 0 for a flush.
    pub pages: u32,
    /// How much of its page a partial write writes; 0 for everything else.
    pub part_bytes: u32,
    /// Not to be issued before this time in nanoseconds; 0 where the host's rate decides.
    pub due_nanoseconds: u64,
}

impl Operation {
    /// An operation that is due when the host's rate says.
    #[must_use]
    pub fn new(kind: OperationKind, stream: u16, page: u32, pages: u32) -> Self {
        Self { kind, flushed: false, stream, page, pages, part_bytes: 0, due_nanoseconds: 0 }
    }

    /// A partial write that is due when the host's rate says.
    #[must_use]
    pub fn part(stream: u16, page: u32, part_bytes: u32) -> Self {
        Self { part_bytes, ..Self::new(OperationKind::WritePart, stream, page, 1) }
    }

    /// Bytes that the host writes by it.
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

/// Operations in batches, so that the simulator can fetch what a batch needs before it needs it.
pub trait Workload {
    /// Appends about `count` operations to `batch`. Appending none ends the run.
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize);

    /// Bytes that the workload's tables occupy.
    fn memory_bytes(&self) -> usize {
        0
    }
}
