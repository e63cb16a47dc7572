//! Simulated non-blocking connection with partial reads and writes and connection resets.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, IoSlice, Read, Result, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// State of a simulated connection: bytes in transit, limits and flags.
#[derive(Default)]
pub(crate) struct Pipe {
    /// Bytes that the client has written and the broker has not received.
    pub(super) to_broker: Vec<u8>,
    /// Bytes that have arrived at the client and were not read.
    pub(super) to_client: VecDeque<u8>,
    /// Maximum bytes in `to_broker`, as of a socket buffer.
    pub(super) room_bytes: usize,
    /// Maximum bytes per read or write call.
    pub(super) piece_bytes: usize,
    /// The connection was reset: the client's reads and writes fail.
    pub(super) is_reset: bool,
    /// The client has closed the connection.
    pub(super) is_closed: bool,
    /// A write of the client found no room.
    pub(super) wants_room: bool,
}

/// Simulated connection, shared by client and broker.
#[derive(Clone)]
pub(super) struct SharedPipe(Arc<Mutex<Pipe>>);

/// Client end of a simulated connection; dropping it closes the connection.
pub(crate) struct ClientEnd(SharedPipe);

impl SharedPipe {
    pub(super) fn new(room_bytes: usize, piece_bytes: usize) -> Self {
        Self(Arc::new(Mutex::new(Pipe { room_bytes, piece_bytes, ..Pipe::default() })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Pipe> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn client_end(&self) -> ClientEnd {
        ClientEnd(self.clone())
    }
}

impl Drop for ClientEnd {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
    }
}

impl Read for ClientEnd {
    fn read(&mut self, buffer: &mut [u8]) -> Result<usize> {
        let mut pipe = self.0.lock();
        if pipe.is_reset {
            return Err(Error::from(ErrorKind::ConnectionReset));
        }
        let count = pipe.to_client.len().min(pipe.piece_bytes).min(buffer.len());
        if count == 0 {
            return Err(Error::from(ErrorKind::WouldBlock));
        }
        pipe.to_client.drain(..count).zip(buffer).for_each(|(byte, place)| *place = byte);
        Ok(count)
    }
}

impl Write for ClientEnd {
    fn write(&mut self, bytes: &[u8]) -> Result<usize> {
        let mut pipe = self.0.lock();
        if pipe.is_reset {
            return Err(Error::from(ErrorKind::BrokenPipe));
        }
        let count = (pipe.room_bytes - pipe.to_broker.len()).min(pipe.piece_bytes).min(bytes.len());
        if count == 0 {
            pipe.wants_room = true;
            return Err(Error::from(ErrorKind::WouldBlock));
        }
        pipe.to_broker.extend_from_slice(&bytes[..count]);
        Ok(count)
    }

    fn write_vectored(&mut self, slices: &[IoSlice<'_>]) -> Result<usize> {
        let first = slices.iter().find(|slice| !slice.is_empty());
        first.map_or(Ok(0), |slice| self.write(slice))
    }

    fn flush(&mut self) -> Result<()> {
        Ok(())
    }
}
