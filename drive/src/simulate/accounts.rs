//! The accounts of a run: when an interval ends, what happened in it, and when the run is over.

use crate::ftl::{Counters, Ftl, VictimPolicy};
use crate::plan::DrivePlan;
use crate::report::{Interval, SimulationOutcome};
use crate::timing::{Clock, LatencyCounts};

/// How the layer is after a batch of operations.
#[derive(Clone, Copy)]
pub(super) struct Snapshot {
    counters: Counters,
    clean_ratio: f64,
    out_of_clean_blocks: bool,
    mapped_pages: u32,
}

impl Snapshot {
    /// How this layer is now.
    pub(super) fn of<V: VictimPolicy>(ftl: &Ftl<V>) -> Self {
        Self {
            counters: ftl.counters(),
            clean_ratio: ftl.clean_ratio(),
            out_of_clean_blocks: ftl.is_out_of_clean_blocks(),
            mapped_pages: ftl.mapped_pages(),
        }
    }
}

/// The accounts of a run under way.
pub(super) struct Accounts<'a> {
    plan: &'a DrivePlan,
    outcome: SimulationOutcome,
    start: Counters,
    /// What the counters and the clock were when the interval began.
    before: Counters,
    began_seconds: Option<f64>,
    interval_end_pages: u64,
    interval_end_seconds: f64,
    end_pages: u64,
    end_seconds: f64,
}

impl<'a> Accounts<'a> {
    /// Accounts of a run that begins with these counters.
    pub(super) fn new(plan: &'a DrivePlan, start: Counters, clock: &impl Clock) -> Self {
        Self {
            plan,
            outcome: SimulationOutcome::default(),
            start,
            before: start,
            began_seconds: clock.now_seconds(),
            interval_end_pages: start.host_pages + plan.interval_pages,
            interval_end_seconds: plan.interval_seconds.unwrap_or(f64::INFINITY),
            end_pages: plan.end_pages.map_or(u64::MAX, |pages| start.host_pages + pages),
            end_seconds: plan.end_seconds.unwrap_or(f64::INFINITY),
        }
    }

    /// Takes a batch into account that left the layer like this; `is_last` if the workload has no more. Returns whether the
    /// run is over.
    pub(super) fn take_batch(&mut self, layer: &Snapshot, clock: &mut impl Clock, is_last: bool) -> bool {
        let pages = layer.counters.host_pages;
        let seconds = clock.now_seconds().unwrap_or(0.0);
        let over = is_last || pages >= self.end_pages || seconds >= self.end_seconds;
        let interval_over = match self.plan.interval_seconds {
            Some(_) => seconds >= self.interval_end_seconds,
            None => pages >= self.interval_end_pages,
        };
        if interval_over || over {
            self.end_interval(layer, clock);
            self.interval_end_pages = pages + self.plan.interval_pages;
            self.interval_end_seconds += self.plan.interval_seconds.unwrap_or(0.0);
        }
        over
    }

    /// What the run did, with tables of so many bytes.
    pub(super) fn conclude(mut self, memory_bytes: usize) -> SimulationOutcome {
        // The run ended with its last interval.
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
                end_host_pages: self.outcome.host_pages() + layer.counters.host_pages - self.before.host_pages,
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
