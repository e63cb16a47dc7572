//! Report of a run, as JSON fields and as text.

use crate::cliff::{self, Cliff};
use crate::ftl::Counters;
use crate::interval::{Interval, amplification};
use crate::plan::DrivePlan;
use crate::settings::Settings;
use crate::steady::{self, SteadyState};
use crate::timing::{LatencyCounts, Percentiles};
use hdrhistogram::Histogram;
use serde::Serialize;

/// Results of a run in simulated pages and seconds, before they are scaled to the whole drive.
#[derive(Default)]
pub struct SimulationOutcome {
    /// Intervals in order, times not yet scaled.
    pub intervals: Vec<Interval>,
    /// Bytes written by the host in the whole run, without preconditioning.
    pub host_bytes: u64,
    /// Page counts of the whole run, without preconditioning.
    pub counters: Counters,
    /// Pages written by preconditioning.
    pub precondition_pages: u64,
    /// Bytes of memory of the drive's and the workload's tables.
    pub memory_bytes: usize,
    totals: Option<[Histogram<u64>; 3]>,
}

impl SimulationOutcome {
    /// Appends an interval with its latencies, and adds these to the totals.
    pub fn add(&mut self, mut interval: Interval, latencies: LatencyCounts) {
        let LatencyCounts { write, read, flush } = latencies;
        let histograms = [write, read, flush].map(crate::timing::LatencyRecorder::into_histogram);
        let [write, read, flush] = histograms.each_ref().map(Percentiles::of);
        (interval.write_latency, interval.read_latency, interval.flush_latency) = (write, read, flush);
        self.intervals.push(interval);
        match &mut self.totals {
            // The bounds are equal, so adding cannot fail.
            Some(totals) => totals.iter_mut().zip(&histograms).for_each(|(total, part)| total.add(part).unwrap_or(())),
            totals => *totals = Some(histograms),
        }
    }
}

/// Latency percentiles of the whole run, by kind of request.
#[derive(Debug, Serialize)]
pub struct TotalLatencies {
    /// Writes, from due time to acceptance in the write buffer.
    pub write: Option<Percentiles>,
    /// Reads, from issue to completion.
    pub read: Option<Percentiles>,
    /// Flushes, from issue to completion.
    pub flush: Option<Percentiles>,
}

/// Report of a run. Pages are simulated pages; bytes and seconds are those of the whole drive.
#[derive(Debug, Serialize)]
pub struct SimulationReport {
    /// Write amplification of the second half of the run; see `steady_state`.
    pub write_amplification: f64,
    /// Pages written by the host in the run; a partial write counts as one page.
    pub host_pages: u64,
    /// Pages programmed on the flash in the run.
    pub media_pages: u64,
    /// Bytes written by the host in the run.
    pub host_bytes: u64,
    /// Bytes programmed on the flash in the run.
    pub media_bytes: u64,
    /// Pages written by preconditioning.
    pub precondition_pages: u64,
    /// Processor seconds of the simulation, preconditioning included.
    pub cpu_seconds: f64,
    /// Bytes of memory of the drive's and the workload's tables.
    pub bytes_of_memory: usize,
    /// Capacity that the drive reports to its host, in bytes.
    pub capacity_bytes: u64,
    /// Part of the capacity that the workload uses (the volume), in bytes.
    pub volume_bytes: u64,
    /// Effective over-provisioning, intrinsic and unpartitioned together, as a share of the volume.
    pub effective_over_provisioning: f64,
    /// Program bandwidth of dies and buses without other operations, in bytes per second.
    pub program_bytes_per_second: f64,
    /// Scale: the drive was simulated at 1/`scale` of its capacity.
    pub scale: u32,
    /// Duration of the run in simulated seconds, `None` if the run has no time.
    pub simulated_seconds: Option<f64>,
    /// Counts of simulated pages and superblocks in the run.
    pub counters: Counters,
    /// Steady-state result of the second half of the run.
    pub steady_state: SteadyState,
    /// Onset of the cliff, if there was one.
    pub cliff: Cliff,
    /// Latency percentiles of the whole run.
    pub latency: TotalLatencies,
    /// Intervals of the run, in order.
    pub intervals: Vec<Interval>,
    /// Settings given by the user; all others had their defaults.
    pub settings: Settings,
}

