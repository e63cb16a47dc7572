//! TLS and SASL: how a connection is protected before the first request.

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

/// A connection, encrypted or not.
pub(crate) enum Transport {
    /// Plain TCP.
    Plain(TcpStream),
    /// TLS over TCP.
    Tls(Box<rustls::StreamOwned<rustls::ClientConnection, TcpStream>>),
    /// One end of a simulated connection.
    #[cfg(test)]
    Simulated(crate::simulation::pipe::ClientEnd),
}

impl Transport {
    /// The connection below, for the system to watch; None for one that it does not know.
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

    /// True when bytes that were taken over wait for room on the connection.
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

/// What was read from the files that the settings name.
#[derive(Clone, Default)]
pub(crate) struct Security {
    tls: Option<(Arc<rustls::ClientConfig>, Option<String>)>,
    /// Who the client is, when it has to say so.
    pub(crate) sasl: Option<Credentials>,
}

/// A user and the password.
#[derive(Clone)]
pub(crate) struct Credentials {
    /// How the password is proven.
    pub(crate) mechanism: Mechanism,
    username: String,
    password: String,
}

impl Security {
    /// Reads the files.
    ///
    /// # Errors
    /// `Error::Config` when one of them cannot be read or is not what it should be.
    pub(crate) fn load(settings: &config::SecuritySettings) -> Result<Self> {
        let tls = settings.tls.as_ref().map(tls_settings).transpose()?;
        let sasl = settings.sasl.as_ref().map(Credentials::load).transpose()?;
        Ok(Self { tls, sasl })
    }

    /// Makes a fresh connection to `host` a protected one.
    ///
    /// # Errors
    /// What the system or the TLS library said.
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

    /// Of a user whose password is known.
    #[must_use]
    pub(crate) fn new(mechanism: Mechanism, username: String, password: String) -> Self {
        Self { mechanism, username, password }
    }

    /// The exchange's first message and what comes after it.
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

/// What comes after the first message.
pub(crate) enum Exchange<'a> {
    /// Nothing.
    Plain,
    /// RFC 5802: the server's challenge is answered, and the server has to prove itself.
    Scram {
        /// Whose password it is.
        credentials: &'a Credentials,
        /// The first message without its prefix.
        bare: String,
    },
}

/// The answer to a server's challenge, and what the server has to say to it.
pub(crate) struct Proof {
    /// The client's last message.
    pub(crate) message: Vec<u8>,
    /// The server's last message, if it knows the password too.
    pub(crate) expected: String,
}

impl Exchange<'_> {
    /// Answers the server's first message; None where there is nothing to answer.
    ///
    /// # Errors
    /// `Error::Protocol` when it is no challenge.
    pub(crate) fn answer(&self, challenge: &[u8]) -> Result<Option<Proof>> {
        let Self::Scram { credentials, bare } = self else { return Ok(None) };
        let proof = match credentials.mechanism {
            Mechanism::ScramSha512 => scram::<Hmac<Sha512>, Sha512>(&credentials.password, bare, challenge),
            _ => scram::<Hmac<Sha256>, Sha256>(&credentials.password, bare, challenge),
        };
        proof.map(Some).ok_or(Error::Protocol("SCRAM challenge"))
    }
}

/// More rounds than any server asks for; a number of ten digits would take hours.
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
    // The server's nonce begins with ours, or an old exchange is replayed.
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
