//! Makes a run: feeds the workload to the translation layer and the clock, interval by interval.
//!
//! The layer never asks what time it is. So where time is modelled, the layer works in a thread of its own, ahead of the
//! clock ([`pipeline`]); otherwise there is nothing to share out, and one thread does everything.

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

/// Steps of the workload between two looks at whether the run is over. Also the operations that are announced together
/// where one thread does everything: enough misses under way at once to hide their latency, few enough to stay in the cache.
const BATCH: usize = 64;

/// Makes the run that `plan` describes.
///
/// # Errors
/// Those of [`DrivePlan::workload`] and of [`Ftl::new`].
pub fn simulate(plan: &DrivePlan) -> Result<SimulationReport> {
    simulate_workload(plan, plan.workload()?)
}

/// Makes a run with a workload that the caller provides instead of that of the plan.
///
/// # Errors
/// Those of [`Ftl::new`], and [`crate::error::Error::System`] where the system has no thread to give.
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

/// Writes what the plan says was there before the run, outside all accounts.
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

/// Makes the run in this thread.
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

/// What operations mean on a drive.
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

/// Applies an operation to the layer, and passes it and what the layer made of it to the clock.
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

/// Seconds of processor time that this thread has used.
#[must_use]
pub fn cpu_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the pointer is to a live timespec that the call fills; if it fails, the zero stays.
    unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &raw mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
