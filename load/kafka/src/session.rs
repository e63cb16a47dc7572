//! A connection on which one request at a time is asked and answered: what is not hot goes this way.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::{
    ApiKey, ApiVersionsRequest, ApiVersionsResponse, RequestHeader, ResponseHeader, SaslAuthenticateRequest,
    SaslHandshakeRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request, StrBytes};

use crate::error::{Error, Result, describe};
use crate::security::{Credentials, Security, Transport};

/// An answer that is not of the hot path is never longer: what claims to be has not understood the protocol.
const ANSWER_MAX: usize = 64 * 1024 * 1024;
const ATTEMPTS_APART: Duration = Duration::from_millis(100);

/// How connections are made.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// What the broker knows the client by.
    pub(crate) client_id: String,
    /// TLS and SASL.
    pub(crate) security: Security,
    /// How long a connection may take to be made and a request to be answered.
    pub(crate) timeout: Duration,
}

/// Where a broker listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// Name or number.
    pub(crate) host: String,
    /// Port.
    pub(crate) port: u16,
}

impl Address {
    /// Reads `host:port`; None when it is something else.
    #[must_use]
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (host, port) = text.rsplit_once(':')?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        if host.is_empty() {
            return None;
        }
        Some(Self { host: host.to_owned(), port: port.parse().ok()? })
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

/// A connection that has been introduced.
pub(crate) struct Session {
    stream: Transport,
    address: Address,
    client_id: String,
    correlation: i32,
    versions: HashMap<i16, (i16, i16)>,
}

impl Dialer {
    /// Connects, protects the connection, and asks what the broker speaks.
    ///
    /// # Errors
    /// What the system, the TLS library or the broker said.
    pub(crate) fn open(&self, address: &Address) -> Result<Session> {
        let fault = |source: std::io::Error| Error::Connection { doing: format!("connecting to {address}"), source };
        let socket = self.connect(address).map_err(fault)?;
        socket.set_nodelay(true).map_err(fault)?;
        socket.set_read_timeout(Some(self.timeout)).map_err(fault)?;
        socket.set_write_timeout(Some(self.timeout)).map_err(fault)?;
        let stream = self.security.protect(socket, &address.host).map_err(fault)?;
        let mut session = Session {
            stream,
            address: address.clone(),
            client_id: self.client_id.clone(),
            correlation: 0,
            versions: HashMap::new(),
        };
        session.ask_versions()?;
        if let Some(credentials) = &self.security.sasl {
            session.authenticate(credentials)?;
        }
        Ok(session)
    }

    /// Opens the first of `addresses` that answers.
    ///
    /// # Errors
    /// `Error::Unreachable` when none does; a refusal (credentials, TLS) at once, because others would refuse too.
    pub(crate) fn open_any<'a>(&self, addresses: impl IntoIterator<Item = &'a Address>) -> Result<Session> {
        let mut reasons = Vec::new();
        for address in addresses {
            match self.open(address) {
                Ok(session) => return Ok(session),
                Err(error @ Error::Broker { .. }) => return Err(error),
                Err(error) => reasons.push(error.to_string()),
            }
        }
        Err(Error::Unreachable(reasons.join("; ")))
    }

    fn connect(&self, address: &Address) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::other("the name has no address");
        for candidate in (address.host.as_str(), address.port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&candidate, self.timeout) {
                Ok(socket) => return Ok(socket),
                Err(error) => last = error,
            }
        }
        Err(last)
    }
}

impl Session {
    /// Where it leads.
    #[must_use]
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// The highest version of `api` that the broker and `versions` share.
    #[must_use]
    pub(crate) fn version(&self, api: i16, versions: (i16, i16)) -> Option<i16> {
        let &(lowest, highest) = self.versions.get(&api)?;
        let version = highest.min(versions.1);
        (version >= lowest && version >= versions.0).then_some(version)
    }

    /// The connection itself, to be used otherwise.
    #[must_use]
    pub(crate) fn into_stream(self) -> Transport {
        self.stream
    }

    /// Asks and waits for the answer. The version is the highest that the broker speaks, up to `version_max`.
    ///
    /// # Errors
    /// What the system said; `Error::Protocol` for an answer that is none.
    pub(crate) fn call<R: Request>(
        &mut self,
        doing: &'static str,
        request: &R,
        version_max: i16,
    ) -> Result<R::Response> {
        let range = R::VERSIONS;
        let version = self.version(R::KEY, (range.min, range.max.min(version_max))).ok_or_else(|| Error::Broker {
            doing: doing.to_owned(),
            name: "UNSUPPORTED_VERSION",
            advice: "the broker speaks no version of this request that the engine speaks".to_owned(),
        })?;
        self.call_version(doing, request, version)
    }

    fn call_version<R: Request>(&mut self, doing: &'static str, request: &R, version: i16) -> Result<R::Response> {
        self.correlation = self.correlation.wrapping_add(1);
        let mut bytes = BytesMut::new();
        bytes.extend_from_slice(&[0; 4]);
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_correlation_id(self.correlation)
            .with_client_id(Some(StrBytes::from_string(self.client_id.clone())));
        let unsaid = |_| Error::Protocol("request");
        header.encode(&mut bytes, R::header_version(version)).map_err(unsaid)?;
        request.encode(&mut bytes, version).map_err(unsaid)?;
        let length = bytes.len() - 4;
        crate::wire::set_length(&mut bytes, length);
        read_answer::<R>(doing, self.exchange(doing, &bytes)?, version, self.correlation)
    }

