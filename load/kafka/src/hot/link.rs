//! A connection that is read without waiting, answer by answer.

use std::io::{Error, ErrorKind, Read, Result};
use std::ops::Range;

use crate::security::Transport;

const INPUT_BYTES: usize = 64 * 1024;
/// An answer that claims to be longer is not one.
const ANSWER_MAX: usize = 256 * 1024 * 1024;
const LENGTH_BYTES: usize = 4;

/// A connection and what was read from it.
pub(crate) struct Link {
    /// The connection, in non-blocking mode.
    pub(crate) stream: Transport,
    /// Room for whole answers; its length is what there is of it. May be taken out while an answer is looked at.
    pub(crate) input: Vec<u8>,
    from: usize,
    to: usize,
}

impl Link {
    /// Takes over a connection on which nothing is under way.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn new(stream: Transport) -> Result<Self> {
        if let Some(socket) = stream.socket() {
            socket.set_nonblocking(true)?;
        }
        Ok(Self { stream, input: vec![0; INPUT_BYTES], from: 0, to: 0 })
    }

    /// Reads what has come. True when there may be more.
    ///
    /// # Errors
    /// What the system said; `UnexpectedEof` when the other side has closed the connection.
    pub(crate) fn receive(&mut self) -> Result<bool> {
        self.make_room()?;
        let room = self.input.len() - self.to;
        match self.stream.read(&mut self.input[self.to..]) {
            Ok(0) => Err(Error::new(ErrorKind::UnexpectedEof, "the broker closed the connection")),
            Ok(count) => {
                self.to += count;
                // TLS may hold more than it gave, without the connection becoming readable again.
                Ok(count == room || matches!(self.stream, Transport::Tls(_)))
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn announced(&self) -> Result<Option<usize>> {
        let Some(length) = self.input[self.from..self.to].first_chunk::<LENGTH_BYTES>() else { return Ok(None) };
        match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) if length <= ANSWER_MAX => Ok(Some(LENGTH_BYTES + length)),
            _ => Err(Error::new(ErrorKind::InvalidData, "an answer of an impossible length")),
        }
    }

    fn make_room(&mut self) -> Result<()> {
        if self.from == self.to {
            (self.from, self.to) = (0, 0);
        }
        let needed = self.announced()?.unwrap_or(LENGTH_BYTES);
        if self.from + needed > self.input.len() || self.to == self.input.len() {
            self.input.copy_within(self.from..self.to, 0);
            (self.from, self.to) = (0, self.to - self.from);
        }
        if needed > self.input.len() {
            // A little more than what is needed, so that answers of like length find room.
            let wanted = needed + needed / 4;
            self.input.reserve_exact(wanted - self.input.len());
            self.input.resize(wanted, 0);
        }
        Ok(())
    }

    /// Where the next whole answer lies in `input`, its length not included.
    ///
    /// # Errors
    /// `InvalidData` when what was read cannot be an answer.
    pub(crate) fn answer(&mut self) -> Result<Option<Range<usize>>> {
        let Some(length) = self.announced()? else { return Ok(None) };
        if self.to - self.from < length {
            return Ok(None);
        }
        let answer = self.from + LENGTH_BYTES..self.from + length;
        self.from += length;
        Ok(Some(answer))
    }
}
