//! Timing model of a run: dies and buses of the drive, its write buffer, and the host that waits for it.
//!
//! Timing decides nothing: the translation layer and the workload decide, and this module computes when each operation
//! completes. Times are in nanoseconds from the start of the run.

mod flash;
mod host;
mod latency;

pub(crate) use flash::{Flash, FlashTimes};
pub(crate) use host::{Arrivals, Host};
pub(crate) use latency::{LatencyCounts, LatencyRecorder, Percentiles};

use crate::ftl::Media;

/// Clock of a run: accounts for requests and for the flash operations that they cause. The default methods do nothing.
pub(crate) trait Clock: Media {
    /// Called for a write of `size_bytes`, not to be issued before `due_nanoseconds` (0: as the schedule says).
    #[inline(always)]
    fn arrive(&mut self, _due_nanoseconds: u64, _size_bytes: u64) {}
    /// Called when the translation layer has executed the latest write.
    #[inline(always)]
    fn wrote(&mut self, _size_bytes: u64) {}
    /// Called for a read of the page at this offset of its superblock, or of an unmapped page (`None`).
    #[inline(always)]
    fn read(&mut self, _due_nanoseconds: u64, _offset: Option<u32>, _size_bytes: u64) {}
    /// Called when a partial write reads the old page at this offset of its superblock.
    #[inline(always)]
    fn fetch(&mut self, _offset: u32) {}
    /// Called for a flush, which waits for all buffered pages (`waits`) or, with a protected buffer, for none.
    #[inline(always)]
    fn flush(&mut self, _due_nanoseconds: u64, _waits: bool) {}
    /// Returns seconds since the start, `None` if the run has no time.
    fn now_seconds(&self) -> Option<f64> {
        None
    }
    /// Returns the latencies, and the seconds by which back-pressure delayed the schedule, since the last call; resets
    /// both.
    fn take_latencies(&mut self) -> Option<(LatencyCounts, f64)> {
        None
    }
}

/// Clock without a timing model: bytes written / target rate, which the host is assumed to reach; unknown without a
/// rate.
pub struct ByRate {
    bytes_per_second: Option<f64>,
    written_bytes: u64,
}

impl ByRate {
    /// Creates a clock that advances with the bytes written at this rate.
    #[must_use]
    pub fn new(bytes_per_second: Option<f64>) -> Self {
        Self { bytes_per_second, written_bytes: 0 }
    }
}

impl Media for ByRate {}

impl Clock for ByRate {
    #[inline(always)]
    fn wrote(&mut self, size_bytes: u64) {
        self.written_bytes += size_bytes;
    }

    fn now_seconds(&self) -> Option<f64> {
        self.bytes_per_second.map(|rate| self.written_bytes as f64 / rate)
    }
}

/// Clock of the timing model: a closed-loop host in front of busy flash.
pub struct Timed {
    host: Host,
    flash: Flash,
    latencies: LatencyCounts,
}

impl Timed {
    /// Combines a host model with the flash of a drive.
    #[must_use]
    pub fn new(host: Host, flash: Flash) -> Self {
        Self { host, flash, latencies: LatencyCounts::default() }
    }
}

impl Media for Timed {
    #[inline(always)]
    fn host_page(&mut self, frontier: usize, offset: u32) {
        self.flash.host_page(frontier, offset);
    }
    #[inline(always)]
    fn copied_page(&mut self, frontier: usize, offset: u32, source_offset: u32) {
        self.flash.copied_page(frontier, offset, source_offset);
    }
    #[inline(always)]
    fn padded_page(&mut self, frontier: usize, offset: u32) {
        self.flash.padded_page(frontier, offset);
    }
    #[inline(always)]
    fn erased(&mut self) {
        self.flash.erased();
    }
}

impl Clock for Timed {
    #[inline]
    fn arrive(&mut self, due_nanoseconds: u64, size_bytes: u64) {
        self.host.issue(due_nanoseconds, size_bytes);
        self.flash.advance_to(self.host.issued_at());
    }

    #[inline]
    fn wrote(&mut self, size_bytes: u64) {
        let done = self.flash.buffered_at() + self.flash.overhead_nanoseconds(size_bytes);
        self.latencies.write.record(self.host.complete(done));
    }

    fn read(&mut self, due_nanoseconds: u64, offset: Option<u32>, size_bytes: u64) {
        self.host.issue_along(due_nanoseconds, false);
        let done = self.flash.read(self.host.issued_at(), offset) + self.flash.overhead_nanoseconds(size_bytes);
        self.latencies.read.record(self.host.complete_read(done));
    }

    fn fetch(&mut self, offset: u32) {
        self.flash.fetch(offset);
    }

    fn flush(&mut self, due_nanoseconds: u64, waits: bool) {
        self.host.issue_along(due_nanoseconds, true);
        let done = if waits { self.flash.all_programmed_at() } else { self.flash.buffered_at() };
        let done = done.max(self.host.issued_at()) + self.flash.overhead_nanoseconds(0);
        self.latencies.flush.record(self.host.complete(done));
    }

    fn now_seconds(&self) -> Option<f64> {
        Some(self.host.issued_at() as f64 / 1e9)
    }

    fn take_latencies(&mut self) -> Option<(LatencyCounts, f64)> {
        Some((std::mem::take(&mut self.latencies), self.host.take_slip_seconds()))
    }
}
