//! libFuzzer entry point of the target that `FUZZ_TARGET` names. Useful only if the program was built with coverage
//! instrumentation, as tests/fuzz/test_fuzzing.py does.
#![no_main]

use cliffwatch_fuzz::{Target, target};
use std::sync::OnceLock;

static CHOSEN: OnceLock<Target> = OnceLock::new();

libfuzzer_sys::fuzz_target!(
    init: {
        let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
        let Some(chosen) = target(&name) else {
            eprintln!("FUZZ_TARGET={name}: no target has this name");
            std::process::exit(2);
        };
        let _ = CHOSEN.set(chosen);
    },
    |input: &[u8]| {
        if let Some(chosen) = CHOSEN.get() {
            chosen(input);
        }
    }
);
