//! Security settings of broker connections: TLS and SASL.

use std::path::PathBuf;

use serde::Deserialize;

/// Security settings of broker connections; without them, plain TCP without authentication.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecuritySettings {
    /// TLS settings; None for plain TCP.
    #[serde(default)]
    pub(crate) tls: Option<Tls>,
    /// SASL settings; None for no authentication.
    #[serde(default)]
    pub(crate) sasl: Option<Sasl>,
}

/// TLS settings: paths of PEM files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Tls {
    /// CA certificates by which the broker's certificate is verified.
    pub(crate) ca_file: PathBuf,
    /// Client certificate chain, for mutual TLS; requires `key_file`.
    #[serde(default)]
    pub(crate) certificate_file: Option<PathBuf>,
    /// Private key of `certificate_file`.
    #[serde(default)]
    pub(crate) key_file: Option<PathBuf>,
    /// Name expected in the broker's certificate, if it is not the host of the connection.
    #[serde(default)]
    pub(crate) server_name: Option<String>,
}

/// SASL settings: mechanism, user name and password file.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Sasl {
    /// SASL mechanism.
    pub(crate) mechanism: Mechanism,
    /// User name.
    pub(crate) username: String,
    /// File that contains the password; trailing line ends are ignored.
    pub(crate) password_file: PathBuf,
}

/// SASL mechanism: PLAIN or SCRAM.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Mechanism {
    /// PLAIN: sends the password itself.
    #[serde(rename = "PLAIN")]
    Plain,
    /// SCRAM (RFC 5802) with SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// SCRAM (RFC 5802) with SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

impl Mechanism {
    /// Name of the mechanism in the SASL handshake.
    #[must_use]
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}
