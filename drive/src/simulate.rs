//! Makes a run: feeds the workload to the translation layer and the clock, interval by interval.

use crate::error::Result;
use crate::ftl::{CostBenefit, Counters, Fifo, Ftl, Greedy, PartialWrite, Untimed, VictimPolicy};
use crate::plan::Plan;
use crate::random::{Purpose, Random};
use crate::report::{Interval, Outcome, Report};
use crate::settings::{Policy, Precondition};
use crate::timing::{Clock, Latencies};
use crate::workload::{Kind, Operation, Workload};

/// Operations fetched together: enough misses under way at once to hide their latency, few enough to stay in the cache.
const BATCH: usize = 64;

/// Makes the run that `plan` describes.
///
/// # Errors
/// Those of [`Plan::workload`] and of [`Ftl::new`].
pub fn simulate(plan: &Plan) -> Result<Report> {
    simulate_workload(plan, plan.workload()?)
}

/// Makes a run with a workload that the caller provides instead of that of the plan.
///
/// # Errors
/// Those of [`Ftl::new`].
pub fn simulate_workload(plan: &Plan, workload: Box<dyn Workload>) -> Result<Report> {
    let started = cpu_seconds();
    let outcome = match (plan.policy, plan.timed) {
        (Policy::Greedy, false) => Run::<Greedy, _>::new(plan, plan.by_rate(), workload)?.make(),
        (Policy::Greedy, true) => Run::<Greedy, _>::new(plan, plan.timed(), workload)?.make(),
        (Policy::Fifo, false) => Run::<Fifo, _>::new(plan, plan.by_rate(), workload)?.make(),
        (Policy::Fifo, true) => Run::<Fifo, _>::new(plan, plan.timed(), workload)?.make(),
        (Policy::CostBenefit, false) => Run::<CostBenefit, _>::new(plan, plan.by_rate(), workload)?.make(),
        (Policy::CostBenefit, true) => Run::<CostBenefit, _>::new(plan, plan.timed(), workload)?.make(),
    };
    Ok(Report::new(plan, outcome, cpu_seconds() - started))
}

struct Run<'a, V, C> {
    plan: &'a Plan,
    ftl: Ftl<V>,
    clock: C,
    workload: Box<dyn Workload>,
    outcome: Outcome,
    /// What the counters, the clock and the slip were when the interval began.
    before: Counters,
    began_seconds: Option<f64>,
}

impl<'a, V: VictimPolicy, C: Clock> Run<'a, V, C> {
    fn new(plan: &'a Plan, clock: C, workload: Box<dyn Workload>) -> Result<Self> {
        let ftl = Ftl::new(plan.shape.clone())?;
        let began_seconds = clock.now_seconds();
        Ok(Self { plan, ftl, clock, workload, outcome: Outcome::default(), before: Counters::default(), began_seconds })
    }

    fn make(mut self) -> Outcome {
        self.precondition();
        let start = self.ftl.counters();
        self.before = start;
        let mut batch: Vec<Operation> = Vec::with_capacity(2 * BATCH);
        let mut interval_end_pages = start.host_pages + self.plan.interval_pages;
        let mut interval_end_seconds = self.plan.interval_seconds.unwrap_or(f64::INFINITY);
        let end_pages = self.plan.end_pages.map_or(u64::MAX, |pages| start.host_pages + pages);
        let end_seconds = self.plan.end_seconds.unwrap_or(f64::INFINITY);
        loop {
            batch.clear();
            self.workload.fill(&mut batch, BATCH);
            self.announce(&batch);
            batch.iter().for_each(|operation| self.perform(operation));
            let pages = self.ftl.counters().host_pages;
            let seconds = self.clock.now_seconds().unwrap_or(0.0);
            let over = batch.is_empty() || pages >= end_pages || seconds >= end_seconds;
            let interval_over = match self.plan.interval_seconds {
                Some(_) => seconds >= interval_end_seconds,
                None => pages >= interval_end_pages,
            };
            if interval_over || over {
                self.end_interval();
                interval_end_pages = pages + self.plan.interval_pages;
                interval_end_seconds += self.plan.interval_seconds.unwrap_or(0.0);
            }
            if over {
                break;
            }
        }
        self.outcome.counters = difference(&start, &self.ftl.counters());
        self.outcome.precondition_pages = start.host_pages;
        self.outcome.memory_bytes = self.ftl.memory_bytes() + self.workload.memory_bytes();
        self.outcome
    }

