//! Benchmarks of the simulator's speed and memory. Prints `name value target` lines, a target being `>=` or `<=` and a
//! number; exits with 1 if one is missed. Speeds are per second of processor time, so that a busy machine does not
//! change them much; only the longest run is by wall clock, since it uses two processors. Each value is the median of
//! three runs, the longest of one; `cargo bench -- quick` makes one run of each and leaves the longest out.

use cliffwatch_drive::error::Result;
use cliffwatch_drive::plan::DrivePlan;
use cliffwatch_drive::report::SimulationReport;
use cliffwatch_drive::settings::{Precondition, Settings, TimingSetting, WorkloadKind};
use cliffwatch_drive::simulate::simulate;
use cliffwatch_drive::units::{ByteSize, TimeSpan};
use std::process::ExitCode;
use std::time::Instant;

/// One benchmark: settings, measured value and target.
struct Figure {
    name: &'static str,
    target: Target,
    settings: Settings,
    read: fn(&TimedRun) -> f64,
    runs: usize,
}

/// Report of a run, and its duration by wall clock.
struct TimedRun {
    report: SimulationReport,
    wall_seconds: f64,
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
    let is_quick = std::env::args().any(|argument| argument == "quick");
    let mut all_met = true;
    for mut figure in figures() {
        if is_quick {
            figure.runs /= 2;
        }
        if figure.runs == 0 {
            continue;
        }
        match measure(&figure) {
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

fn measure(figure: &Figure) -> Result<f64> {
    let plan = DrivePlan::new(figure.settings.clone())?;
    let mut values = Vec::new();
    for _ in 0..figure.runs {
        let started = Instant::now();
        let report = simulate(&plan)?;
        values.push((figure.read)(&TimedRun { report, wall_seconds: started.elapsed().as_secs_f64() }));
    }
    values.sort_by(f64::total_cmp);
    Ok(values[values.len() / 2])
}

fn figures() -> Vec<Figure> {
    let small = Settings { fills: Some(12.0), ..Settings::default() };
    let terabyte = Settings { capacity: Some(ByteSize(1_000_000_000_000)), fills: Some(1.0), ..Settings::default() };
    // 36 hours at half a gigabyte per second on a drive of 7.5 TB, of which an eighth is simulated, and the whole.
    let soak = Settings {
        workload: Some(WorkloadKind::Streams),
        timing: Some(TimingSetting::On),
        capacity: Some(ByteSize(7_500_000_000_000)),
        rate: Some(ByteSize(500_000_000)),
        duration: Some(TimeSpan(36.0 * 3600.0)),
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
    let whole_soak = Settings { scale: Some(1), over_provisioning: Some(0.2), disorder: Some(0.3), ..soak.clone() };
    let trimmed = Settings { trim: Some(true), ..streams.clone() };
    let bare_streams = Settings { timing: Some(TimingSetting::Off), ..streams.clone() };
    let new = Settings { precondition: Some(Precondition::None), fills: Some(0.01), ..terabyte.clone() };
    let figure = |name, target, settings, read| Figure { name, target, settings, read, runs: 3 };
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
        figure("soak_36h_7.5tb_eighth_seconds", Target::AtMost(60.0), soak, |made| made.wall_seconds),
        Figure {
            runs: 1,
            ..figure("soak_36h_7.5tb_whole_seconds", Target::AtMost(60.0), whole_soak, |made| made.wall_seconds)
        },
    ]
}

/// Returns page programs of the run per processor second, in millions; preconditioning counts in the time only.
fn million_programs(TimedRun { report, .. }: &TimedRun) -> f64 {
    report.media_pages as f64 / report.cpu_seconds / 1e6
}

fn table_ratio(TimedRun { report, .. }: &TimedRun) -> f64 {
    report.bytes_of_memory as f64 / 1e9 / (report.capacity_bytes as f64 / f64::from(report.scale) / 1e12)
}

/// Returns the peak memory of this process / capacity, in GB per TB. Drives simulated before were no larger.
fn resident_ratio(TimedRun { report, .. }: &TimedRun) -> f64 {
    // SAFETY: an all-zero rusage is a valid value of that plain structure.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live structure that the call fills.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_maxrss as f64 * 1024.0 / 1e9 / (report.capacity_bytes as f64 / 1e12)
}
