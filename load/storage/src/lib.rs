//! Does to a file system what log-structured brokers do: appends to many partitions by due time, rolls segments, deletes
//! by retention, and reads back what it wrote.
//!
//! `config::Config` is the whole of what can be asked for; a broker's style is a set of its values.

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

/// Exit status of a load that was asked for what cannot be.
pub const BAD_INPUT: u8 = 2;
/// Exit status of a load that failed.
pub const FAILED: u8 = 1;

/// Makes the load that the JSON document in a file asks for, and prints windows and events on standard output; with `prepare`, only writes
/// what is to be there before it. Returns the exit status.
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
        // The reader of the lines may have gone, and the exit status says the same.
        let message = error.to_string();
        let _ = if error.is_final() { output.failed_for_good(&message) } else { output.failed(&message) };
    }
    if error.is_bad_input() { BAD_INPUT } else { FAILED }
}

/// Returns as JSON how the load that the JSON document in a file asks for would write its files here. Writes none.
pub fn try_io(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path).map_err(Error::file(path, "read it"))?;
    Ok(serde_json::to_string(&trial::try_io(&Config::parse(&text)?)?)?)
}

/// Reads back all records in a directory that a load has left, or so many bytes of them; returns what was found as JSON, and
/// whether it is clean.
pub fn verify_directory(directory: &Path, bytes: Option<u64>) -> Result<(String, bool)> {
    let extent = verify::Extent { bytes, time: Duration::from_secs(u64::from(u32::MAX)) };
    let report = verify::verify_directory(directory, extent)?;
    Ok((serde_json::to_string(&report)?, report.findings.are_clean()))
}
