//! File system load of a log-structured broker: appends to many partitions by due time, rolls segments, deletes by
//! retention, and verifies records by reading them back.
//!
//! `config::Config` holds all settings; a broker's style is a set of its values.

mod buffers;
mod claim;
mod config;
mod encode;
mod error;
mod figures;
mod files;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod index;
mod io;
mod log;
mod memory;
mod readers;
mod recover;
mod run;
mod segments;
mod shard;
mod trial;
mod verify;

use cliffwatch_measure::clock::Clock;
use cliffwatch_measure::output::Output;
use cliffwatch_measure::stop::Stop;
use config::Config;
pub use error::{Error, Result};
use std::path::Path;
use std::time::Duration;

/// Exit status when the configuration or the directory cannot be used.
pub const BAD_INPUT: u8 = 2;
/// Exit status when the load failed.
pub const FAILED: u8 = 1;

/// Runs the load that the JSON configuration in file `path` describes and prints windows and events on standard output;
/// with `prepare`, only writes the fill that precedes the load. Returns the exit status.
pub fn storage(path: &Path, prepare: bool) -> u8 {
    let clock = Clock::anchored();
    let output = Output::new(std::io::stdout(), clock);
    let result = Stop::on_signals().map_err(Error::system("signals")).and_then(|stop| {
        let text = std::fs::read_to_string(path).map_err(Error::file(path, "read it"))?;
        let config = Config::parse(&text)?;
        if prepare { run::fill(config, clock, &stop) } else { run::load(config, clock, &stop, &output) }
    });
    let Err(error) = result else {
        return if prepare || output.completed().is_ok() { 0 } else { FAILED };
    };
    eprintln!("cliffwatch-load: {error}");
    if !prepare {
        // Ignore a failed write to standard output: the exit status reports the failure as well.
        let message = error.to_string();
        let _ = if error.is_final() { output.failed_for_good(&message) } else { output.failed(&message) };
    }
    if error.is_bad_input() { BAD_INPUT } else { FAILED }
}

/// Returns, as JSON, the I/O method that the load configured in file `path` would use here. Writes no files.
pub fn try_io(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path, "read it"))?;
    Ok(serde_json::to_string(&trial::try_io(&Config::parse(&text)?)?)?)
}

/// Reads back all records that a load left in a directory, or about `bytes` of them. Returns the report as JSON, and
/// whether it is clean.
pub fn verify_directory(directory: &Path, bytes: Option<u64>) -> Result<(String, bool)> {
    let extent = verify::Extent { bytes, time: Duration::from_secs(u64::from(u32::MAX)) };
    let report = verify::verify_directory(directory, extent)?;
    Ok((serde_json::to_string(&report)?, report.findings.are_clean()))
}
