//! TLS and SASL (PLAIN, SCRAM) of connections to brokers.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use sha2::{Digest, Sha256, Sha512};

use crate::config::{self, Mechanism};
use crate::error::{Error, Result};

/// Connection to a broker: plain TCP or TLS.
pub(crate) enum Transport {
    /// Plain TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
    /// Client end of a simulated connection.
    #[cfg(test)]
    Simulated(crate::simulation::pipe::ClientEnd),
}

impl Transport {
    /// The TCP socket, for polling; None for a simulated connection.
    #[must_use]
    #[cfg_attr(not(test), expect(clippy::unnecessary_wraps, reason = "a simulated one has none"))]
    pub(crate) fn socket(&self) -> Option<&TcpStream> {
        match self {
            Self::Plain(socket) => Some(socket),
            Self::Tls(stream) => Some(&stream.sock),
            #[cfg(test)]
            Self::Simulated(_) => None,
        }
    }

    /// True when TLS holds encrypted bytes that are not written to the socket yet.
    #[must_use]
    pub(crate) fn wants_write(&self) -> bool {
        match self {
            Self::Plain(_) => false,
            Self::Tls(stream) => stream.conn.wants_write(),
            #[cfg(test)]
            Self::Simulated(_) => false,
        }
    }
}

impl Read for Transport {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.read(buffer),
            Self::Tls(stream) => stream.read(buffer),
            #[cfg(test)]
            Self::Simulated(end) => end.read(buffer),
        }
    }
}

impl Write for Transport {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write(bytes),
            Self::Tls(stream) => stream.write(bytes),
            #[cfg(test)]
            Self::Simulated(end) => end.write(bytes),
        }
    }

    fn write_vectored(&mut self, slices: &[std::io::IoSlice<'_>]) -> std::io::Result<usize> {
        match self {
            Self::Plain(socket) => socket.write_vectored(slices),
            Self::Tls(stream) => stream.write_vectored(slices),
            #[cfg(test)]
            Self::Simulated(end) => end.write_vectored(slices),
        }
    }

    fn flush(&mut self) -> std::io::Result<()> {
        match self {
            Self::Plain(socket) => socket.flush(),
            Self::Tls(stream) => stream.flush(),
            #[cfg(test)]
            Self::Simulated(end) => end.flush(),
        }
    }
}

/// TLS configuration and SASL credentials, loaded from the files that the settings name.
#[derive(Clone, Default)]
pub(crate) struct Security {
    tls: Option<(Arc<rustls::ClientConfig>, Option<String>)>,
    /// SASL credentials; None without authentication.
    pub(crate) sasl: Option<Credentials>,
}

/// SASL mechanism, user name and password.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// SASL mechanism.
    pub(crate) mechanism: Mechanism,
    username: String,
    password: String,
}

impl Security {
    /// Loads certificates, private key and password from the files that the settings name.
    ///
    /// # Errors
    /// `Error::Config` when a file cannot be read or is invalid.
    pub(crate) fn load(settings: &config::SecuritySettings) -> Result<Self> {
        let tls = settings.tls.as_ref().map(tls_settings).transpose()?;
        let sasl = settings.sasl.as_ref().map(Credentials::load).transpose()?;
        Ok(Self { tls, sasl })
    }

    /// Performs the TLS handshake with `host` on a new connection, blocking; without TLS settings, plain TCP.
    ///
    /// # Errors
    /// I/O and TLS errors, such as an untrusted certificate.
    pub(crate) fn protect(&self, socket: TcpStream, host: &str) -> std::io::Result<Transport> {
        let Some((settings, name)) = &self.tls else { return Ok(Transport::Plain(socket)) };
        let name = ServerName::try_from(name.as_deref().unwrap_or(host).to_owned()).map_err(std::io::Error::other)?;
        let connection = rustls::ClientConnection::new(Arc::clone(settings), name).map_err(std::io::Error::other)?;
        let mut stream = rustls::StreamOwned::new(connection, socket);
        while stream.conn.is_handshaking() {
            stream.conn.complete_io(&mut stream.sock)?;
        }
        Ok(Transport::Tls(Box::new(stream)))
    }
}

