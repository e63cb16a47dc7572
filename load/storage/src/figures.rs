//! Indices of the latencies, counters and gauges of a window; `NAMES` has their reported names.

use cliffwatch_measure::recorder::{Merge, Names};

/// Latency of a batch from its due time to its acknowledgement.
pub(crate) const APPEND: usize = 0;
/// Latency of a batch from when its log began to process it to its acknowledgement.
pub(crate) const APPEND_SERVICE: usize = 1;
/// Latency of one fdatasync.
pub(crate) const SYNC: usize = 2;
/// Latency of one write.
pub(crate) const WRITE: usize = 3;
/// Latency of one read from its due time to its end.
pub(crate) const READ: usize = 4;
/// Latency of one read from its start to its end.
pub(crate) const READ_SERVICE: usize = 5;
/// Latency of a record from its due time until a tailing consumer has read it.
pub(crate) const END_TO_END: usize = 6;

/// Number of records acknowledged.
pub(crate) const OPERATIONS: usize = 0;
/// Bytes of the records acknowledged.
pub(crate) const BYTES: usize = 1;
/// Number of failed writes, syncs, allocations and file creations of the appending threads.
pub(crate) const ERRORS: usize = 2;
/// Number of records whose processing began more than `LATE_NANOSECONDS` after they were due.
pub(crate) const LATE: usize = 3;
/// Number of records shed: due, but never written.
pub(crate) const SHED: usize = 4;
/// Number of batches acknowledged.
pub(crate) const BATCHES: usize = 5;
/// Number of writes completed.
pub(crate) const WRITES: usize = 6;
/// Bytes written, padding included.
pub(crate) const WRITTEN_BYTES: usize = 7;
/// Number of fdatasync calls completed.
pub(crate) const SYNCS: usize = 8;
/// Number of segments started.
pub(crate) const ROLLS: usize = 9;
/// Number of segments deleted by retention.
pub(crate) const DELETIONS: usize = 10;
/// Number of reads completed by consumers.
pub(crate) const READS: usize = 11;
/// Bytes read by consumers.
pub(crate) const READ_BYTES: usize = 12;

/// Bytes by which all files together may still grow.
pub(crate) const GROWTH: usize = 0;
/// Target rate in records per second.
pub(crate) const REQUESTED: usize = 1;

/// Delay between a batch's due time and the start of its processing above which it counts as late: 10 ms.
pub(crate) const LATE_NANOSECONDS: u64 = 10_000_000;

/// Names of latencies, counters and gauges in a window, ordered by the indices above.
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
