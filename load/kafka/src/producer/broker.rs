//! A broker as one producer sees it: the connection to it and the requests that are under way on it.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Result, Write};

use super::queue::Pending;
use crate::hot::link::Link;
use crate::session::Address;

/// Slices that are written with one call.
const SLICES: usize = 64;

/// A batch within a request.
pub struct Part {
    /// Whose it is, by place among the partitions.
    pub partition: usize,
    /// The request's head up to here goes before it.
    pub head_end: usize,
    /// The batch; taken once its fate is known.
    pub pending: Option<Pending>,
}

/// A request that is being written or waits for its answer.
#[derive(Default)]
pub struct Sent {
    /// Its answer carries this.
    pub correlation: i32,
    /// All of it but the batches.
    pub head: Vec<u8>,
    /// The batches.
    pub parts: Vec<Part>,
    /// On the wire.
    pub size_bytes: usize,
    /// When writing began, in nanoseconds since the epoch.
    pub at: u64,
}

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
    /// The version of produce requests that it speaks.
    pub version: i16,
    /// Requests without an answer, in the order in which they were sent.
    pub in_flight: VecDeque<Sent>,
    /// How much of the last of them was written.
    pub written_bytes: usize,
    /// True while writing waits for room on the connection.
    pub waits_for_room: bool,
    /// It was asked for a last word, and has not said it.
    pub awaits_last_word: bool,
    /// It asked to be left alone until then.
    pub muted_until: u64,
    /// Requests to be used again.
    pub spare: Vec<Sent>,
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
            version: 0,
            in_flight: VecDeque::new(),
            written_bytes: 0,
            waits_for_room: false,
            awaits_last_word: false,
            muted_until: 0,
            spare: Vec::new(),
        }
    }

    /// True when another request may be sent.
    #[must_use]
    pub fn has_room(&self, max_in_flight: usize, now: u64) -> bool {
        matches!(self.state, State::Up(_))
            && self.in_flight.len() < max_in_flight
            && self.is_written()
            && self.muted_until <= now
    }

    /// True when every request is written to its end.
    #[must_use]
    pub fn is_written(&self) -> bool {
        let is_flushed = match &self.state {
            State::Up(link) => !link.stream.wants_write(),
            _ => true,
        };
        is_flushed && self.in_flight.back().is_none_or(|sent| self.written_bytes == sent.size_bytes)
    }

    /// Puts a request in line; [`Broker::write`] writes it.
    pub fn enqueue(&mut self, sent: Sent) {
        self.in_flight.push_back(sent);
        self.written_bytes = 0;
    }

    /// Writes what there is room for; true when it is all written.
    ///
    /// # Errors
    /// What the system said.
    pub fn write(&mut self) -> Result<bool> {
        let State::Up(link) = &mut self.state else { return Ok(true) };
        let stream = &mut link.stream;
        if let Some(sent) = self.in_flight.back() {
            while self.written_bytes < sent.size_bytes {
                let mut slices = [IoSlice::new(&[]); SLICES];
                let count = sent.rest(self.written_bytes, &mut slices);
                match stream.write_vectored(&slices[..count]) {
                    Ok(0) => return Err(ErrorKind::WriteZero.into()),
                    Ok(written) => self.written_bytes += written,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(error) => return Err(error),
                }
            }
        }
        match stream.flush() {
            Ok(()) => Ok(!stream.wants_write()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Sent {
    /// The slices that are left to write after so many bytes, as many as there is room for; returns how many.
    fn rest<'a>(&'a self, written_bytes: usize, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let (mut skip, mut count, mut head_from) = (written_bytes, 0, 0);
        for part in &self.parts {
            let batch = part.pending.as_ref().map_or(&[][..], |pending| pending.batch.wire());
            for piece in [&self.head[head_from..part.head_end], batch] {
                if skip >= piece.len() {
                    skip -= piece.len();
                } else if count < SLICES {
                    slices[count] = IoSlice::new(&piece[skip..]);
                    count += 1;
                    skip = 0;
                }
            }
            head_from = part.head_end;
            if count == SLICES {
                return count;
            }
        }
        let tail = &self.head[head_from..];
        if skip < tail.len() && count < SLICES {
            slices[count] = IoSlice::new(&tail[skip..]);
            count += 1;
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::write::{ANONYMOUS, Batch, Shapes};
    use crate::config::Compression;
    use cliffwatch_measure::record::Identity;

    #[test]
    fn writing_may_go_on_from_any_byte() {
        let shapes = Shapes::new(&[40], false, 1.0).unwrap();
        let mut sent = Sent { head: (0..100).collect(), ..Sent::default() };
        let mut whole = Vec::new();
        for (place, head_end) in [10, 11, 50, 100].into_iter().enumerate() {
            let mut batch = Batch::new(1_000);
            let identity = Identity { producer: 0, partition: 0, sequence: place as u64, timestamp_microseconds: 0 };
            batch.push(&shapes, 0, None, &identity, 0);
            batch.finish(ANONYMOUS, 0, Compression::None).unwrap();
            let head_from = sent.parts.last().map_or(0, |part: &Part| part.head_end);
            whole.extend_from_slice(&sent.head[head_from..head_end]);
            whole.extend_from_slice(batch.wire());
            let pending = Pending { batch, order: 0, made: 0, sent: 0, author: None, failures: 0 };
            sent.parts.push(Part { partition: place, head_end, pending: Some(pending) });
        }
        for written in 0..whole.len() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = sent.rest(written, &mut slices);
            let rest: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            assert_eq!(rest, whole[written..], "after {written} bytes");
        }
    }
}
