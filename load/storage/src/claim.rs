//! Ownership of a load's directory, by a marker file that also describes its records.

use crate::config::{Config, Layout, PARTITIONS_LIMIT};
use crate::error::{Error, Result};
use crate::segments::{JOURNAL, LOG};
use cliffwatch_measure::record::HEADER_BYTES;
use std::path::Path;

/// Name of the marker file: it identifies a directory as this engine's and describes its records.
pub(crate) const MARKER: &str = "cliffwatch-storage.json";
/// Prefix of the names of the service's marker files in a run's directory.
const RUN_MARKER: &str = ".cliffwatch-run";

/// Content of the marker file: the facts needed to read the records back.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Marker {
    /// Version of this format.
    pub version: u32,
    /// Number of partitions.
    pub partitions: u32,
    /// True if all partitions share one log.
    pub shared: bool,
    /// Length of every record in bytes; None if lengths vary.
    pub record_bytes: Option<u32>,
}

impl Marker {
    fn of(config: &Config) -> Self {
        let shared = config.log.layout == Layout::Shared;
        Self { version: 1, partitions: config.partitions, shared, record_bytes: config.fixed_record() }
    }

    /// Reads the marker of a directory; fails if it is missing or damaged.
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(MARKER);
        let text = std::fs::read_to_string(&path).map_err(Error::file(&path, "read it"))?;
        let marker: Self = serde_json::from_str(&text)?;
        let is_short = marker.record_bytes.is_some_and(|bytes| (bytes as usize) < HEADER_BYTES);
        if is_short || !(1..=PARTITIONS_LIMIT).contains(&marker.partitions) {
            return Err(Error::setting(MARKER, "no load has such partitions and records: the file is damaged"));
        }
        Ok(marker)
    }

    /// Returns the number of logs.
    pub(crate) fn logs(&self) -> u32 {
        if self.shared { 1 } else { self.partitions }
    }
}

/// Claims the directories of a load: writes the marker, or accepts an equal one of an earlier engine. Fails if they
/// hold anything else.
pub(crate) fn claim(config: &Config) -> Result<()> {
    for directory in [Some(&config.directory), config.journal_directory.as_ref()].into_iter().flatten() {
        let entries = std::fs::read_dir(directory).map_err(Error::file(directory, "list it"))?;
        for entry in entries {
            let name = entry.map_err(Error::file(directory, "list it"))?.file_name();
            let name = name.to_string_lossy();
            let ours = [MARKER, LOG, JOURNAL].contains(&&*name) || name.starts_with(RUN_MARKER) || name == "lost+found";
            if !ours {
                return Err(Error::Foreign { path: directory.clone(), found: name.into_owned() });
            }
        }
    }
    let path = config.directory.join(MARKER);
    let wanted = Marker::of(config);
    if path.exists() {
        let found = Marker::read(&config.directory)?;
        return if found == wanted {
            Ok(())
        } else {
            Err(Error::Foreign { path: config.directory.clone(), found: "another load's segments".to_owned() })
        };
    }
    if config.directory.join(LOG).exists() {
        return Err(Error::Foreign { path: config.directory.clone(), found: format!("{LOG} without {MARKER}") });
    }
    let text = serde_json::to_string(&wanted)?;
    std::fs::write(&path, text).map_err(Error::file(&path, "write it"))
}

/// Removes all files that the engine created in its directories, the marker included.
pub(crate) fn remove(config: &Config) -> Result<()> {
    let mut found = vec![config.directory.join(LOG), config.directory.join(JOURNAL)];
    found.extend(config.journal_directory.as_ref().map(|directory| directory.join(JOURNAL)));
    for path in found {
        match std::fs::remove_dir_all(&path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                return Err(Error::file(path, "remove it")(error));
            }
            _ => {}
        }
    }
    let marker = config.directory.join(MARKER);
    std::fs::remove_file(&marker).map_err(Error::file(marker, "remove it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_marker_that_no_load_leaves_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        for (partitions, record_bytes) in [(0, "null"), (u32::MAX, "null"), (1, "0"), (1, "31")] {
            let text =
                format!(r#"{{"version":1,"partitions":{partitions},"shared":false,"record_bytes":{record_bytes}}}"#);
            std::fs::write(directory.path().join(MARKER), text).unwrap();
            assert!(Marker::read(directory.path()).unwrap_err().to_string().contains("damaged"));
        }
    }
}
