//! Everything that can go wrong, each with what it was about and what to do.

use std::path::PathBuf;

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. The text is one sentence that names the field or file and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting that cannot work.
    #[error("{field}: {advice}")]
    Setting {
        /// The field of the configuration.
        field: &'static str,
        /// What is wrong and what to do.
        advice: String,
    },
    /// The configuration is not JSON, or has an unknown key or a value of the wrong kind.
    #[error("the configuration cannot be understood: {0}")]
    Configuration(#[from] serde_json::Error),
    /// A file or directory that cannot be made, read or written.
    #[error("{}: cannot {what}: {source}: {advice}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
        /// What to do.
        advice: &'static str,
    },
    /// The volume filled up under way.
    #[error("{}: the volume is full: give the load a smaller retention or a larger volume", path.display())]
    Full {
        /// What was written.
        path: PathBuf,
    },
    /// The directory holds what is not this engine's.
    #[error("{}: it is not empty and not ours ({found} is in it): give the load a directory of its own", path.display())]
    Foreign {
        /// The directory.
        path: PathBuf,
        /// What is in it.
        found: String,
    },
    /// The kernel's interface for I/O failed.
    #[error("{what}: {source}")]
    System {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: std::io::Error,
    },
    /// What was read back is not what was written.
    #[error("what was read back is not what was written: {0}")]
    Verification(String),
    /// Measuring failed.
    #[error(transparent)]
    Measure(#[from] cliffwatch_measure::error::Error),
}

impl Error {
    /// An [`Error::Setting`].
    pub fn setting(field: &'static str, advice: impl Into<String>) -> Self {
        Self::Setting { field, advice: advice.into() }
    }

    /// True when nothing but another configuration or directory can help.
    pub fn is_bad_input(&self) -> bool {
        use cliffwatch_measure::error::Error::Setting;
        matches!(
            self,
            Self::Setting { .. } | Self::Configuration(_) | Self::Foreign { .. } | Self::Measure(Setting { .. })
        )
    }

    /// True when another engine in this one's place would fail likewise.
    pub fn is_final(&self) -> bool {
        self.is_bad_input() || matches!(self, Self::Full { .. } | Self::Verification(_))
    }

    /// Turns an I/O error into one about `path`: the volume is full, or the file cannot be dealt with.
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

    /// Turns the kernel's answer into an [`Error::System`].
    pub fn system<E: Into<std::io::Error>>(what: &'static str) -> impl FnOnce(E) -> Self {
        move |source| Self::System { what, source: source.into() }
    }
}