    fn exchange(&mut self, doing: &str, bytes: &[u8]) -> Result<Bytes> {
        let address = &self.address;
        let fault = |source: std::io::Error| Error::Connection { doing: format!("{doing} at {address}"), source };
        self.stream.write_all(bytes).map_err(fault)?;
        self.stream.flush().map_err(fault)?;
        let mut length = [0; 4];
        self.stream.read_exact(&mut length).map_err(fault)?;
        let length = usize::try_from(i32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > ANSWER_MAX {
            return Err(fault(std::io::Error::other("what answers does not speak the Kafka protocol")));
        }
        let mut answer = vec![0; length];
        self.stream.read_exact(&mut answer).map_err(fault)?;
        Ok(Bytes::from(answer))
    }

    /// Version 0 of this request is the one that all brokers know.
    fn ask_versions(&mut self) -> Result<()> {
        let answer: ApiVersionsResponse =
            self.call_version("asking for versions", &ApiVersionsRequest::default(), 0)?;
        refuse("asking for versions", answer.error_code, None)?;
        self.versions = answer.api_keys.iter().map(|api| (api.api_key, (api.min_version, api.max_version))).collect();
        Ok(())
    }

    fn authenticate(&mut self, credentials: &Credentials) -> Result<()> {
        let doing = "authenticating";
        let mechanism = credentials.mechanism.name();
        let handshake = SaslHandshakeRequest::default().with_mechanism(StrBytes::from_static_str(mechanism));
        let answer = self.call(doing, &handshake, 1)?;
        let offered: Vec<&str> = answer.mechanisms.iter().map(StrBytes::as_str).collect();
        refuse(doing, answer.error_code, Some(&format!("the broker offers {}", offered.join(", "))))?;
        let (first, exchange) = credentials.exchange(&nonce());
        let challenge = self.say(first)?;
        let Some(proof) = exchange.answer(&challenge)? else { return Ok(()) };
        let last = self.say(proof.message)?;
        let said = std::str::from_utf8(&last).unwrap_or_default();
        // A server that does not know the password cannot say this.
        if said.split(',').next() == Some(proof.expected.as_str()) {
            Ok(())
        } else {
            Err(Error::Protocol("SCRAM proof"))
        }
    }

    fn say(&mut self, message: Vec<u8>) -> Result<Bytes> {
        let request = SaslAuthenticateRequest::default().with_auth_bytes(Bytes::from(message));
        let answer = self.call("authenticating", &request, 1)?;
        refuse("authenticating", answer.error_code, answer.error_message.as_deref())?;
        Ok(answer.auth_bytes)
    }

    /// Whether the broker speaks the hot path's requests.
    ///
    /// # Errors
    /// `Error::Broker` naming what it does not speak.
    pub(crate) fn speaks_hot_path(&self) -> Result<()> {
        let needed = [
            (ApiKey::Produce as i16, crate::wire::produce::VERSIONS),
            (ApiKey::Fetch as i16, (crate::wire::fetch::VERSION, crate::wire::fetch::VERSION)),
        ];
        for (api, versions) in needed {
            if self.version(api, versions).is_none() {
                return Err(Error::Broker {
                    doing: format!("talking to {}", self.address),
                    name: "UNSUPPORTED_VERSION",
                    advice: "a broker of Kafka 2.4 or later, or one that speaks like it, is needed".to_owned(),
                });
            }
        }
        Ok(())
    }
}

/// Takes an answer apart.
///
/// # Errors
/// `Error::Protocol` for an answer that is none, or not to this request.
pub(crate) fn read_answer<R: Request>(
    doing: &'static str,
    mut answer: Bytes,
    version: i16,
    correlation: i32,
) -> Result<R::Response> {
    let malformed = |_| Error::Protocol(doing);
    let header_version = <R::Response as HeaderVersion>::header_version(version);
    let header = ResponseHeader::decode(&mut answer, header_version).map_err(malformed)?;
    if header.correlation_id != correlation {
        return Err(Error::Protocol(doing));
    }
    crate::wire::shapes::check_answer(R::KEY, version, &answer).map_err(|_| Error::Protocol(doing))?;
    R::Response::decode(&mut answer, version).map_err(malformed)
}

/// An error unless `code` is 0, with the broker's own message where it has one.
///
/// # Errors
/// `Error::Broker`.
pub(crate) fn refuse(doing: &str, code: i16, message: Option<&str>) -> Result<()> {
    if code == 0 {
        return Ok(());
    }
    Err(Error::Broker {
        doing: doing.to_owned(),
        name: describe(code).0,
        advice: message.unwrap_or_default().to_owned(),
    })
}

/// Does what a broker may put off (it is starting, or leadership is moving) until it no longer does, for so long at most.
///
/// # Errors
/// The last one.
pub(crate) fn patiently<T>(patience: Duration, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
    let since = Instant::now();
    loop {
        match attempt() {
            Err(error @ Error::Broker { .. }) if error.is_transient() && since.elapsed() < patience => {
                std::thread::sleep(ATTEMPTS_APART);
            }
            other => return other,
        }
    }
}

/// Something that no exchange before had.
fn nonce() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut bytes = [0; 18];
    if let Ok(mut file) = std::fs::File::open("/dev/urandom") {
        // What cannot be read leaves the time, which is never the same twice.
        let _ = file.read_exact(&mut bytes);
    }
    format!("{now:x}{}", bytes.map(|byte| format!("{byte:02x}")).concat())
}
