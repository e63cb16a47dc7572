//! What was done in one interval of a run.

use crate::ftl::Counters;
use crate::timing::Percentiles;
use serde::Serialize;

/// One interval of a run. Seconds are of the whole drive where the run was scaled.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Interval {
    /// Bytes that the host wrote in it.
    pub host_bytes: u64,
    /// Bytes that the host had written since the run began, at its end.
    pub end_host_bytes: u64,
    /// When it began, `None` where the run knows no time.
    pub start_seconds: Option<f64>,
    /// When it ended.
    pub end_seconds: Option<f64>,
    /// What was done in it.
    #[serde(flatten)]
    pub counters: Counters,
    /// Bytes programmed by bytes that the host wrote.
    pub write_amplification: f64,
    /// Share of superblocks that were clean at its end.
    pub clean_ratio: f64,
    /// Whether no more superblocks than the reserve were clean at its end, so that cleaning had to keep up.
    pub out_of_clean_blocks: bool,
    /// Pages that held data at its end, as far as the drive knew.
    pub mapped_pages: u32,
    /// The rate at which the host wrote, as far as the drive let it.
    pub host_bytes_per_second: Option<f64>,
    /// By how much back-pressure delayed the host's schedule in the interval.
    pub slipped_seconds: Option<f64>,
    /// Latency of writes, `None` if nothing was written or time is not modelled.
    pub write_latency: Option<Percentiles>,
    /// Latency of reads.
    pub read_latency: Option<Percentiles>,
    /// Latency of flushes.
    pub flush_latency: Option<Percentiles>,
}

/// Bytes programmed by bytes that the host wrote, 1 where it wrote nothing.
#[must_use]
pub fn amplification(media_bytes: u64, host_bytes: u64) -> f64 {
    match host_bytes {
        0 => 1.0,
        host_bytes => media_bytes as f64 / host_bytes as f64,
    }
}