impl SimulationReport {
    /// Builds the report of a run: computes ratios and scales bytes and seconds to the whole drive.
    #[must_use]
    pub fn new(plan: &DrivePlan, mut outcome: SimulationOutcome, cpu_seconds: f64) -> Self {
        let scale = f64::from(plan.scale);
        let whole = |bytes: u64| bytes * u64::from(plan.scale);
        let bytes = |pages: u64| whole(pages * plan.page_bytes);
        let steady_state = steady::at_the_end(&outcome.intervals, plan.page_bytes);
        for interval in &mut outcome.intervals {
            let seconds = interval.start_seconds.zip(interval.end_seconds).map(|(start, end)| end - start);
            let media_bytes = interval.counters.media_pages() * plan.page_bytes;
            interval.write_amplification = amplification(media_bytes, interval.host_bytes);
            interval.host_bytes_per_second =
                seconds.filter(|&seconds| seconds > 0.0).map(|seconds| interval.host_bytes as f64 / seconds);
            for time in [&mut interval.start_seconds, &mut interval.end_seconds, &mut interval.slipped_seconds] {
                *time = time.map(|seconds| seconds * scale);
            }
            interval.host_bytes = whole(interval.host_bytes);
            interval.end_host_bytes = whole(interval.end_host_bytes);
        }
        let [write, read, flush] = match &outcome.totals {
            Some(histograms) => histograms.each_ref().map(Percentiles::of),
            None => [None, None, None],
        };
        Self {
            write_amplification: steady_state.write_amplification,
            host_pages: outcome.counters.host_pages,
            media_pages: outcome.counters.media_pages(),
            host_bytes: whole(outcome.host_bytes),
            media_bytes: bytes(outcome.counters.media_pages()),
            precondition_pages: outcome.precondition_pages,
            cpu_seconds,
            bytes_of_memory: outcome.memory_bytes,
            capacity_bytes: bytes(u64::from(plan.shape.logical_pages)),
            volume_bytes: bytes(u64::from(plan.volume_pages)),
            effective_over_provisioning: plan.effective_over_provisioning(),
            program_bytes_per_second: plan.program_bytes_per_second(),
            scale: plan.scale,
            simulated_seconds: outcome.intervals.last().and_then(|interval| interval.end_seconds),
            counters: outcome.counters,
            steady_state,
            cliff: cliff::find(plan, &outcome.intervals),
            latency: TotalLatencies { write, read, flush },
            intervals: outcome.intervals,
            settings: plan.settings().clone(),
        }
    }
}

impl std::fmt::Display for SimulationReport {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let hours = |seconds: f64| format!("{:.2} h", seconds / 3600.0);
        writeln!(
            out,
            "write amplification  {:.3} (steady: {})",
            self.write_amplification, self.steady_state.is_steady
        )?;
        writeln!(out, "over-provisioning    {:.1} % effective", self.effective_over_provisioning * 100.0)?;
        writeln!(out, "host writes          {:.3} TB", self.host_bytes as f64 / 1e12)?;
        writeln!(out, "media writes         {:.3} TB", self.media_bytes as f64 / 1e12)?;
        if let Some(seconds) = self.simulated_seconds {
            writeln!(out, "simulated time       {}", hours(seconds))?;
        }
        match self.cliff.onset_seconds {
            Some(seconds) => writeln!(out, "cliff                at {}", hours(seconds))?,
            None => writeln!(out, "cliff                none found")?,
        }
        writeln!(out, "                     ({})", self.cliff.definition)?;
        if let Some(write) = &self.latency.write {
            let (median, p99) = (write.p50_seconds * 1e3, write.p99_seconds * 1e3);
            writeln!(out, "write latency        {median:.3} ms median, {p99:.3} ms 99th percentile")?;
        }
        write!(out, "simulation           {:.2} s of processor, {} bytes", self.cpu_seconds, self.bytes_of_memory)
    }
}
