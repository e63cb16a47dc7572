//! How connections are protected.

use std::path::PathBuf;

use serde::Deserialize;

/// How connections are protected.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecuritySettings {
    /// TLS, when present.
    #[serde(default)]
    pub(crate) tls: Option<Tls>,
    /// SASL, when present.
    #[serde(default)]
    pub(crate) sasl: Option<Sasl>,
}

/// TLS: PEM files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// Certificates that the broker's is checked against.
    pub(crate) ca_file: PathBuf,
    /// The client's own certificate, for brokers that ask for one; with `key_file`.
    #[serde(default)]
    pub(crate) certificate_file: Option<PathBuf>,
    /// The key of `certificate_file`.
    #[serde(default)]
    pub(crate) key_file: Option<PathBuf>,
    /// The name that the broker's certificate must be for, where that is not the host that is connected to.
    #[serde(default)]
    pub(crate) server_name: Option<String>,
}

/// SASL: who the client is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sasl {
    /// How the password is proven.
    pub(crate) mechanism: Mechanism,
    /// The user.
    pub(crate) username: String,
    /// A file that holds the password; a line end after it is ignored.
    pub(crate) password_file: PathBuf,
}

/// How a password is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Mechanism {
    /// The password itself is sent.
    #[serde(rename = "PLAIN")]
    Plain,
    /// RFC 5802 with SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// RFC 5802 with SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

impl Mechanism {
    /// The name on the wire.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}
