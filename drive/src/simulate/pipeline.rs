//! Run in two threads: one generates the operations and computes their completion times, the other executes them on the
//! translation layer.
//!
//! Operations are sent to the layer in work units, which return with its flash operations. Enough units are in flight
//! that neither thread waits for the other. The content and order of units do not depend on which thread is faster, so
//! neither does the result. The layer is a few units ahead when the run ends; those are ignored.

use super::accounts::{Accounts, Snapshot};
use super::tape::{Player, Tape};
use super::{BATCH, Rules, cpu_seconds, perform};
use crate::error::{Error, Result};
use crate::ftl::{Ftl, VictimPolicy};
use crate::plan::DrivePlan;
use crate::report::SimulationOutcome;
use crate::timing::Clock;
use crate::workload::{Operation, OperationKind, Workload};
use std::ops::Range;
use std::sync::mpsc::{Receiver, Sender, channel};

/// Work units in flight. A unit and its result should stay in the caches.
const PARCELS: usize = 4;
const BATCHES_OF_PARCEL: usize = 128;

/// Prefetch distance in operations for the old versions of pages; mapping table entries are prefetched twice as far
/// ahead.
const AHEAD: usize = 48;

/// Work unit: operations sent to the layer's thread, which returns it with the flash operations.
#[derive(Default)]
struct WorkUnit {
    /// Operations for the clock; the layer's thread does not read them, so they stay in this processor's cache.
    operations: Vec<Operation>,
    orders: Vec<LayerOperation>,
    batches: Vec<OperationBatch>,
    /// Flash operations of the layer, in order.
    tape: Tape,
    /// End of each operation on the tape.
    ends: Vec<u32>,
}

/// Fields of an operation that the layer needs.
struct LayerOperation {
    page: u32,
    pages: u32,
    stream: u16,
    kind: OperationKind,
    flushed: bool,
}

/// Operations between two checks for the end of the run.
struct OperationBatch {
    /// Index in the unit's operations at which the batch ends.
    end: usize,
    /// State of the layer after the batch; `None` until it is executed.
    snapshot: Option<Snapshot>,
}

/// Executes a run in two threads. Also returns the processor seconds of the layer's thread. Panics if that thread does.
///
/// # Errors
/// [`Error::System`] if the second thread cannot be started.
pub(super) fn make<V: VictimPolicy + Send, C: Clock>(
    plan: &DrivePlan,
    mut ftl: Ftl<V>,
    mut clock: C,
    mut workload: Box<dyn Workload>,
) -> Result<(SimulationOutcome, f64)> {
    let rules = Rules::new(plan);
    let mut accounts = Accounts::new(plan, ftl.counters(), &clock);
    let layer_bytes = ftl.memory_bytes();
    let (to_layer, for_layer) = channel();
    let (from_layer, returned) = channel();
    std::thread::scope(|scope| {
        let layer = std::thread::Builder::new()
            .name("layer".into())
            .spawn_scoped(scope, move || serve(&mut ftl, &for_layer, &from_layer, &rules))
            .map_err(|source| Error::System {
                what: "starting a second thread".into(),
                source,
                advice: "allow this user more processes",
            })?;
        for _ in 0..PARCELS {
            post(WorkUnit::default(), &mut *workload, &to_layer);
        }
        // The channel closes early only if the layer's thread panics; joining it shows the panic.
        'run: while let Ok(unit) = returned.recv() {
            let unit: WorkUnit = unit;
            let mut begin = 0;
            let mut player = Player::new(&unit.tape, rules.page_bytes);
            for OperationBatch { end, snapshot } in &unit.batches {
                accounts.written_bytes += unit.account(begin..*end, &mut player, &mut clock, &rules);
                let Some(snapshot) = snapshot else { break 'run };
                if accounts.take_batch(snapshot, &mut clock, begin == *end) {
                    break 'run;
                }
                begin = *end;
            }
            post(unit, &mut *workload, &to_layer);
        }
        drop(to_layer);
        let layer_seconds = layer.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        Ok((accounts.conclude(layer_bytes + workload.memory_bytes()), layer_seconds))
    })
}

