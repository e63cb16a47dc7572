//! Fetch session of one connection and its single in-flight request.

use std::io::{ErrorKind, Result, Write};

use crate::hot::broker::Exchange;
use crate::security::Transport;
use crate::wire::fetch::FetchSession;

/// Fetch session and in-flight request of one connection; at most one request is in flight.
pub(crate) struct Requests {
    /// Session id and epoch of the next request; both 0 to begin a session.
    pub(super) session: FetchSession,
    /// The next request must begin a new session, because the partitions read from this broker have changed or an error
    /// occurred.
    pub(super) must_begin: bool,
    /// Correlation id of the in-flight request, and when it was sent, in nanoseconds since the epoch.
    pub(super) under_way: Option<(i32, u64)>,
    /// Encoded request.
    pub(super) request: Vec<u8>,
    /// Bytes of it written so far.
    pub(super) written_bytes: usize,
}

impl Default for Requests {
    fn default() -> Self {
        Self {
            session: FetchSession::default(),
            must_begin: true,
            under_way: None,
            request: Vec::new(),
            written_bytes: 0,
        }
    }
}

impl Exchange for Requests {
    fn write(&mut self, stream: &mut Transport) -> Result<bool> {
        while self.written_bytes < self.request.len() {
            match stream.write(&self.request[self.written_bytes..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.written_bytes += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(true)
    }

    fn unanswered(&self) -> usize {
        usize::from(self.under_way.is_some())
    }

    fn oldest_sent_at(&self) -> Option<u64> {
        self.under_way.map(|(_, at)| at)
    }

    fn connected(&mut self, _produce_version: i16) {}

    /// Drops the fetch session and the in-flight request; the next connection begins a new session.
    fn disconnected(&mut self) {
        (self.session, self.must_begin, self.under_way) = (FetchSession::default(), true, None);
    }
}
