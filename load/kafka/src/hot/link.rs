//! Non-blocking connection that splits its input into responses.

use std::io::{Error, ErrorKind, Read, Result};
use std::ops::Range;

use crate::security::Transport;

const INPUT_BYTES: usize = 64 * 1024;
/// Maximum response length; a longer one is rejected as invalid.
const ANSWER_MAX: usize = 256 * 1024 * 1024;
const LENGTH_BYTES: usize = 4;

/// A non-blocking connection and its input buffer.
pub(crate) struct Link {
    /// The connection, in non-blocking mode.
    pub(crate) stream: Transport,
    /// Input buffer; grows to hold a whole response. May be taken out while a response is processed.
    pub(crate) input: Vec<u8>,
    from: usize,
    to: usize,
}

impl Link {
    /// Wraps a connection without requests in flight, and makes it non-blocking.
    ///
    /// # Errors
    /// I/O error of setting the socket to non-blocking.
    pub(crate) fn new(stream: Transport) -> Result<Self> {
        if let Some(socket) = stream.socket() {
            socket.set_nonblocking(true)?;
        }
        Ok(Self { stream, input: vec![0; INPUT_BYTES], from: 0, to: 0 })
    }

    /// Reads once without blocking. True when more may be readable.
    ///
    /// # Errors
    /// I/O error of the connection; `UnexpectedEof` when the broker has closed it; `InvalidData` for an invalid length.
    pub(crate) fn receive(&mut self) -> Result<bool> {
        self.make_room()?;
        let room = self.input.len() - self.to;
        match self.stream.read(&mut self.input[self.to..]) {
            Ok(0) => Err(Error::new(ErrorKind::UnexpectedEof, "the broker closed the connection")),
            Ok(count) => {
                self.to += count;
                // TLS may have buffered more than it returned, without the socket becoming readable again.
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
            // A quarter more than needed, so that responses of similar length fit.
            let wanted = needed + needed / 4;
            self.input.reserve_exact(wanted - self.input.len());
            self.input.resize(wanted, 0);
        }
        Ok(())
    }

    /// Returns the range in `input` of the next complete response, without its length field; None if none is complete.
    ///
    /// # Errors
    /// `InvalidData` when the announced length is negative or above `ANSWER_MAX`.
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
