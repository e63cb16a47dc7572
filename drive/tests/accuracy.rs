//! Accuracy of the simulated write amplification against published closed forms, over three seeds each.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use cliffwatch_drive::plan::DrivePlan;
use cliffwatch_drive::settings::{Policy, Settings, WorkloadKind};
use cliffwatch_drive::simulate::simulate;

const OVER_PROVISIONING: [f64; 5] = [0.07, 0.125, 0.20, 0.28, 0.40];
const SEEDS: [u64; 3] = [1, 2, 3];
const PAGES_PER_BLOCK: u32 = 256;

/// Returns where `is_low` turns from true to false between `low` and `high`.
fn bisect(mut low: f64, mut high: f64, is_low: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..200 {
        let middle = (low + high) / 2.0;
        if is_low(middle) { low = middle } else { high = middle }
    }
    low
}

/// Write amplification A of FIFO (Menon 1995; Xiang and Kurkoski 2012; Desnoyers 2012): A = 1 / (1 - exp(-alpha / A)).
fn fifo(alpha: f64) -> f64 {
    bisect(1.0 + 1e-9, 1000.0, |a| a < 1.0 / (1.0 - (-alpha / a).exp()))
}

/// Write amplification A of greedy with b pages per block (Desnoyers 2014): alpha (b - x) / b = H(b) - H(m + 1) + (1 -
/// f) / (m + 1), where x = m + f is the number of valid pages of the victim, m whole and f in [0, 1); A = b / (b - x).
fn greedy(alpha: f64, pages_per_block: u32) -> f64 {
    let b = f64::from(pages_per_block);
    let harmonic = |n: u32| (1..=n).map(|i| 1.0 / f64::from(i)).sum::<f64>();
    let excess = |x: f64| {
        let m = x.floor() as u32;
        let f = x - x.floor();
        harmonic(pages_per_block) - harmonic(m + 1) + (1.0 - f) / f64::from(m + 1) - alpha * (b - x) / b
    };
    let x = bisect(0.0, b - 1.0, |x| excess(x) > 0.0);
    b / (b - x)
}

/// Write amplification A of FIFO for hot and cold data at one frontier (Desnoyers 2014): A = sum of r / (1 - exp(-(r /
/// f) alpha / A)) over both, f being the share of the space and r that of the writes.
fn hot_cold_fifo(alpha: f64, hot_space: f64, hot_writes: f64) -> f64 {
    let part = |a: f64, r: f64, f: f64| r / (1.0 - (-(r / f) * alpha / a).exp());
    bisect(1.0 + 1e-9, 1000.0, |a| a < part(a, hot_writes, hot_space) + part(a, 1.0 - hot_writes, 1.0 - hot_space))
}

fn simulated(workload: WorkloadKind, policy: Policy, over_provisioning: f64, seed: u64, gc_pacing: u32) -> f64 {
    let settings = Settings {
        workload: Some(workload),
        policy: Some(policy),
        over_provisioning: Some(over_provisioning),
        pages_per_block: Some(PAGES_PER_BLOCK),
        blocks: Some(4096),
        fills: Some(12.0),
        seed: Some(seed),
        gc_pacing: Some(gc_pacing),
        ..Settings::default()
    };
    let report = simulate(&DrivePlan::new(settings).unwrap()).unwrap();
    assert!(report.steady_state.is_steady, "not steady at {over_provisioning}");
    report.write_amplification
}

fn assert_close(what: &str, workload: WorkloadKind, policy: Policy, formula: impl Fn(f64) -> f64, tolerance: f64) {
    for over_provisioning in OVER_PROVISIONING {
        let expected = formula(1.0 + over_provisioning);
        for (seed, gc_pacing) in SEEDS.map(|seed| (seed, 0)).into_iter().chain([(SEEDS[0], 32)]) {
            let found = simulated(workload, policy, over_provisioning, seed, gc_pacing);
            let error = found / expected - 1.0;
            println!(
                "{what} {over_provisioning} seed {seed} pacing {gc_pacing}: {found:.4} for {expected:.4}, {:+.2} %",
                error * 100.0
            );
            assert!(
                error.abs() <= tolerance,
                "{what} at {over_provisioning}, seed {seed}, pacing {gc_pacing}: {found} for {expected}, {:+.2} %",
                error * 100.0
            );
        }
    }
}

#[test]
fn formulas_give_the_published_values() {
    let rounded = |value: f64| (value * 1000.0).round() / 1000.0;
    assert_eq!(OVER_PROVISIONING.map(|op| rounded(fifo(1.0 + op))), [7.817, 4.680, 3.188, 2.481, 1.957]);
    assert_eq!(OVER_PROVISIONING.map(|op| rounded(greedy(1.0 + op, 256))), [7.597, 4.603, 3.153, 2.461, 1.945]);
    assert_eq!(OVER_PROVISIONING.map(|op| rounded(greedy(1.0 + op, 32))), [6.347, 4.137, 2.930, 2.330, 1.866]);
    let hot_cold = OVER_PROVISIONING.map(|op| (hot_cold_fifo(1.0 + op, 0.2, 0.8) * 100.0).round() / 100.0);
    assert_eq!(hot_cold, [8.18, 5.04, 3.54, 2.82, 2.28]);
}

#[test]
fn greedy_is_within_one_percent_of_its_formula() {
    let formula = |alpha| greedy(alpha, PAGES_PER_BLOCK);
    assert_close("greedy", WorkloadKind::Uniform, Policy::Greedy, formula, 0.01);
}

#[test]
fn fifo_is_within_one_percent_of_its_formula() {
    assert_close("fifo", WorkloadKind::Uniform, Policy::Fifo, fifo, 0.01);
}

#[test]
fn hot_and_cold_at_one_frontier_is_within_two_percent_of_its_formula() {
    let formula = |alpha| hot_cold_fifo(alpha, 0.2, 0.8);
    assert_close("hot-cold", WorkloadKind::HotCold, Policy::Fifo, formula, 0.02);
}