fn tls_settings(tls: &config::Tls) -> Result<(Arc<rustls::ClientConfig>, Option<String>)> {
    let wrong = |field: &str, path: &std::path::Path, reason: String| {
        Error::Config(format!("security.tls.{field}: {}: {reason}", path.display()))
    };
    let certificates = |field: &'static str, path: &std::path::Path| {
        CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect::<std::result::Result<Vec<_>, _>>)
            .map_err(|error| wrong(field, path, error.to_string()))
    };
    let mut roots = rustls::RootCertStore::empty();
    for certificate in certificates("ca_file", &tls.ca_file)? {
        roots.add(certificate).map_err(|error| wrong("ca_file", &tls.ca_file, error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(wrong("ca_file", &tls.ca_file, "there is no certificate in it".to_owned()));
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Config(format!("security.tls: {error}")))?
        .with_root_certificates(roots);
    let settings = match (&tls.certificate_file, &tls.key_file) {
        (None, None) => builder.with_no_client_auth(),
        (Some(certificate), Some(key_file)) => {
            let key = PrivateKeyDer::from_pem_file(key_file)
                .map_err(|error| wrong("key_file", key_file, error.to_string()))?;
            builder
                .with_client_auth_cert(certificates("certificate_file", certificate)?, key)
                .map_err(|error| wrong("certificate_file", certificate, error.to_string()))?
        }
        _ => return Err(Error::Config("security.tls: give both certificate_file and key_file, or none".to_owned())),
    };
    Ok((Arc::new(settings), tls.server_name.clone()))
}

impl Credentials {
    fn load(sasl: &config::Sasl) -> Result<Self> {
        let password = std::fs::read_to_string(&sasl.password_file).map_err(|error| {
            Error::Config(format!("security.sasl.password_file: {}: {error}", sasl.password_file.display()))
        })?;
        let password = password.trim_end_matches(['\r', '\n']).to_owned();
        Ok(Self::new(sasl.mechanism, sasl.username.clone(), password))
    }

    /// Credentials with a password that is known already.
    #[must_use]
    pub(crate) fn new(mechanism: Mechanism, username: String, password: String) -> Self {
        Self { mechanism, username, password }
    }

    /// The client's first SASL message, and the exchange that follows it.
    #[must_use]
    pub(crate) fn exchange(&self, nonce: &str) -> (Vec<u8>, Exchange<'_>) {
        match self.mechanism {
            Mechanism::Plain => (format!("\0{}\0{}", self.username, self.password).into_bytes(), Exchange::Plain),
            Mechanism::ScramSha256 | Mechanism::ScramSha512 => {
                let name = self.username.replace('=', "=3D").replace(',', "=2C");
                let bare = format!("n={name},r={nonce}");
                (format!("n,,{bare}").into_bytes(), Exchange::Scram { credentials: self, bare })
            }
        }
    }
}

/// SASL exchange after the client's first message.
pub(crate) enum Exchange<'a> {
    /// PLAIN: complete with the first message.
    Plain,
    /// SCRAM (RFC 5802): the client answers the server's challenge, and the server's signature is verified.
    Scram {
        /// The user's credentials.
        credentials: &'a Credentials,
        /// The client's first message without its GS2 header (`client-first-message-bare`).
        bare: String,
    },
}

/// SCRAM client's final message, and the server's final message expected in return.
pub(crate) struct Proof {
    /// The client's final message.
    pub(crate) message: Vec<u8>,
    /// The final message of a server that knows the password.
    pub(crate) expected: String,
}

