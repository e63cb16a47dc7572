//! A broker as a hot thread sees it: the connection to it, and what is sent and answered on it.

use std::io::{ErrorKind, Result, Write};

use super::link::Link;
use crate::security::Transport;
use crate::session::Address;

/// Whether there is a connection.
pub(crate) enum Connection {
    /// None; another attempt may be made at this moment, in nanoseconds since the epoch.
    Down(u64),
    /// One is being made.
    Connecting,
    /// There is one.
    Up(Link),
}

/// Requests on one connection, and how they are answered: this is where producing and consuming differ.
pub(crate) trait Exchange: Default {
    /// Writes what there is room for; true when every request is written to its end.
    ///
    /// # Errors
    /// What the system said.
    fn write(&mut self, stream: &mut Transport) -> Result<bool>;

    /// Requests without an answer.
    fn unanswered(&self) -> usize;

    /// When the oldest of them was sent, in nanoseconds since the epoch.
    fn oldest_sent_at(&self) -> Option<u64>;

    /// A connection was made, to a broker that speaks this version of produce requests.
    fn connected(&mut self, produce_version: i16);

    /// The connection is gone. What is unanswered stays for the thread to take back.
    fn disconnected(&mut self);
}

/// A broker.
pub(crate) struct Broker<E> {
    /// Its id.
    pub(crate) id: i32,
    /// Where it listens.
    pub(crate) address: Address,
    /// The connection to it.
    pub(crate) connection: Connection,
    /// How often connecting failed since it last worked.
    pub(crate) failures: u32,
    /// True while writing waits for room on the connection.
    pub(crate) waits_for_room: bool,
    /// It asked to be left alone until then, in nanoseconds since the epoch.
    pub(crate) muted_until: u64,
    /// What is sent and answered.
    pub(crate) exchange: E,
}

impl<E: Exchange> Broker<E> {
    /// No connection is made yet.
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

    /// True when there is a connection.
    pub(crate) fn is_up(&self) -> bool {
        matches!(self.connection, Connection::Up(_))
    }

    /// True when there is a connection on which the broker accepts requests.
    pub(crate) fn is_open(&self, now: u64) -> bool {
        self.is_up() && self.muted_until <= now
    }

    /// Writes what there is room for; true when it is all written.
    ///
    /// # Errors
    /// What the system said.
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

    /// There is a connection.
    pub(crate) fn up(&mut self, link: Link, produce_version: i16) {
        self.connection = Connection::Up(link);
        self.exchange.connected(produce_version);
        (self.failures, self.waits_for_room, self.muted_until) = (0, false, 0);
    }

    /// The connection is gone, or could not be made; the next attempt follows after `wait(failures)`.
    pub(crate) fn down(&mut self, now: u64, wait: impl FnOnce(u32) -> u64) {
        self.failures += 1;
        self.connection = Connection::Down(now + wait(self.failures));
        self.exchange.disconnected();
        self.waits_for_room = false;
    }
}
