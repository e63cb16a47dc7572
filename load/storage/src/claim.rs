//! Whose a directory is: the marker that this engine puts into its own, and the records that it names.

use crate::config::{Config, Layout, PARTITIONS_LIMIT};
use crate::error::{Error, Result};
use crate::segments::{JOURNAL, LOG};
use cliffwatch_measure::record::HEADER_BYTES;
use std::path::Path;

/// Says that the directory is this engine's, and what its records are like.
pub(crate) const MARKER: &str = "cliffwatch-storage.json";
/// The mark that the service leaves in a run's directory.
const RUN_MARKER: &str = ".cliffwatch-run";

/// What has to be known to read the records again.
#[derive(Clone, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Marker {
    /// The version of this description.
    pub version: u32,
    /// How many partitions there are.
    pub partitions: u32,
    /// Whether all partitions share a log.
    pub shared: bool,
    /// The length of every record, where they are equally long.
    pub record_bytes: Option<u32>,
}

impl Marker {
    fn of(config: &Config) -> Self {
        let shared = config.log.layout == Layout::Shared;
        Self { version: 1, partitions: config.partitions, shared, record_bytes: config.fixed_record() }
    }

    /// Reads the marker of a directory.
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

    /// How many logs there are.
    pub(crate) fn logs(&self) -> u32 {
        if self.shared { 1 } else { self.partitions }
    }
}

/// Makes the directory this engine's, or takes up again what is. Refuses one that holds anything else.
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

/// Removes everything that the engine made in its directory.
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
