//! Everything that can go wrong, each with what it was about and what to do.

use std::path::PathBuf;

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. The text is one sentence that names the flag, field or file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting, given as a flag or in a profile, that cannot work.
    #[error("--{flag}: {advice}")]
    Setting {
        /// The flag's name without dashes, which is also the profile's key.
        flag: &'static str,
        /// What is wrong and what to do.
        advice: String,
    },
    /// A file that cannot be read or written.
    #[error("{}: {source}: check that the file exists and that its permissions allow this", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A profile that is not YAML, or has an unknown key or a value of the wrong kind.
    #[error("{}: {reason}: see `cliffwatch-drive simulate --help` for the keys, which are the flags' names", path.display())]
    Profile {
        /// The profile.
        path: PathBuf,
        /// What the parser said, with the line.
        reason: String,
    },
    /// A line of a recorded trace that cannot be understood or replayed.
    #[error("{}, line {line}: {reason}", path.display())]
    Trace {
        /// The trace.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// What is wrong and what to do.
        reason: String,
    },
    /// A saved state that cannot be taken on.
    #[error("{}: the saved state {reason}: move the file away to start with a new drive", path.display())]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The system does not let the drive be mounted or unmounted.
    #[error("{what}: {source}: {advice}")]
    System {
        /// What was tried.
        what: String,
        /// What the system said.
        source: std::io::Error,
        /// What to do.
        advice: &'static str,
    },
}

impl Error {
    /// An [`Error::Setting`].
    pub fn setting(flag: &'static str, advice: impl Into<String>) -> Self {
        Self::Setting { flag, advice: advice.into() }
    }

    /// Turns an I/O error into an [`Error::File`] about `path`.
    pub fn file(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::File { path, source }
    }
}