/// Fills a work unit with operations and sends it to the layer's thread.
fn post(mut unit: WorkUnit, workload: &mut dyn Workload, to_layer: &Sender<WorkUnit>) {
    unit.operations.clear();
    unit.orders.clear();
    unit.batches.clear();
    unit.tape.clear();
    unit.ends.clear();
    for _ in 0..BATCHES_OF_PARCEL {
        workload.fill(&mut unit.operations, BATCH);
        unit.batches.push(OperationBatch { end: unit.operations.len(), snapshot: None });
    }
    unit.orders.extend(unit.operations.iter().map(LayerOperation::new));
    // This fails only if the layer's thread has panicked; joining it shows the panic.
    let _ = to_layer.send(unit);
}

/// Executes work units in the layer's thread until the channel closes. Returns the processor seconds used.
fn serve<V: VictimPolicy>(ftl: &mut Ftl<V>, units: &Receiver<WorkUnit>, done: &Sender<WorkUnit>, rules: &Rules) -> f64 {
    let started = cpu_seconds();
    while let Ok(mut unit) = units.recv() {
        unit.run_on(ftl, rules);
        if done.send(unit).is_err() {
            break;
        }
    }
    cpu_seconds() - started
}

impl LayerOperation {
    fn new(operation: &Operation) -> Self {
        let Operation { kind, flushed, stream, page, pages, .. } = *operation;
        Self { page, pages, stream, kind, flushed }
    }

    fn operation(&self) -> Operation {
        let Self { page, pages, stream, kind, flushed } = *self;
        Operation { flushed, ..Operation::new(kind, stream, page, pages) }
    }
}

impl WorkUnit {
    fn run_on<V: VictimPolicy>(&mut self, ftl: &mut Ftl<V>, rules: &Rules) {
        let Self { orders, batches, tape, ends, .. } = self;
        let announced = |at: usize| orders.get(at).filter(|order| order.kind != OperationKind::Flush);
        let mut begin = 0;
        for OperationBatch { end, snapshot } in batches {
            for (at, order) in (begin..).zip(&orders[begin..*end]) {
                if let Some(later) = announced(at + 2 * AHEAD) {
                    ftl.announce_map(later.page);
                }
                if let Some(soon) = announced(at + AHEAD) {
                    ftl.announce_old(soon.page);
                }
                perform(ftl, &order.operation(), tape, rules);
                ends.push(tape.end());
            }
            *snapshot = Some(Snapshot::of(ftl));
            begin = *end;
        }
    }

    /// Replays a range of operations and their flash operations on the clock. Returns the bytes written by the host.
    fn account<C: Clock>(&self, range: Range<usize>, player: &mut Player, clock: &mut C, rules: &Rules) -> u64 {
        let mut written_bytes = 0;
        for (operation, &end) in self.operations[range.clone()].iter().zip(&self.ends[range]) {
            let due_nanoseconds = operation.due_nanoseconds;
            if matches!(operation.kind, OperationKind::Write | OperationKind::WritePart) {
                let size_bytes = operation.written_bytes(rules.page_bytes);
                written_bytes += size_bytes;
                clock.arrive(due_nanoseconds, size_bytes);
                player.play(end, true, clock, due_nanoseconds);
                clock.wrote(size_bytes);
            }
            if operation.flushed || operation.kind == OperationKind::Flush {
                if !rules.buffer_protected {
                    player.play(end, false, clock, due_nanoseconds);
                }
                clock.flush(due_nanoseconds, !rules.buffer_protected);
            } else if operation.kind == OperationKind::Read {
                player.play(end, false, clock, due_nanoseconds);
            }
        }
        written_bytes
    }
}
