//! Properties of a run: what its result must and must not depend on.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use cliffwatch_drive::plan::DrivePlan;
use cliffwatch_drive::report::SimulationReport;
use cliffwatch_drive::settings::{Policy, Precondition, Settings, SyncSetting, TimingSetting, WorkloadKind};
use cliffwatch_drive::simulate::{simulate, simulate_workload};
use cliffwatch_drive::units::{ByteSize, TimeSpan};
use cliffwatch_drive::workload::{Operation, Workload};
use std::sync::{Arc, Mutex};

/// Workload that keeps every operation of another one.
struct Recorded {
    inner: Box<dyn Workload>,
    seen: Arc<Mutex<Vec<Operation>>>,
}

impl Workload for Recorded {
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize) {
        let before = batch.len();
        self.inner.fill(batch, count);
        self.seen.lock().unwrap().extend_from_slice(&batch[before..]);
    }
}

fn recorded(settings: &Settings) -> (Vec<Operation>, SimulationReport) {
    let plan = DrivePlan::new(settings.clone()).unwrap();
    let seen = Arc::new(Mutex::new(Vec::new()));
    let workload = Recorded { inner: plan.workload().unwrap(), seen: Arc::clone(&seen) };
    let report = simulate_workload(&plan, Box::new(workload)).unwrap();
    let operations = seen.lock().unwrap().clone();
    (operations, report)
}

/// Settings of forty streams on a drive of 16 GiB.
fn streams() -> Settings {
    Settings {
        workload: Some(WorkloadKind::Streams),
        streams: Some(40),
        segment_size: Some(ByteSize(16 << 20)),
        extent_size: Some(ByteSize(1 << 20)),
        fills: Some(4.0),
        ..Settings::default()
    }
}

