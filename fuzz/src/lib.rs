//! Fuzz targets: functions that panic when an invariant is violated. `tests/replay.rs` calls them with the inputs in
//! `corpus/`; `src/main.rs` searches for more with libFuzzer.

mod bounded;

use std::path::Path;
use tempfile::TempDir;

#[global_allocator]
static ALLOCATOR: bounded::Bounded = bounded::Bounded;

/// Fuzz target: decodes and executes one input.
pub type Target = fn(&[u8]);

/// All targets, by the names of their corpora.
pub const TARGETS: [(&str, Target); 9] = [
    ("answers", cliffwatch_kafka::fuzzing::answers),
    ("batches", cliffwatch_kafka::fuzzing::batches),
    ("compressed_batches", cliffwatch_kafka::fuzzing::compressed_batches),
    ("hot_answers", cliffwatch_kafka::fuzzing::hot_answers),
    ("markers", |input| in_a_directory(cliffwatch_storage::fuzzing::markers, input)),
    ("profiles", cliffwatch_drive::fuzzing::profiles),
    ("segments", |input| in_a_directory(cliffwatch_storage::fuzzing::segments, input)),
    ("traces", cliffwatch_drive::fuzzing::traces),
    ("written_batches", cliffwatch_kafka::fuzzing::written_batches),
];

/// Returns the target with this name.
pub fn target(name: &str) -> Option<Target> {
    TARGETS.iter().find(|(known, _)| *known == name).map(|(_, target)| *target)
}

/// Executes a target in a temporary directory, one per thread, which its inputs use one after the other.
fn in_a_directory(target: fn(&Path, &[u8]), input: &[u8]) {
    thread_local! {
        static DIRECTORY: Option<TempDir> = tempfile::tempdir().ok();
    }
    DIRECTORY.with(|directory| match directory {
        Some(directory) => target(directory.path(), input),
        None => assert!(directory.is_some(), "there is no room for a temporary directory"),
    });
}
