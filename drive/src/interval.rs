//! Counters, rates and latencies of one interval of a run.

use crate::ftl::Counters;
use crate::timing::Percentiles;
use serde::Serialize;

/// One interval of a run. In the report of a scaled run, bytes and seconds are those of the whole drive.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Interval {
    /// Bytes written by the host in the interval.
    pub host_bytes: u64,
    /// Bytes written by the host from the start of the run to the end of the interval.
    pub end_host_bytes: u64,
    /// Start in seconds from the start of the run, `None` if the run has no time.
    pub start_seconds: Option<f64>,
    /// End in seconds from the start of the run.
    pub end_seconds: Option<f64>,
    /// Counts of pages and erased superblocks in the interval.
    #[serde(flatten)]
    pub counters: Counters,
    /// Write amplification: bytes programmed / bytes written by the host.
    pub write_amplification: f64,
    /// Share of superblocks that were clean (erased) at the end, 0 to 1.
    pub clean_ratio: f64,
    /// Whether no more superblocks than the reserve were clean at the end, so that garbage collection had to keep up.
    pub out_of_clean_blocks: bool,
    /// Mapped logical pages at the end: written and not trimmed.
    pub mapped_pages: u32,
    /// Achieved write rate of the host, in bytes per second.
    pub host_bytes_per_second: Option<f64>,
    /// Seconds by which back-pressure delayed the host's schedule in the interval.
    pub slipped_seconds: Option<f64>,
    /// Write latency, `None` if nothing was written or the timing model is off.
    pub write_latency: Option<Percentiles>,
    /// Read latency, `None` likewise.
    pub read_latency: Option<Percentiles>,
    /// Flush latency, `None` likewise.
    pub flush_latency: Option<Percentiles>,
}

/// Returns write amplification: bytes programmed / bytes written by the host, 1 if the host wrote nothing.
#[must_use]
pub fn amplification(media_bytes: u64, host_bytes: u64) -> f64 {
    match host_bytes {
        0 => 1.0,
        host_bytes => media_bytes as f64 / host_bytes as f64,
    }
}
