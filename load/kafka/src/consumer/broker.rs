//! A broker as one consumer sees it: the connection to it, the fetch session, and the request that is under way.

use std::io::{ErrorKind, Result, Write};

use crate::hot::link::Link;
use crate::session::Address;
use crate::wire::fetch::Session;

/// Whether there is a connection.
pub enum State {
    /// None; another attempt may be made at this moment.
    Down(u64),
    /// One is being made.
    Connecting,
    /// There is one.
    Up(Link),
}

/// A broker.
pub struct Broker {
    /// Its id.
    pub id: i32,
    /// Where it listens.
    pub address: Address,
    /// The connection to it.
    pub state: State,
    /// How often connecting failed since it last worked.
    pub failures: u32,
    /// The place of the next request in its fetch session.
    pub session: Session,
    /// The session has to begin anew: what is read from this broker has changed.
    pub must_begin: bool,
    /// The correlation of the request under way, and when it was sent.
    pub under_way: Option<(i32, u64)>,
    /// The request as it is written.
    pub request: Vec<u8>,
    /// How much of it was written.
    pub written_bytes: usize,
    /// True while writing waits for room on the connection.
    pub waits_for_room: bool,
    /// It asked to be left alone until then.
    pub muted_until: u64,
}

impl Broker {
    /// No connection is made yet.
    #[must_use]
    pub fn new(id: i32, address: Address) -> Self {
        Self {
            id,
            address,
            state: State::Down(0),
            failures: 0,
            session: Session::default(),
            must_begin: true,
            under_way: None,
            request: Vec::new(),
            written_bytes: 0,
            waits_for_room: false,
            muted_until: 0,
        }
    }

    /// True when a request may be sent.
    #[must_use]
    pub fn is_idle(&self, now: u64) -> bool {
        matches!(self.state, State::Up(_)) && self.under_way.is_none() && self.muted_until <= now
    }

    /// Writes what there is room for; true when it is all written.
    ///
    /// # Errors
    /// What the system said.
    pub fn write(&mut self) -> Result<bool> {
        let State::Up(link) = &mut self.state else { return Ok(true) };
        while self.written_bytes < self.request.len() {
            match link.stream.write(&self.request[self.written_bytes..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(written) => self.written_bytes += written,
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        match link.stream.flush() {
            Ok(()) => Ok(!link.stream.wants_write()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The connection is gone, and with it the session and what was under way.
    pub fn down(&mut self, until: u64) {
        self.state = State::Down(until);
        self.session = Session::default();
        self.must_begin = true;
        self.under_way = None;
        self.waits_for_room = false;
    }
}
