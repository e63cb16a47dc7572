//! The `cliffwatch-drive` command.

use clap::{Parser, Subcommand, ValueEnum};
use cliffwatch_drive::emulate::cleanup;
use cliffwatch_drive::emulate::mount::{Mount, mount};
use cliffwatch_drive::error::{Error, Result};
use cliffwatch_drive::plan::DrivePlan;
use cliffwatch_drive::settings::Settings;
use cliffwatch_drive::simulate::simulate;
use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

/// A flash drive that garbage-collects, to think with and to test on.
#[derive(Parser)]
#[command(version, max_term_width = 120)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Work out offline what a workload does to a drive: write amplification, latency, and when the cliff comes.
    ///
    /// Sizes are bytes or carry a unit (16KiB, 7.5TB), times are seconds or carry one (75us, 36h). Every flag is also a key
    /// of the profile, under the same name; flags win. docs/drive.md explains the model, its sources and its limits.
    Simulate(Simulate),
    /// Serve a file that is as slow as the modelled drive, for a loop device to make a disk of.
    ///
    /// Takes the flags of simulate that shape the drive and its timing; those of the workload and the run mean nothing here.
    /// Ends on SIGTERM, SIGINT or an unmount, and saves the drive's age. Needs root and FUSE.
    Mount(Emulate),
    /// Remove what drives left whose process was killed: dead mounts, loop devices on them, file systems on those.
    Clean,
}

#[derive(clap::Args)]
struct Simulate {
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    profiled: Profiled,
}

#[derive(clap::Args)]
struct Emulate {
    #[command(flatten)]
    mount: Mount,
    #[command(flatten)]
    profiled: Profiled,
}

#[derive(clap::Args)]
struct Profiled {
    /// Settings in YAML, with the flags' names as keys
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    settings: Box<Settings>,
}

impl Profiled {
    fn settings(self) -> Result<Settings> {
        match self.profile {
            Some(path) => Ok(self.settings.over(Settings::read(&path)?)),
            None => Ok(*self.settings),
        }
    }
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A few lines for people.
    Text,
    /// Everything, as one object.
    Json,
}

/// Exit code for bad input, the same as of command-line errors.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let result = match Arguments::parse().command {
        Command::Simulate(arguments) => run_simulation(arguments),
        Command::Mount(Emulate { mount: arguments, profiled }) => {
            profiled.settings().and_then(|settings| mount(&arguments, settings)).map(|()| String::new())
        }
        Command::Clean => cleanup::remove().map(|removed| to_json(&removed)),
    };
    match result {
        Ok(text) if text.is_empty() => ExitCode::SUCCESS,
        Ok(text) => match writeln!(std::io::stdout(), "{text}") {
            Ok(()) => ExitCode::SUCCESS,
            // Broken pipe: exit without a message.
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("cliffwatch-drive: {error}");
            if matches!(error, Error::System { .. }) { ExitCode::FAILURE } else { ExitCode::from(BAD_INPUT) }
        }
    }
}

fn run_simulation(arguments: Simulate) -> Result<String> {
    let report = simulate(&DrivePlan::new(arguments.profiled.settings()?)?)?;
    Ok(match arguments.format {
        Format::Text => report.to_string(),
        Format::Json => to_json(&report),
    })
}

fn to_json(value: &impl serde::Serialize) -> String {
    serde_json::to_string_pretty(value).unwrap_or_else(|error| error.to_string())
}
