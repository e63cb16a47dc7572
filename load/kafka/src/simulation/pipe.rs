//! A simulated connection: bytes in both directions, in pieces, until it is reset.

use std::collections::VecDeque;
use std::io::{Error, ErrorKind, IoSlice, Read, Result, Write};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is on its way.
#[derive(Default)]
pub(crate) struct Pipe {
    /// Written by the client and not taken in by the broker.
    pub(super) to_broker: Vec<u8>,
    /// Arrived at the client and not read.
    pub(super) to_client: VecDeque<u8>,
    /// So much may wait for the broker.
    pub(super) room_bytes: usize,
    /// No call reads or writes more.
    pub(super) piece_bytes: usize,
    /// Nothing arrives any more, on either side.
    pub(super) is_reset: bool,
    /// The client has closed it.
    pub(super) is_closed: bool,
    /// The client found no room.
    pub(super) wants_room: bool,
}

/// A connection that both sides hold.
#[derive(Clone)]
pub(super) struct SharedPipe(Arc<Mutex<Pipe>>);

/// The client's end.
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
