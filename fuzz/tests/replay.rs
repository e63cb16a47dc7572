//! Replay of all corpus inputs (seeds, inputs found by fuzzing, former failures): none may panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use cliffwatch_fuzz::TARGETS;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn corpora() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn names(directory: &Path) -> BTreeSet<String> {
    let entries = fs::read_dir(directory).unwrap();
    entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn every_input_that_is_kept_is_taken() {
    for (name, target) in TARGETS {
        let directory = corpora().join(name);
        for input in names(&directory) {
            // Shown if the test fails.
            println!("{name}/{input}");
            target(&fs::read(directory.join(input)).unwrap());
        }
    }
}

#[test]
fn every_target_has_a_corpus_and_every_corpus_a_target() {
    assert_eq!(names(&corpora()), TARGETS.map(|(name, _)| name.to_owned()).into());
    for (name, _) in TARGETS {
        assert!(names(&corpora().join(name)).len() > 3, "{name}");
    }
}

#[test]
fn corpora_are_small() {
    let size = |path: PathBuf| fs::metadata(path).unwrap().len();
    let all = TARGETS.iter().map(|(name, _)| corpora().join(name));
    let bytes: u64 = all.flat_map(|corpus| names(&corpus).into_iter().map(move |name| size(corpus.join(name)))).sum();
    assert!(bytes < 500_000, "{bytes} bytes: minimise them as CONTRIBUTING.md says");
}
