//! Tests of the command line as other programs call it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use serde_json::Value;
use std::process::{Command, Output};

fn drive(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cliffwatch-drive")).args(arguments).output().unwrap()
}

fn simulate(arguments: &str) -> Output {
    let mut all = vec!["simulate"];
    all.extend(arguments.split(' '));
    drive(&all)
}

/// Asserts that arguments are refused with a message on standard error that names the flag, and exit code 2.
fn assert_refused(arguments: &str, named: &str) {
    let output = simulate(arguments);
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments}: {message}");
    assert!(message.contains(named), "{arguments}: {message} does not name {named}");
    assert!(output.stdout.is_empty() && !message.contains("panicked"), "{message}");
}

#[test]
fn prints_the_object_that_other_programs_read() {
    let output = simulate(
        "--workload uniform --over-provisioning 0.28 --pages-per-block 256 --blocks 4096 --policy greedy --fills 2 --seed 1 \
         --format json",
    );
    assert!(output.status.success());
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!((object["write_amplification"].as_f64().unwrap() - 2.46).abs() < 0.05);
    assert!(object["media_pages"].as_u64() > object["host_pages"].as_u64());
    assert!(object["cpu_seconds"].as_f64().unwrap() > 0.0 && object["bytes_of_memory"].as_u64().unwrap() > 4_000_000);
    assert!(object["cliff"]["definition"].is_string() && object["cliff"]["onset_seconds"].is_null());
    assert_eq!(object["intervals"].as_array().unwrap().len(), 120);
}

#[test]
fn a_profile_holds_what_flags_hold_and_flags_win() {
    let path = std::env::temp_dir().join(format!("cliffwatch-profile-{}.yaml", std::process::id()));
    let profile =
        "blocks: 512\nover-provisioning: 0.4\npage-size: 16KiB\nfills: 2\nread-latency: 75us\nworkload: hot-cold\n";
    std::fs::write(&path, profile).unwrap();
    let output = simulate(&format!("--profile {} --fills 1 --format json", path.display()));
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["settings"]["blocks"], 512);
    assert_eq!(object["settings"]["fills"], 1.0);
    std::fs::write(&path, "blokcs: 512\n").unwrap();
    assert_refused(&format!("--profile {}", path.display()), "blokcs");
    std::fs::write(&path, "page-size: 3 parsecs\n").unwrap();
    assert_refused(&format!("--profile {}", path.display()), "not a size");
    std::fs::remove_file(&path).unwrap();
    assert_refused(&format!("--profile {}", path.display()), "check that the file exists");
}

#[test]
fn bad_input_is_refused_with_the_flag_and_the_remedy() {
    assert_refused("--over-provisioning 1.5", "over-provisioning");
    assert_refused("--over-provisioning=-0.1", "over-provisioning");
    assert_refused("--over-provisioning NaN", "over-provisioning");
    assert_refused("--unpartitioned 1", "unpartitioned");
    assert_refused("--blocks 0", "blocks");
    assert_refused("--pages-per-block 0", "blocks");
    assert_refused("--capacity 900TB", "scale");
    assert_refused("--capacity 1KiB", "--capacity: too small: give at least 32KiB, which is two pages");
    assert_refused("--capacity 32KiB --scale 2 --pages-per-block 1", "give at least 64KiB");
    assert_refused("--capacity 50TB --pages-per-block 16384", "memory");
    assert_refused("--planes 3", "planes");
    assert_refused("--channels 0", "channels");
    assert_refused("--timing on --pages-per-block 100", "channels x dies x planes");
    assert_refused("--page-size 5000", "page-size");
    assert_refused("--reserve-blocks 1", "reserve-blocks");
    assert_refused("--duration 36h", "--timing on");
    assert_refused("--workload streams --segment-size 1GiB", "streams");
    assert_refused("--workload streams --write-size 24KiB --blocks 65536", "write-size");
    assert_refused("--workload trace", "trace");
    assert_refused("--workload trace --trace /nonexistent", "/nonexistent");
    assert_refused("--fills 0", "fills");
    assert_refused("--scale 0", "scale");
    assert_refused("--unknown 1", "--unknown");
}

#[test]
fn a_recorded_trace_is_played_at_its_own_times() {
    let path = std::env::temp_dir().join(format!("cliffwatch-trace-{}.csv", std::process::id()));
    let mut text = String::from("seconds,operation,offset_bytes,size_bytes\n");
    for i in 0..1000u64 {
        text += &format!("{},write,{},16384\n", i as f64 / 100.0, i * 16384);
    }
    text += "10.5,read,0,16384\n10.6,trim,0,16384000\n";
    std::fs::write(&path, text).unwrap();
    let output = simulate(&format!("--workload trace --trace {} --format json", path.display()));
    std::fs::remove_file(&path).unwrap();
    let object: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["host_pages"], 1000);
    assert_eq!(object["counters"]["trimmed_pages"], 1000);
    let seconds = object["simulated_seconds"].as_f64().unwrap();
    assert!((10.4..10.7).contains(&seconds), "{seconds}");
}

#[test]
fn help_states_units_defaults_and_sources() {
    let output = drive(&["simulate", "--help"]);
    let help = String::from_utf8(output.stdout).unwrap().split_whitespace().collect::<Vec<_>>().join(" ");
    for expected in ["[default: 75us; TLC NAND takes 40 to 106us]", "[default: 0.07", "16KiB", "an assumption", "ONFI"]
    {
        assert!(help.contains(expected), "{expected} is not in {help}");
    }
}
