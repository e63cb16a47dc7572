//! Fuzz targets of this crate: block traces and profiles, which users write or import.

use crate::plan::DrivePlan;
use crate::settings::{Settings, WorkloadKind};
use crate::workload::{Operation, OperationKind, Trace, TraceAction, Workload};
use std::path::Path;

/// Operations checked per input: more than one pass of any trace that fits in an input.
const OPERATIONS: usize = 4_096;
/// Largest volume, in pages, for which a workload is built: table memory grows with the volume.
const PAGES_LIMIT: u32 = 1 << 16;
const NOWHERE: &str = "input";

/// Fuzzes the trace parser with an options byte, a byte that sets the volume size, and the text. Panics if an operation
/// is invalid or parsing is not deterministic.
pub fn traces(input: &[u8]) {
    let Some((&[options, pages], text)) = input.split_first_chunk() else { return };
    let action = if options & 1 == 0 { TraceAction::Dispatched } else { TraceAction::Queued };
    let repeat = options & 2 != 0;
    let page_bytes = 512 << (options >> 4);
    let volume_pages = if pages == u8::MAX { u32::MAX } else { u32::from(pages) * 16 + 1 };
    let read = || Trace::parse(text, Path::new(NOWHERE), action, repeat, page_bytes, volume_pages);
    let Ok(mut trace) = read() else { return };
    let mut operations = Vec::new();
    trace.fill(&mut operations, OPERATIONS);
    assert!(!operations.is_empty(), "a trace without an operation was taken");
    assert!(operations.is_sorted_by_key(|operation| operation.due_nanoseconds), "time goes back");
    for operation in &operations {
        assert!(operation.due_nanoseconds > 0, "an operation has no time");
        assert_lies_within(operation, volume_pages);
    }
    assert!(repeat || operations.len() <= 3 * text.len(), "operations come from nowhere");
    let mut again = Vec::new();
    if let Ok(mut trace) = read() {
        (0..OPERATIONS).for_each(|_| trace.fill(&mut again, 1));
    }
    assert!(again == operations, "one at a time they are others");
}

/// Fuzzes the profile parser. Panics if a profile changes when it is written and read again, or yields an invalid plan.
pub fn profiles(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let Ok(settings) = Settings::parse(text, Path::new(NOWHERE)) else { return };
    let Ok(written) = serde_yaml_ng::to_string(&settings) else { return };
    let again = Settings::parse(&written, Path::new(NOWHERE)).ok();
    let again = again.and_then(|settings| serde_yaml_ng::to_string(&settings).ok());
    assert_eq!(again.as_ref(), Some(&written), "a profile that was written is read as another");
    let Ok(plan) = DrivePlan::new(settings) else { return };
    assert!(plan.volume_pages >= 2 && plan.volume_pages <= plan.shape.logical_pages);
    assert!(plan.effective_over_provisioning() >= 0.0 && plan.program_bytes_per_second() > 0.0);
    let reads_a_file = plan.settings().workload == Some(WorkloadKind::Trace);
    if plan.volume_pages > PAGES_LIMIT || reads_a_file {
        return;
    }
    let Ok(mut workload) = plan.workload() else { return };
    let mut operations = Vec::new();
    workload.fill(&mut operations, 256);
    operations.iter().for_each(|operation| assert_lies_within(operation, plan.volume_pages));
}

fn assert_lies_within(operation: &Operation, volume_pages: u32) {
    let end = u64::from(operation.page) + u64::from(operation.pages);
    assert!(end <= u64::from(volume_pages), "{operation:?} lies beyond {volume_pages} pages");
    let pages = match operation.kind {
        OperationKind::Flush => operation.pages == 0,
        OperationKind::WritePart => operation.pages == 1,
        OperationKind::Write | OperationKind::Read | OperationKind::Trim => operation.pages > 0,
    };
    assert!(pages, "{operation:?} has another number of pages");
}
