//! Broker as a hot thread sees it: connection state and in-flight requests.

use std::io::{ErrorKind, Result, Write};

use super::link::Link;
use crate::security::Transport;
use crate::session::Address;

/// Connection state of a broker.
pub(crate) enum Connection {
    /// Disconnected; the next attempt may start at this time, in nanoseconds since the epoch.
    Down(u64),
    /// Connection attempt in progress.
    Connecting,
    /// Connected.
    Up(Link),
}

/// Requests and responses on one connection; implemented separately for producing and consuming.
pub(crate) trait Exchange: Default {
    /// Writes pending requests without blocking; true when all are written completely.
    ///
    /// # Errors
    /// I/O error of the connection.
    fn write(&mut self, stream: &mut Transport) -> Result<bool>;

    /// Number of in-flight requests.
    fn unanswered(&self) -> usize;

    /// When the oldest in-flight request was sent, in nanoseconds since the epoch; None when there is none.
    fn oldest_sent_at(&self) -> Option<u64>;

    /// Called when a connection is up; `produce_version` is the produce request version to use.
    fn connected(&mut self, produce_version: i16);

    /// Called when the connection is lost. A producer's in-flight requests stay, for its thread to retry or fail.
    fn disconnected(&mut self);
}

/// A broker with its connection and in-flight requests.
pub(crate) struct Broker<E> {
    /// Broker id.
    pub(crate) id: i32,
    /// Address that it listens on.
    pub(crate) address: Address,
    /// Connection state.
    pub(crate) connection: Connection,
    /// Failures (failed attempts and lost connections) since a connection was last made.
    pub(crate) failures: u32,
    /// True while unwritten bytes wait for room in the socket buffer.
    pub(crate) waits_for_room: bool,
    /// No requests are sent before this time, in nanoseconds since the epoch (throttled, or after an error).
    pub(crate) muted_until: u64,
    /// Requests and responses on the connection.
    pub(crate) exchange: E,
}

impl<E: Exchange> Broker<E> {
    /// Creates a broker without a connection.
    pub(crate) fn new(id: i32, address: Address) -> Self {
        Self {
            id,
            address,
            connection: Connection::Down(0),
            failures: 0,
            waits_for_room: false,
            muted_until: 0,
            exchange: E::default(),
        }
    }

    /// True when connected.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.connection, Connection::Up(_))
    }

    /// True when connected and not throttled at `now` (nanoseconds since the epoch).
    pub(crate) fn is_open(&self, now: u64) -> bool {
        self.is_up() && self.muted_until <= now
    }

    /// Writes and flushes pending requests without blocking; true when all is written, or there is no connection.
    ///
    /// # Errors
    /// I/O error of the connection.
    pub(crate) fn write(&mut self) -> Result<bool> {
        let Connection::Up(link) = &mut self.connection else { return Ok(true) };
        if !self.exchange.write(&mut link.stream)? {
            return Ok(false);
        }
        match link.stream.flush() {
            Ok(()) => Ok(!link.stream.wants_write()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Marks the broker as connected and resets failures and throttling.
    pub(crate) fn up(&mut self, link: Link, produce_version: i16) {
        self.connection = Connection::Up(link);
        self.exchange.connected(produce_version);
        (self.failures, self.waits_for_room, self.muted_until) = (0, false, 0);
    }

    /// Marks the broker as disconnected, after a loss or a failed attempt; the next attempt may follow after
    /// `wait(failures)` nanoseconds.
    pub(crate) fn down(&mut self, now: u64, wait: impl FnOnce(u32) -> u64) {
        self.failures += 1;
        self.connection = Connection::Down(now + wait(self.failures));
        self.exchange.disconnected();
        self.waits_for_room = false;
    }
}
