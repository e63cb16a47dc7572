//! The `cliffwatch-drive` command.

use clap::{Parser, Subcommand, ValueEnum};
use cliffwatch_drive::error::Result;
use cliffwatch_drive::plan::Plan;
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
}

#[derive(clap::Args)]
struct Simulate {
    /// Settings in YAML, with the flags' names as keys
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    #[command(flatten)]
    settings: Box<Settings>,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A few lines for people.
    Text,
    /// Everything, as one object.
    Json,
}

/// Bad input, as the command line's own errors.
const BAD_INPUT: u8 = 2;

fn main() -> ExitCode {
    let Command::Simulate(arguments) = Arguments::parse().command;
    match run(arguments) {
        Ok(text) => match writeln!(std::io::stdout(), "{text}") {
            Ok(()) => ExitCode::SUCCESS,
            // Whoever read the output has stopped reading: nothing to say, and nobody to say it to.
            Err(_) => ExitCode::FAILURE,
        },
        Err(error) => {
            eprintln!("cliffwatch-drive: {error}");
            ExitCode::from(BAD_INPUT)
        }
    }
}

fn run(arguments: Simulate) -> Result<String> {
    let settings = match arguments.profile {
        Some(path) => arguments.settings.over(Settings::read(&path)?),
        None => *arguments.settings,
    };
    let report = simulate(&Plan::new(settings)?)?;
    Ok(match arguments.format {
        Format::Text => report.to_string(),
        Format::Json => serde_json::to_string_pretty(&report).unwrap_or_else(|error| error.to_string()),
    })
}
