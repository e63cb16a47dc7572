//! How long things take: the dies and buses of the drive, its write buffer, and the host that waits for it.
//!
//! Nothing in here is asked what to do: the translation layer and the workload decide, and this works out when each of
//! their decisions would be done. Time is in nanoseconds from the start of the run.

mod flash;
mod host;
mod latency;

pub(crate) use flash::{Flash, FlashTimes};
pub(crate) use host::{Arrivals, Host};
pub(crate) use latency::{LatencyCounts, LatencyRecorder, Percentiles};

use crate::ftl::Media;

/// A clock that a run goes by: accounts for requests and for what they make the flash do. What a clock does not say, it
/// takes no notice of.
pub(crate) trait Clock: Media {
    /// A write of so many bytes comes, not to be issued before `due_nanoseconds` (0: as the schedule says).
    #[inline(always)]
    fn arrive(&mut self, _due_nanoseconds: u64, _size_bytes: u64) {}
    /// The write that arrived last has been handed to the translation layer.
    #[inline(always)]
    fn wrote(&mut self, _size_bytes: u64) {}
    /// A read comes of the page at this offset of its superblock, or of one that holds nothing.
    #[inline(always)]
    fn read(&mut self, _due_nanoseconds: u64, _offset: Option<u32>, _size_bytes: u64) {}
    /// The old content of a page written in part is read from this offset of its superblock.
    #[inline(always)]
    fn fetch(&mut self, _offset: u32) {}
    /// A flush comes that must wait for everything buffered, or (buffer protected) for nothing.
    #[inline(always)]
    fn flush(&mut self, _due_nanoseconds: u64, _waits: bool) {}
    /// Seconds since the start, when the run knows the time.
    fn now_seconds(&self) -> Option<f64> {
        None
    }
    /// Latencies since the last call, and seconds by which back-pressure has made the schedule slip since then.
    fn take_latencies(&mut self) -> Option<(LatencyCounts, f64)> {
        None
    }
}

/// A run without a timing model. It knows the time only if the host keeps to a rate, which it is then assumed to reach.
pub struct ByRate {
    bytes_per_second: Option<f64>,
    written_bytes: u64,
}

impl ByRate {
    /// A clock that advances with what is written at this rate.
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

/// The full timing model: a host that waits for flash that is busy.
pub struct Timed {
    host: Host,
    flash: Flash,
    latencies: LatencyCounts,
}

impl Timed {
    /// Joins a host to a drive's flash.
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