impl Exchange<'_> {
    /// Computes the answer to the server's challenge; None for PLAIN.
    ///
    /// # Errors
    /// `Error::Protocol` for a malformed challenge, a foreign nonce or an iteration count above `ROUNDS_MAX`.
    pub(crate) fn answer(&self, challenge: &[u8]) -> Result<Option<Proof>> {
        let Self::Scram { credentials, bare } = self else { return Ok(None) };
        let proof = match credentials.mechanism {
            Mechanism::ScramSha512 => scram::<Hmac<Sha512>, Sha512>(&credentials.password, bare, challenge),
            _ => scram::<Hmac<Sha256>, Sha256>(&credentials.password, bare, challenge),
        };
        proof.map(Some).ok_or(Error::Protocol("SCRAM challenge"))
    }
}

/// Highest SCRAM iteration count accepted: one of ten digits would take hours.
const ROUNDS_MAX: u32 = 1_000_000;

fn scram<M, D>(password: &str, bare: &str, challenge: &[u8]) -> Option<Proof>
where
    M: Mac + hmac::digest::KeyInit + hmac::digest::FixedOutput + hmac::digest::Update + Clone + Sync,
    D: Digest,
{
    let challenge = std::str::from_utf8(challenge).ok()?;
    let field = |name: &str| challenge.split(',').find_map(|part| part.strip_prefix(name));
    let (nonce, salt, rounds) = (field("r=")?, STANDARD.decode(field("s=")?).ok()?, field("i=")?.parse().ok()?);
    if !(1..=ROUNDS_MAX).contains(&rounds) {
        return None;
    }
    // The server's nonce must begin with the client's; otherwise an old exchange may be replayed.
    if !nonce.starts_with(bare.split_once(",r=")?.1) {
        return None;
    }
    let sign = |key: &[u8], text: &[u8]| {
        <M as Mac>::new_from_slice(key).ok().map(|mac| mac.chain_update(text).finalize().into_bytes().to_vec())
    };
    let mut salted = vec![0; <D as Digest>::output_size()];
    pbkdf2::pbkdf2::<M>(password.as_bytes(), &salt, rounds, &mut salted).ok()?;
    let client_key = sign(&salted, b"Client Key")?;
    let last = format!("c=biws,r={nonce}");
    let text = format!("{bare},{challenge},{last}");
    let signature = sign(&D::digest(&client_key), text.as_bytes())?;
    let proof: Vec<u8> = client_key.iter().zip(&signature).map(|(key, sign)| key ^ sign).collect();
    let server = sign(&sign(&salted, b"Server Key")?, text.as_bytes())?;
    let message = format!("{last},p={}", STANDARD.encode(proof)).into_bytes();
    Some(Proof { message, expected: format!("v={}", STANDARD.encode(server)) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_exchange_is_the_one_that_rfc_7677_prints() {
        let credentials =
            Credentials { mechanism: Mechanism::ScramSha256, username: "user".into(), password: "pencil".into() };
        let (first, exchange) = credentials.exchange("rOprNGfwEbeRWgbNEkqO");
        assert_eq!(first, b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO");
        let nonce = "rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
        let challenge = format!("r={nonce},s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096");
        let proof = exchange.answer(challenge.as_bytes()).unwrap().unwrap();
        let expected = format!("c=biws,r={nonce},p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=");
        assert_eq!(String::from_utf8(proof.message).unwrap(), expected);
        assert_eq!(proof.expected, "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4=");
    }

    #[test]
    fn a_challenge_that_is_none_is_refused() {
        let credentials = Credentials { mechanism: Mechanism::ScramSha512, username: "u".into(), password: "p".into() };
        let (_, exchange) = credentials.exchange("abc");
        for wrong in [
            b"".as_slice(),
            b"\xff",
            b"r=xyz,s=AAAA,i=4096",
            b"r=abcd,s=!!,i=1",
            b"r=abcd,s=AAAA,i=x",
            b"r=abcd,s=AAAA,i=0",
            b"r=abcd,s=AAAA,i=4294967295",
        ] {
            assert!(exchange.answer(wrong).is_err());
        }
    }
}