    /// Writes what the plan says was there before the run, outside all accounts.
    fn precondition(&mut self) {
        if self.plan.precondition == Precondition::None {
            return;
        }
        (0..self.plan.volume_pages).for_each(|page| self.ftl.write(page, 0, &mut Untimed));
        if self.plan.precondition == Precondition::Random {
            let mut random = Random::new(!self.plan.seed(), Purpose::Workload);
            for _ in 0..self.plan.volume_pages {
                self.ftl.write(random.below(self.plan.volume_pages), 0, &mut Untimed);
            }
        }
    }

    #[inline]
    fn announce(&self, batch: &[Operation]) {
        batch.iter().for_each(|operation| self.ftl.announce_map(operation.page));
        batch.iter().for_each(|operation| self.ftl.announce_old(operation.page));
    }

    #[inline]
    fn perform(&mut self, operation: &Operation) {
        let Operation { kind, stream, page, pages, due_nanoseconds } = *operation;
        match kind {
            Kind::Write => {
                let size_bytes = u64::from(pages) * self.plan.page_bytes;
                self.clock.arrive(due_nanoseconds, size_bytes);
                for page in page..page + pages {
                    self.ftl.write(page, u32::from(stream), &mut self.clock);
                }
                self.clock.wrote(size_bytes);
            }
            _ => self.perform_rarer(operation),
        }
    }

    fn perform_rarer(&mut self, operation: &Operation) {
        let Operation { kind, stream, page, pages, due_nanoseconds } = *operation;
        match kind {
            Kind::Write => {}
            Kind::WritePart => {
                let size_bytes = self.workload.part_bytes();
                self.clock.arrive(due_nanoseconds, size_bytes);
                let cost = self.ftl.write_part(page, u32::from(stream), &mut self.clock);
                if let PartialWrite::Rewrote(offset) = cost {
                    self.clock.fetch(offset);
                }
                self.clock.wrote(size_bytes);
            }
            Kind::Read => {
                for page in page..page + pages {
                    self.clock.read(due_nanoseconds, self.ftl.locate(page), self.plan.page_bytes);
                }
            }
            Kind::Trim => (page..page + pages).for_each(|page| self.ftl.trim(page)),
            Kind::Flush => {
                if !self.plan.buffer_protected {
                    self.ftl.pad(&mut self.clock);
                }
                self.clock.flush(due_nanoseconds, !self.plan.buffer_protected);
            }
        }
    }

    fn end_interval(&mut self) {
        let counters = self.ftl.counters();
        let now = self.clock.now_seconds();
        let (latencies, slipped_seconds) = match self.clock.take_latencies() {
            Some((latencies, slipped)) => (latencies, Some(slipped)),
            None => (Latencies::default(), None),
        };
        self.outcome.add(
            Interval {
                end_host_pages: self.outcome.host_pages() + counters.host_pages - self.before.host_pages,
                start_seconds: self.began_seconds,
                end_seconds: now,
                counters: difference(&self.before, &counters),
                clean_ratio: self.ftl.clean_ratio(),
                out_of_clean_blocks: self.ftl.is_out_of_clean_blocks(),
                mapped_pages: self.ftl.mapped_pages(),
                slipped_seconds,
                ..Interval::default()
            },
            latencies,
        );
        self.before = counters;
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

/// Seconds of processor time that this thread has used.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec that the call fills; if it fails, the zero stays.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
