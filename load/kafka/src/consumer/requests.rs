//! The fetch session on one connection, and the one request that is under way in it.

use std::io::{ErrorKind, Result, Write};

use crate::hot::broker::Exchange;
use crate::security::Transport;
use crate::wire::fetch::FetchSession;

/// The fetch requests on one connection: one at a time.
pub(crate) struct Requests {
    /// The next request's number in the broker's fetch session.
    pub(super) session: FetchSession,
    /// The session has to begin anew: what is read from this broker has changed.
    pub(super) must_begin: bool,
    /// The correlation of the request under way, and when it was sent, in nanoseconds since the epoch.
    pub(super) under_way: Option<(i32, u64)>,
    /// The request as it is written.
    pub(super) request: Vec<u8>,
    /// How much of it was written.
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

    /// The session goes with the connection, and so does what was under way: it is asked for again.
    fn disconnected(&mut self) {
        (self.session, self.must_begin, self.under_way) = (FetchSession::default(), true, None);
    }
}
