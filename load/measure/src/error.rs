//! Errors of the measurement crate.

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Error of a measurement. The text names the field and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid setting.
    #[error("{field}: {advice}")]
    Setting {
        /// Field of the configuration.
        field: &'static str,
        /// Fault and remedy.
        advice: String,
    },
    /// Output that cannot be written, for instance because the reader of the windows is gone.
    #[error("the windows cannot be written: {0}")]
    Output(#[from] std::io::Error),
    /// Histogram that cannot be created or encoded.
    #[error("the histogram of {name} cannot be encoded: {reason}")]
    Histogram {
        /// Name of the latency.
        name: &'static str,
        /// Message of the histogram library.
        reason: String,
    },
}
