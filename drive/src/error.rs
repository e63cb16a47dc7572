//! Errors of this crate, each with its subject and the remedy.

use std::path::PathBuf;

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of this crate. The text is one sentence that names the flag, field or file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid setting, given as a flag or in a profile.
    #[error("--{flag}: {advice}")]
    Setting {
        /// The flag's name without dashes, which is also the profile's key.
        flag: &'static str,
        /// Fault and remedy.
        advice: String,
    },
    /// File that cannot be read or written.
    #[error("{}: {source}: check that the file exists and that its permissions allow this", path.display())]
    File {
        /// Path of the file.
        path: PathBuf,
        /// System error.
        source: std::io::Error,
    },
    /// Profile that is not YAML, or has an unknown key or a value of the wrong kind.
    #[error("{}: {reason}: see `cliffwatch-drive simulate --help` for the keys, which are the flags' names", path.display())]
    Profile {
        /// Path of the profile.
        path: PathBuf,
        /// Message of the parser, with the line.
        reason: String,
    },
    /// Line of a recorded trace that cannot be parsed or replayed.
    #[error("{}, line {line}: {reason}", path.display())]
    Trace {
        /// Path of the trace.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// Fault and remedy.
        reason: String,
    },
    /// Saved state of a drive that cannot be restored.
    #[error("{}: the saved state {reason}: move the file away to start with a new drive", path.display())]
    State {
        /// Path of the state file.
        path: PathBuf,
        /// Fault of the saved state.
        reason: &'static str,
    },
    /// System operation that failed, such as mounting or unmounting the drive.
    #[error("{what}: {source}: {advice}")]
    System {
        /// Operation that failed.
        what: String,
        /// System error.
        source: std::io::Error,
        /// Remedy.
        advice: &'static str,
    },
}

impl Error {
    /// Creates an [`Error::Setting`].
    pub fn setting(flag: &'static str, advice: impl Into<String>) -> Self {
        Self::Setting { flag, advice: advice.into() }
    }

    /// Returns a function that converts an I/O error into an [`Error::File`] about `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
