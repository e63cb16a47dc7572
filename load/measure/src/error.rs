//! What can go wrong while measuring.

/// The result of anything here that can fail.
pub type Result<T> = std::result::Result<T, Error>;

/// What went wrong. The text names the field and the remedy.
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
    /// The reader of the windows has gone.
    #[error("the windows cannot be written: {0}")]
    Output(#[from] std::io::Error),
    /// A histogram could not be written down.
    #[error("the histogram of {name} cannot be encoded: {reason}")]
    Histogram {
        /// The latency's name.
        name: &'static str,
        /// What the encoder said.
        reason: String,
    },
}
