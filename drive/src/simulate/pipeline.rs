//! A run in two threads: one makes the operations and works out when each is done, the other is the translation layer.
//!
//! Operations go to the layer in units and come back with what the layer did. So many units are on the way that
//! neither waits for the other. Which unit holds what, and in which order they are looked at, does not depend on which
//! thread is faster, so neither does the result. The layer is a few units ahead when the run ends; those are ignored.

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

/// Work units on the way. A unit and what comes back with it should stay in the caches.
const PARCELS: usize = 4;
const BATCHES_OF_PARCEL: usize = 128;

/// How many operations ahead the layer announces those whose old version it looks up, and twice that those whose entry of
/// the map it looks up.
const AHEAD: usize = 48;

/// Operations on their way to the layer and back.
#[derive(Default)]
struct WorkUnit {
    /// What the layer need not read, so that it stays where it is.
    operations: Vec<Operation>,
    orders: Vec<LayerOperation>,
    batches: Vec<OperationBatch>,
    /// What the layer did, operation by operation.
    tape: Tape,
    /// Where on the tape each operation ends.
    ends: Vec<u32>,
}

/// What the layer must know of an operation.
struct LayerOperation {
    page: u32,
    pages: u32,
    stream: u16,
    kind: OperationKind,
    flushed: bool,
}

/// Operations between two looks at whether the run is over.
struct OperationBatch {
    /// Where in the unit's operations it ends.
    end: usize,
    /// How the layer is after it, once it is.
    snapshot: Option<Snapshot>,
}

/// Makes a run. Also returns the processor seconds of the layer's thread.
///
/// # Errors
/// [`Error::System`] where the system has no thread to give.
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
        // The layer returns every unit until it is asked to stop, or panics, which joining it will show.
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

/// Fills a unit and sends it to the layer.
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
    // A layer that is gone has panicked, which joining it will show.
    let _ = to_layer.send(unit);
}

/// The layer's thread: runs units for as long as there are any. Returns the processor seconds that it used.
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

    /// Passes the clock some of the operations and of what the layer made of them. Returns what the host wrote by them.
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
