//! Errors of a storage load, each with its subject and a remedy.

use std::path::PathBuf;

/// Result of a fallible function of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a storage load. The text is one sentence that names the field or file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid setting.
    #[error("{field}: {advice}")]
    Setting {
        /// Name of the field in the configuration.
        field: &'static str,
        /// Problem and remedy.
        advice: String,
    },
    /// The configuration is not JSON, or has an unknown key or a value of the wrong kind.
    #[error("the configuration cannot be understood: {0}")]
    Configuration(#[from] serde_json::Error),
    /// A file or directory that cannot be created, read or written.
    #[error("{}: cannot {what}: {source}: {advice}", path.display())]
    File {
        /// Path of the file or directory.
        path: PathBuf,
        /// Operation that failed.
        what: &'static str,
        /// Error of the operating system.
        source: std::io::Error,
        /// Remedy.
        advice: &'static str,
    },
    /// The volume became full during the load.
    #[error("{}: the volume is full: give the load a smaller retention or a larger volume", path.display())]
    Full {
        /// Path of the file that was being written.
        path: PathBuf,
    },
    /// The directory holds files or segments of another owner.
    #[error("{}: it is not empty and not ours ({found} is in it): give the load a directory of its own", path.display())]
    Foreign {
        /// Path of the directory.
        path: PathBuf,
        /// Foreign entry, or description of the foreign content.
        found: String,
    },
    /// A system call or system resource failed, other than for a certain file.
    #[error("{what}: {source}")]
    System {
        /// System call or resource that failed.
        what: &'static str,
        /// Error of the operating system.
        source: std::io::Error,
    },
    /// Read-back found records lost, duplicated, reordered or corrupted; the text has their numbers.
    #[error("what was read back is not what was written: {0}")]
    Verification(String),
    /// Error of `cliffwatch_measure`.
    #[error(transparent)]
    Measure(#[from] cliffwatch_measure::error::Error),
}

impl Error {
    /// Creates an [`Error::Setting`].
    pub fn setting(field: &'static str, advice: impl Into<String>) -> Self {
        Self::Setting { field, advice: advice.into() }
    }

    /// Returns true when only another configuration or directory can help.
    pub fn is_bad_input(&self) -> bool {
        use cliffwatch_measure::error::Error::Setting;
        matches!(
            self,
            Self::Setting { .. } | Self::Configuration(_) | Self::Foreign { .. } | Self::Measure(Setting { .. })
        )
    }

    /// Returns true when a replacement engine would fail in the same way.
    pub fn is_final(&self) -> bool {
        self.is_bad_input() || matches!(self, Self::Full { .. } | Self::Verification(_))
    }

    /// Returns a function that turns an I/O error about `path` into [`Error::Full`] (ENOSPC, EDQUOT) or
    /// [`Error::File`].
    pub fn file<E: Into<std::io::Error>>(path: impl Into<PathBuf>, what: &'static str) -> impl FnOnce(E) -> Self {
        let path = path.into();
        move |source| {
            let source = source.into();
            match source.raw_os_error() {
                Some(libc::ENOSPC | libc::EDQUOT) => Self::Full { path },
                Some(libc::EMFILE | libc::ENFILE) => {
                    Self::File { path, what, source, advice: "raise the limit of open files (ulimit -n)" }
                }
                Some(libc::EIO) => Self::File {
                    path,
                    what,
                    source,
                    advice: "the drive or its driver failed; the kernel's log says more",
                },
                Some(libc::EROFS) => Self::File {
                    path,
                    what,
                    source,
                    advice: "after an error of its drive a file system becomes read-only; the kernel's log says why",
                },
                _ => Self::File {
                    path,
                    what,
                    source,
                    advice: "check that it exists and that its permissions allow this",
                },
            }
        }
    }

    /// Returns a function that turns an I/O error into an [`Error::System`].
    pub fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}