#[test]
fn timing_changes_neither_the_trace_nor_what_the_drive_does() {
    let uniform = Settings { fills: Some(1.0), reads_per_write: Some(0.1), ..Settings::default() };
    let hot_cold = Settings { workload: Some(WorkloadKind::HotCold), frontiers: Some(2), ..uniform.clone() };
    let files = Settings { reads_per_write: Some(0.05), buffer_protected: Some(false), ..streams() };
    for settings in [uniform, hot_cold, files] {
        let with = |timing| recorded(&Settings { timing: Some(timing), ..settings.clone() });
        let (trace_off, off) = with(TimingSetting::Off);
        let (trace_on, on) = with(TimingSetting::On);
        // With timing the layer is ahead of the clock, so there are operations beyond the end of the run.
        assert!(trace_on.len() >= trace_off.len() && trace_off == trace_on[..trace_off.len()], "the trace differs");
        assert_eq!(off.counters, on.counters);
        assert!(on.latency.write.is_some() && off.latency.write.is_none());
    }
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_seed_another_one() {
    let run = |seed| {
        let report = simulate(&DrivePlan::new(Settings { seed: Some(seed), ..streams() }).unwrap()).unwrap();
        (report.counters, report.latency.write.map(|latency| latency.p99_seconds.to_bits()))
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

#[test]
fn a_drive_that_falls_behind_slows_its_host_down_and_latency_stays_what_its_queue_makes_it() {
    let settings = Settings {
        timing: Some(TimingSetting::On),
        rate: Some(ByteSize(500_000_000)),
        precondition: Some(Precondition::None),
        queue_depth: Some(16),
        duration: Some(TimeSpan(240.0)),
        ..Settings::default()
    };
    let report = simulate(&DrivePlan::new(settings).unwrap()).unwrap();
    let last = report.intervals.last().unwrap();
    let achieved = last.host_bytes_per_second.unwrap();
    assert!(achieved < 200e6, "{achieved} bytes per second at a write amplification of {}", last.write_amplification);
    assert!(last.slipped_seconds.unwrap() > 0.5);
    // By Little's law the mean latency is the queue depth over the rate of requests.
    let expected = 16.0 * 16384.0 / achieved;
    let latency = last.write_latency.as_ref().unwrap();
    assert!(latency.p50_seconds < 4.0 * expected && latency.p99_seconds > expected, "{latency:?} for {expected}");
    assert!(latency.max_seconds < 1.0, "{latency:?}: grows without bound");
    let onset = report.cliff.onset_seconds.unwrap();
    let out_of_clean = report.cliff.out_of_clean_blocks_seconds.unwrap();
    assert!((out_of_clean..out_of_clean + 30.0).contains(&onset), "{:?}", report.cliff);
    let rate = report.intervals[2].host_bytes_per_second.unwrap();
    assert!((rate / 500e6 - 1.0).abs() < 0.01, "{rate} before the cliff");
}

#[test]
fn throughput_after_the_cliff_is_what_write_amplification_leaves() {
    let settings = Settings {
        timing: Some(TimingSetting::On),
        over_provisioning: Some(0.28),
        read_latency: Some(TimeSpan(0.0)),
        erase_latency: Some(TimeSpan(0.0)),
        fills: Some(3.0),
        ..Settings::default()
    };
    let report = simulate(&DrivePlan::new(settings).unwrap()).unwrap();
    let last = report.intervals.last().unwrap();
    let ratio = last.host_bytes_per_second.unwrap() * last.write_amplification / report.program_bytes_per_second;
    assert!((0.85..=1.01).contains(&ratio), "{ratio} of what the dies can program");
}

#[test]
fn trim_and_space_left_unpartitioned_each_lower_write_amplification() {
    let amplification = |settings: Settings| simulate(&DrivePlan::new(settings).unwrap()).unwrap().write_amplification;
    let plain = amplification(Settings { disorder: Some(1.0), ..streams() });
    let trimmed = amplification(Settings { disorder: Some(1.0), trim: Some(true), ..streams() });
    let spared = amplification(Settings { disorder: Some(1.0), unpartitioned: Some(0.25), ..streams() });
    assert!(plain > 1.5 && trimmed < 1.1 && spared < 0.75 * plain, "{plain} plain, {trimmed} trimmed, {spared} spared");
}

#[test]
fn separating_hot_from_cold_lowers_write_amplification() {
    let hot_cold = Settings { workload: Some(WorkloadKind::HotCold), hot_writes: Some(0.9), ..Settings::default() };
    let amplification = |settings: Settings| simulate(&DrivePlan::new(settings).unwrap()).unwrap().write_amplification;
    let mixed = amplification(hot_cold.clone());
    let apart = Settings { frontiers: Some(2), copies_apart: Some(true), ..hot_cold };
    let cost_benefit = Settings { policy: Some(Policy::CostBenefit), ..apart.clone() };
    let (apart, cost_benefit) = (amplification(apart), amplification(cost_benefit));
    // Greedy copies mix hot and cold again, so only cost-benefit gains much from separation.
    assert!(apart < mixed && cost_benefit < 0.7 * mixed, "{mixed} mixed, {apart} apart, {cost_benefit} by benefit");
}

#[test]
fn flushing_a_buffer_without_protection_pads_programs_and_waits() {
    let settings = |protected| Settings {
        sync: Some(SyncSetting::EveryWrite),
        buffer_protected: Some(protected),
        fills: Some(1.0),
        ..streams()
    };
    let run = |protected| simulate(&DrivePlan::new(settings(protected)).unwrap()).unwrap();
    let (protected, unprotected) = (run(true), run(false));
    assert_eq!(protected.counters.padded_pages, 0);
    // A program has two pages: each host page is padded by one, unless a copy fills the program.
    let padding = unprotected.counters.padded_pages as f64 / unprotected.host_pages as f64;
    assert!((0.95..=1.0).contains(&padding), "{padding}");
    let median = |report: &SimulationReport| report.latency.flush.as_ref().unwrap().p50_seconds;
    assert!(median(&protected) < 50e-6 && median(&unprotected) > 500e-6);
}

#[test]
fn small_appends_are_counted_by_their_bytes_and_not_by_the_pages_that_they_touch() {
    let run = |write_bytes, timing| {
        let settings = Settings { write_size: Some(ByteSize(write_bytes)), timing: Some(timing), ..streams() };
        let plan = DrivePlan::new(settings).unwrap();
        (simulate(&plan).unwrap(), 4 * u64::from(plan.volume_pages) * plan.page_bytes)
    };
    let (whole, _) = run(16 << 10, TimingSetting::Off);
    assert_eq!(whole.host_bytes, whole.host_pages * 16_384);
    for timing in [TimingSetting::Off, TimingSetting::On] {
        let (parts, asked_bytes) = run(4 << 10, timing);
        let written = parts.host_bytes as f64 / asked_bytes as f64;
        assert!((1.0..1.01).contains(&written), "{written} of the fills that were asked for");
        assert_eq!(parts.intervals.last().unwrap().end_host_bytes, parts.host_bytes);
        // Four parts of a page are merged in the write buffer: without copies, as much is programmed as was written.
        let counters = &parts.counters;
        let programmed = (counters.host_pages - counters.merged_pages) as f64 * 16_384.0 / parts.host_bytes as f64;
        assert!((0.99..1.1).contains(&programmed), "{programmed}");
        let (small, large) = (parts.write_amplification, whole.write_amplification);
        assert!((0.7..1.4).contains(&(small / large)), "{small} of 4 KiB appends, {large} of 16 KiB");
    }
}

#[test]
fn programs_and_erases_are_in_the_way_of_reads() {
    let run = |suspend_latency| {
        let settings = Settings {
            timing: Some(TimingSetting::On),
            reads_per_write: Some(0.1),
            rate: Some(ByteSize(100_000_000)),
            fills: Some(1.0),
            suspend_latency,
            ..Settings::default()
        };
        simulate(&DrivePlan::new(settings).unwrap()).unwrap().latency.read.unwrap()
    };
    let (waiting, suspending) = (run(None), run(Some(TimeSpan(20e-6))));
    assert!(waiting.p99_seconds > 800e-6 && waiting.max_seconds > 3e-3, "{waiting:?}");
    assert!(suspending.max_seconds < 150e-6, "{suspending:?}");
}

#[test]
fn a_scaled_drive_reaches_its_cliff_at_the_same_time() {
    let onset = |scale| {
        let settings = Settings {
            capacity: Some(ByteSize(256 << 30)),
            pages_per_block: Some(1024),
            timing: Some(TimingSetting::On),
            precondition: Some(Precondition::None),
            rate: Some(ByteSize(400_000_000)),
            duration: Some(TimeSpan(1200.0)),
            scale: Some(scale),
            ..Settings::default()
        };
        simulate(&DrivePlan::new(settings).unwrap()).unwrap().cliff.onset_seconds.unwrap()
    };
    let (whole, eighth) = (onset(1), onset(8));
    assert!((whole / eighth - 1.0).abs() < 0.1, "{whole} s whole, {eighth} s scaled");
}
