//! How fast and how small the simulator is. Prints `name value target` lines, a target being `>=` or `<=` and a number;
//! exits with 1 if one is missed. Speeds are per second of processor time, so that a busy machine does not change them
//! much. Each is the median of three runs; `cargo bench -- quick` makes one run of each.

use cliffwatch_drive::error::Result;
use cliffwatch_drive::plan::Plan;
use cliffwatch_drive::report::Report;
use cliffwatch_drive::settings::{Precondition, Settings, TimingSetting, WorkloadKind};
use cliffwatch_drive::simulate::simulate;
use cliffwatch_drive::units::{Size, Span};
use std::process::ExitCode;

/// One figure and what it must reach.
struct Figure {
    name: &'static str,
    target: Target,
    settings: Settings,
    read: fn(&Report) -> f64,
}

#[derive(Clone, Copy)]
enum Target {
    AtLeast(f64),
    AtMost(f64),
}

impl Target {
    fn is_met(self, value: f64) -> bool {
        match self {
            Self::AtLeast(least) => value >= least,
            Self::AtMost(most) => value <= most,
        }
    }
}

fn main() -> ExitCode {
    let runs = if std::env::args().any(|argument| argument == "quick") { 1 } else { 3 };
    let mut all_met = true;
    for figure in figures() {
        match measure(&figure, runs) {
            Ok(value) => {
                let (sign, bound) = match figure.target {
                    Target::AtLeast(least) => (">=", least),
                    Target::AtMost(most) => ("<=", most),
                };
                println!("{} {value:.4} {sign}{bound}", figure.name);
                all_met &= figure.target.is_met(value);
            }
            Err(error) => {
                eprintln!("{}: {error}", figure.name);
                all_met = false;
            }
        }
    }
    if all_met { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn measure(figure: &Figure, runs: usize) -> Result<f64> {
    let plan = Plan::new(figure.settings.clone())?;
    let mut values = Vec::new();
    for _ in 0..runs {
        values.push((figure.read)(&simulate(&plan)?));
    }
    values.sort_by(f64::total_cmp);
    Ok(values[values.len() / 2])
}

fn figures() -> Vec<Figure> {
    let small = Settings { fills: Some(12.0), ..Settings::default() };
    let terabyte = Settings { capacity: Some(Size(1_000_000_000_000)), fills: Some(1.0), ..Settings::default() };
    // 36 hours at half a gigabyte per second on a drive of 7.5 TB, of which an eighth is simulated.
    let soak = Settings {
        workload: Some(WorkloadKind::Streams),
        timing: Some(TimingSetting::On),
        capacity: Some(Size(7_500_000_000_000)),
        rate: Some(Size(500_000_000)),
        duration: Some(Span(36.0 * 3600.0)),
        scale: Some(8),
        ..Settings::default()
    };
    let streams = Settings {
        workload: Some(WorkloadKind::Streams),
        timing: Some(TimingSetting::On),
        fills: Some(6.0),
        duration: None,
        rate: None,
        ..soak.clone()
    };
    let trimmed = Settings { trim: Some(true), ..streams.clone() };
    let bare_streams = Settings { timing: Some(TimingSetting::Off), ..streams.clone() };
    let new = Settings { precondition: Some(Precondition::None), fills: Some(0.01), ..terabyte.clone() };
    let figure = |name, target, settings, read| Figure { name, target, settings, read };
    vec![
        figure("bare_million_programs_per_cpu_second", Target::AtLeast(60.0), small, million_programs),
        figure("bare_1tb_million_programs_per_cpu_second", Target::AtLeast(60.0), terabyte, million_programs),
        figure("bare_streams_million_programs_per_cpu_second", Target::AtLeast(60.0), bare_streams, million_programs),
        figure("timed_streams_million_programs_per_cpu_second", Target::AtLeast(20.0), streams, million_programs),
        figure(
            "timed_trimmed_streams_million_programs_per_cpu_second",
            Target::AtLeast(20.0),
            trimmed,
            million_programs,
        ),
        figure("table_gb_per_simulated_tb", Target::AtMost(0.55), new.clone(), table_ratio),
        figure("resident_gb_per_simulated_tb", Target::AtMost(0.55), new, resident_ratio),
        figure("soak_36h_7.5tb_eighth_cpu_seconds", Target::AtMost(60.0), soak, |report| report.cpu_seconds),
    ]
}

/// Programs of the run per processor second, in millions; those before the run are not counted though their time is.
fn million_programs(report: &Report) -> f64 {
    report.media_pages as f64 / report.cpu_seconds / 1e6
}

fn table_ratio(report: &Report) -> f64 {
    report.bytes_of_memory as f64 / 1e9 / (report.capacity_bytes as f64 / f64::from(report.scale) / 1e12)
}

/// The most memory that this process has held, by the capacity. Drives simulated before were no larger.
fn resident_ratio(report: &Report) -> f64 {
    // SAFETY: an all-zero rusage is a valid value of that plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live structure that the call fills.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_maxrss as f64 * 1024.0 / 1e9 / (report.capacity_bytes as f64 / 1e12)
}
