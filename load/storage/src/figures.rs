//! What is counted, by place; see `NAMES` for what the places are called in a window.

use cliffwatch_measure::recorder::{Merge, Names};

/// From the batch's due time until it was acknowledged.
pub const APPEND: usize = 0;
/// From when the batch began to be written until it was acknowledged.
pub const APPEND_SERVICE: usize = 1;
/// One fdatasync.
pub const SYNC: usize = 2;
/// One write.
pub const WRITE: usize = 3;
/// From a read's due time until its end.
pub const READ: usize = 4;
/// From a read's beginning until its end.
pub const READ_SERVICE: usize = 5;
/// From a record's due time until a tailing consumer had it.
pub const END_TO_END: usize = 6;

/// Records acknowledged.
pub const OPERATIONS: usize = 0;
/// Their bytes.
pub const BYTES: usize = 1;
/// Failed writes, syncs and reads.
pub const ERRORS: usize = 2;
/// Records whose writing began late.
pub const LATE: usize = 3;
/// Records that were due and never written.
pub const SHED: usize = 4;
/// Batches acknowledged.
pub const BATCHES: usize = 5;
/// Writes.
pub const WRITES: usize = 6;
/// What they wrote, padding included.
pub const WRITTEN_BYTES: usize = 7;
/// fdatasyncs.
pub const SYNCS: usize = 8;
/// Segments begun.
pub const ROLLS: usize = 9;
/// Segments deleted.
pub const DELETIONS: usize = 10;
/// Reads.
pub const READS: usize = 11;
/// Bytes read.
pub const READ_BYTES: usize = 12;

/// How far the client is behind its schedule.
pub const DEBT: usize = 0;
/// How much longer its files may become, all together.
pub const GROWTH: usize = 1;

/// A batch that begins to be written so long after it was due is late.
pub const LATE_NANOSECONDS: u64 = 10_000_000;

/// The names in a window, by place.
pub const NAMES: Names = Names {
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
    gauges: &[("schedule_debt_seconds", Merge::Largest), ("growth_left_bytes", Merge::Sum)],
};
