//! What is counted, by place; see `NAMES` for what the places are called in a window.

use cliffwatch_measure::recorder::{Merge, Names};

/// From the batch's due time until it was acknowledged.
pub(crate) const APPEND: usize = 0;
/// From when the batch began to be written until it was acknowledged.
pub(crate) const APPEND_SERVICE: usize = 1;
/// One fdatasync.
pub(crate) const SYNC: usize = 2;
/// One write.
pub(crate) const WRITE: usize = 3;
/// From a read's due time until its end.
pub(crate) const READ: usize = 4;
/// From a read's beginning until its end.
pub(crate) const READ_SERVICE: usize = 5;
/// From a record's due time until a tailing consumer had it.
pub(crate) const END_TO_END: usize = 6;

/// Records acknowledged.
pub(crate) const OPERATIONS: usize = 0;
/// Their bytes.
pub(crate) const BYTES: usize = 1;
/// Failed writes, syncs and reads.
pub(crate) const ERRORS: usize = 2;
/// Records whose writing began late.
pub(crate) const LATE: usize = 3;
/// Records that were due and never written.
pub(crate) const SHED: usize = 4;
/// Batches acknowledged.
pub(crate) const BATCHES: usize = 5;
/// Writes.
pub(crate) const WRITES: usize = 6;
/// What they wrote, padding included.
pub(crate) const WRITTEN_BYTES: usize = 7;
/// fdatasyncs.
pub(crate) const SYNCS: usize = 8;
/// Segments started.
pub(crate) const ROLLS: usize = 9;
/// Segments deleted.
pub(crate) const DELETIONS: usize = 10;
/// Reads.
pub(crate) const READS: usize = 11;
/// Bytes read.
pub(crate) const READ_BYTES: usize = 12;

/// How much longer its files may become, all together.
pub(crate) const GROWTH: usize = 0;
/// Records that are due each second.
pub(crate) const REQUESTED: usize = 1;

/// A batch that begins to be written so long after it was due is late.
pub(crate) const LATE_NANOSECONDS: u64 = 10_000_000;

/// The names in a window, by place.
pub(crate) const NAMES: Names = Names {
    latencies: &["append", "append_service", "sync", "write", "read", "read_service", "end_to_end"],
    counters: &[
        "operations",
        "bytes",
        "errors",
        "late_operations",
        "shed_operations",
        "batches",
        "write_operations",
        "written_bytes",
        "sync_operations",
        "segments_begun",
        "segments_deleted",
        "read_operations",
        "read_bytes",
    ],
    gauges: &[("growth_left_bytes", Merge::Sum), ("requested_operations_per_second", Merge::Sum)],
};
