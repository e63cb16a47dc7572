//! Synchronous connection to a broker: one request at a time, for everything outside the hot path.

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

/// Longest response accepted, in bytes: a peer that announces more does not speak the Kafka protocol.
const ANSWER_MAX: usize = 64 * 1024 * 1024;
const ATTEMPTS_APART: Duration = Duration::from_millis(100);

/// Opens sessions with brokers: client id, security and timeout.
#[derive(Clone)]
pub(crate) struct Dialer {
    /// Kafka client id.
    pub(crate) client_id: String,
    /// TLS and SASL.
    pub(crate) security: Security,
    /// Timeout of each connection attempt, read and write.
    pub(crate) timeout: Duration,
}

/// Address of a broker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    /// Host name or IP address.
    pub(crate) host: String,
    /// TCP port.
    pub(crate) port: u16,
}

impl Address {
    /// Parses `host:port`, with an IPv6 address in brackets or not; None for anything else.
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

/// Open connection whose API versions are known, authenticated if SASL is configured.
pub(crate) struct Session {
    stream: Transport,
    address: Address,
    client_id: String,
    correlation: i32,
    versions: HashMap<i16, (i16, i16)>,
}

impl Dialer {
    /// Connects, performs the TLS handshake, requests `ApiVersions` and authenticates with SASL. Blocks.
    ///
    /// # Errors
    /// `Error::Connection` for DNS, TCP, TLS and I/O errors; `Error::Broker` or `Error::Protocol` for a refusal or a
    /// malformed response.
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

    /// Opens a session with the first of `addresses` that answers; blocks.
    ///
    /// # Errors
    /// `Error::Unreachable` when none answers; `Error::Broker` (such as wrong credentials) at once: all would refuse.
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
    /// Address of the broker.
    #[must_use]
    pub(crate) fn address(&self) -> &Address {
        &self.address
    }

    /// Highest version of `api` within `versions` (lowest, highest) that the broker supports; None if there is none.
    #[must_use]
    pub(crate) fn version(&self, api: i16, versions: (i16, i16)) -> Option<i16> {
        let &(lowest, highest) = self.versions.get(&api)?;
        let version = highest.min(versions.1);
        (version >= lowest && version >= versions.0).then_some(version)
    }

    /// Unwraps the connection, for use outside the session.
    #[must_use]
    pub(crate) fn into_stream(self) -> Transport {
        self.stream
    }

    /// Sends a request and blocks until its response. The version is the highest that both sides support, at most
    /// `version_max`.
    ///
    /// # Errors
    /// `Error::Connection` for I/O errors; `Error::Protocol` for a malformed response; `Error::Broker`
    /// (`UNSUPPORTED_VERSION`) without a common version.
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

    /// Requests the supported API versions, by version 0 of the request, which every broker knows.
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
        // Only a server that knows the password can send the expected signature.
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

    /// Checks that the broker supports the versions of Produce and Fetch that the hot path uses.
    ///
    /// # Errors
    /// `Error::Broker` (`UNSUPPORTED_VERSION`).
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

/// Decodes a response, after checking its correlation id and the lengths of its arrays.
///
/// # Errors
/// `Error::Protocol` when it is malformed or has another correlation id.
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

/// Turns a Kafka error code other than 0 into an error, with the broker's own `message` if any.
///
/// # Errors
/// `Error::Broker` for every code but 0.
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

/// Retries `attempt` every 100 ms while it fails with a transient `Error::Broker`, for at most `patience`. Blocks.
///
/// # Errors
/// The error of the last attempt; at once when it is not transient.
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

/// Nonce for a SCRAM exchange: the time and 144 random bits.
fn nonce() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    let mut bytes = [0; 18];
    if let Ok(mut file) = std::fs::File::open("/dev/urandom") {
        // Without random bytes, the time alone makes the nonce unique.
        let _ = file.read_exact(&mut bytes);
    }
    format!("{now:x}{}", bytes.map(|byte| format!("{byte:02x}")).concat())
}
