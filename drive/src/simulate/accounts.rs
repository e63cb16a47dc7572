//! Accounts of a run: ends of intervals, counters of each, and the end of the run.

use crate::ftl::{Counters, Ftl, VictimPolicy};
use crate::interval::Interval;
use crate::plan::DrivePlan;
use crate::report::SimulationOutcome;
use crate::timing::{Clock, LatencyCounts};

/// Counters and ratios of the layer after a batch of operations.
#[derive(Clone, Copy)]
pub(super) struct Snapshot {
    counters: Counters,
    clean_ratio: f64,
    out_of_clean_blocks: bool,
    mapped_pages: u32,
}

impl Snapshot {
    /// Reads the present state of a layer.
    pub(super) fn of<V: VictimPolicy>(ftl: &Ftl<V>) -> Self {
        Self {
            counters: ftl.counters(),
            clean_ratio: ftl.clean_ratio(),
            out_of_clean_blocks: ftl.is_out_of_clean_blocks(),
            mapped_pages: ftl.mapped_pages(),
        }
    }
}

/// Accounts of a run in progress.
pub(super) struct Accounts<'a> {
    plan: &'a DrivePlan,
    /// Bytes written by the host so far.
    pub(super) written_bytes: u64,
    outcome: SimulationOutcome,
    start: Counters,
    /// Counters, and below bytes and seconds, at the start of the interval.
    before: Counters,
    before_bytes: u64,
    began_seconds: Option<f64>,
    interval_end_bytes: u64,
    interval_end_seconds: f64,
    end_bytes: u64,
    end_seconds: f64,
}

impl<'a> Accounts<'a> {
    /// Creates the accounts of a run that starts with these counters.
    pub(super) fn new(plan: &'a DrivePlan, start: Counters, clock: &impl Clock) -> Self {
        Self {
            plan,
            written_bytes: 0,
            outcome: SimulationOutcome::default(),
            start,
            before: start,
            before_bytes: 0,
            began_seconds: clock.now_seconds(),
            interval_end_bytes: plan.interval_bytes,
            interval_end_seconds: plan.interval_seconds.unwrap_or(f64::INFINITY),
            end_bytes: plan.end_bytes.unwrap_or(u64::MAX),
            end_seconds: plan.end_seconds.unwrap_or(f64::INFINITY),
        }
    }

    /// Accounts for a batch after which the layer is in this state; `is_last` if the workload has ended. Returns
    /// whether the run is over.
    pub(super) fn take_batch(&mut self, layer: &Snapshot, clock: &mut impl Clock, is_last: bool) -> bool {
        let seconds = clock.now_seconds().unwrap_or(0.0);
        let over = is_last || self.written_bytes >= self.end_bytes || seconds >= self.end_seconds;
        let interval_over = match self.plan.interval_seconds {
            Some(_) => seconds >= self.interval_end_seconds,
            None => self.written_bytes >= self.interval_end_bytes,
        };
        if interval_over || over {
            self.end_interval(layer, clock);
            self.interval_end_bytes = self.written_bytes + self.plan.interval_bytes;
            self.interval_end_seconds += self.plan.interval_seconds.unwrap_or(0.0);
        }
        over
    }

    /// Returns the outcome of the run; `memory_bytes` is the size of the tables.
    pub(super) fn conclude(mut self, memory_bytes: usize) -> SimulationOutcome {
        // The run ended with its last interval.
        self.outcome.host_bytes = self.before_bytes;
        self.outcome.counters = difference(&self.start, &self.before);
        self.outcome.precondition_pages = self.start.host_pages;
        self.outcome.memory_bytes = memory_bytes;
        self.outcome
    }

    fn end_interval(&mut self, layer: &Snapshot, clock: &mut impl Clock) {
        let now = clock.now_seconds();
        let (latencies, slipped_seconds) = match clock.take_latencies() {
            Some((latencies, slipped)) => (latencies, Some(slipped)),
            None => (LatencyCounts::default(), None),
        };
        self.outcome.add(
            Interval {
                host_bytes: self.written_bytes - self.before_bytes,
                end_host_bytes: self.written_bytes,
                start_seconds: self.began_seconds,
                end_seconds: now,
                counters: difference(&self.before, &layer.counters),
                clean_ratio: layer.clean_ratio,
                out_of_clean_blocks: layer.out_of_clean_blocks,
                mapped_pages: layer.mapped_pages,
                slipped_seconds,
                ..Interval::default()
            },
            latencies,
        );
        self.before = layer.counters;
        self.before_bytes = self.written_bytes;
        self.began_seconds = now;
    }
}

fn difference(before: &Counters, after: &Counters) -> Counters {
    Counters {
        host_pages: after.host_pages - before.host_pages,
        merged_pages: after.merged_pages - before.merged_pages,
        rewritten_pages: after.rewritten_pages - before.rewritten_pages,
        copied_pages: after.copied_pages - before.copied_pages,
        padded_pages: after.padded_pages - before.padded_pages,
        trimmed_pages: after.trimmed_pages - before.trimmed_pages,
        erased_blocks: after.erased_blocks - before.erased_blocks,
    }
}
