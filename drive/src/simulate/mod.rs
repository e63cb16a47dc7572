//! Executes a run: feeds the workload to the translation layer and the clock, interval by interval.
//!
//! The translation layer does not depend on time. So with a timing model the layer works in its own thread, ahead of
//! the clock ([`pipeline`]); without one, a single thread does everything.

mod accounts;
mod pipeline;
mod tape;

use crate::error::Result;
use crate::ftl::{CostBenefit, Fifo, Ftl, Greedy, PartialWrite, Untimed, VictimPolicy};
use crate::plan::DrivePlan;
use crate::random::{Purpose, Random};
use crate::report::{SimulationOutcome, SimulationReport};
use crate::settings::{Policy, Precondition};
use crate::timing::Clock;
use crate::workload::{Operation, OperationKind, Workload};
use accounts::{Accounts, Snapshot};

/// Operations between two checks for the end of the run. Also the operations that are prefetched together in a
/// single-threaded run: enough cache misses in flight to hide their latency, few enough to stay in the cache.
const BATCH: usize = 64;

/// Executes the run that `plan` describes and returns its report.
///
/// # Errors
/// Those of [`DrivePlan::workload`] and of [`Ftl::new`].
pub fn simulate(plan: &DrivePlan) -> Result<SimulationReport> {
    simulate_workload(plan, plan.workload()?)
}

/// Executes the run of `plan` with a workload that the caller provides, and returns its report.
///
/// # Errors
/// Those of [`Ftl::new`], and [`crate::error::Error::System`] if the second thread cannot be started.
pub fn simulate_workload(plan: &DrivePlan, workload: Box<dyn Workload>) -> Result<SimulationReport> {
    match plan.policy {
        Policy::Greedy => run::<Greedy>(plan, workload),
        Policy::Fifo => run::<Fifo>(plan, workload),
        Policy::CostBenefit => run::<CostBenefit>(plan, workload),
    }
}

fn run<V: VictimPolicy + Send>(plan: &DrivePlan, workload: Box<dyn Workload>) -> Result<SimulationReport> {
    let started = cpu_seconds();
    let mut ftl = Ftl::<V>::new(plan.shape.clone())?;
    precondition(plan, &mut ftl);
    let (outcome, elsewhere) = match plan.timed {
        true => pipeline::make(plan, ftl, plan.timed(), workload)?,
        false => (alone(plan, ftl, plan.by_rate(), workload), 0.0),
    };
    Ok(SimulationReport::new(plan, outcome, cpu_seconds() - started + elsewhere))
}

/// Preconditions the drive as the plan says; the report does not count these writes.
fn precondition<V: VictimPolicy>(plan: &DrivePlan, ftl: &mut Ftl<V>) {
    if plan.precondition == Precondition::None {
        return;
    }
    (0..plan.volume_pages).for_each(|page| ftl.write(page, 0, &mut Untimed));
    if plan.precondition == Precondition::Random {
        let mut random = Random::new(!plan.seed(), Purpose::Workload);
        for _ in 0..plan.volume_pages {
            ftl.write(random.below(plan.volume_pages), 0, &mut Untimed);
        }
    }
}

/// Executes the run in the calling thread alone.
fn alone<V: VictimPolicy, C: Clock>(
    plan: &DrivePlan,
    mut ftl: Ftl<V>,
    mut clock: C,
    mut workload: Box<dyn Workload>,
) -> SimulationOutcome {
    let rules = Rules::new(plan);
    let mut accounts = Accounts::new(plan, ftl.counters(), &clock);
    let mut batch: Vec<Operation> = Vec::with_capacity(2 * BATCH);
    loop {
        batch.clear();
        workload.fill(&mut batch, BATCH);
        batch.iter().for_each(|operation| ftl.announce_map(operation.page));
        batch.iter().for_each(|operation| ftl.announce_old(operation.page));
        batch.iter().for_each(|operation| perform(&mut ftl, operation, &mut clock, &rules));
        accounts.written_bytes += batch.iter().map(|operation| operation.written_bytes(plan.page_bytes)).sum::<u64>();
        if accounts.take_batch(&Snapshot::of(&ftl), &mut clock, batch.is_empty()) {
            return accounts.conclude(ftl.memory_bytes() + workload.memory_bytes());
        }
    }
}

/// Page size and flush behaviour of the drive, on which the effect of operations depends.
#[derive(Clone, Copy)]
struct Rules {
    page_bytes: u64,
    buffer_protected: bool,
}

impl Rules {
    fn new(plan: &DrivePlan) -> Self {
        Self { page_bytes: plan.page_bytes, buffer_protected: plan.buffer_protected }
    }
}

/// Executes an operation on the translation layer, and reports it and its flash operations to the clock.
#[inline]
fn perform<V: VictimPolicy, C: Clock>(ftl: &mut Ftl<V>, operation: &Operation, clock: &mut C, rules: &Rules) {
    let Operation { kind, flushed, stream, page, pages, due_nanoseconds, .. } = *operation;
    match kind {
        OperationKind::Write => {
            let size_bytes = operation.written_bytes(rules.page_bytes);
            clock.arrive(due_nanoseconds, size_bytes);
            for page in page..page + pages {
                ftl.write(page, u32::from(stream), clock);
            }
            clock.wrote(size_bytes);
        }
        _ => perform_rarer(ftl, operation, clock, rules),
    }
    if flushed || kind == OperationKind::Flush {
        if !rules.buffer_protected {
            ftl.pad(clock);
        }
        clock.flush(due_nanoseconds, !rules.buffer_protected);
    }
}

fn perform_rarer<V: VictimPolicy, C: Clock>(ftl: &mut Ftl<V>, operation: &Operation, clock: &mut C, rules: &Rules) {
    let Operation { kind, stream, page, pages, due_nanoseconds, .. } = *operation;
    match kind {
        OperationKind::Write | OperationKind::Flush => {}
        OperationKind::WritePart => {
            let size_bytes = operation.written_bytes(rules.page_bytes);
            clock.arrive(due_nanoseconds, size_bytes);
            let cost = ftl.write_part(page, u32::from(stream), clock);
            if let PartialWrite::Rewrote(offset) = cost {
                clock.fetch(offset);
            }
            clock.wrote(size_bytes);
        }
        OperationKind::Read => {
            (page..page + pages).for_each(|page| clock.read(due_nanoseconds, ftl.locate(page), rules.page_bytes));
        }
        OperationKind::Trim => (page..page + pages).for_each(|page| ftl.trim(page)),
    }
}

/// Returns the processor time of the calling thread, in seconds.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec that the call fills; if it fails, the zero stays.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
