//! Produce requests on one connection: written piece by piece, answered in order.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Result, Write};

use super::queue::PendingBatch;
use crate::hot::broker::{Broker, Connection, Exchange};
use crate::security::Transport;

/// Slices that are written with one call.
const SLICES: usize = 64;

/// A batch within a request.
pub(super) struct RequestBatch {
    /// Its partition's id.
    pub(crate) partition: usize,
    /// The request's head up to here goes before it.
    pub(crate) head_end: usize,
    /// The batch; taken once it is acknowledged, failed, or to be sent again.
    pub(crate) pending: Option<PendingBatch>,
}

/// A request that is being written or waits for its answer.
#[derive(Default)]
pub(super) struct ProduceRequest {
    /// Its answer carries this.
    pub(crate) correlation: i32,
    /// All of it but the batches.
    pub(crate) head: Vec<u8>,
    /// The batches.
    pub(crate) batches: Vec<RequestBatch>,
    /// On the wire.
    pub(crate) size_bytes: usize,
    /// When writing began, in nanoseconds since the epoch.
    pub(crate) at: u64,
}

/// The produce requests on one connection.
#[derive(Default)]
pub(crate) struct Requests {
    /// The version of them that the broker speaks.
    pub(super) version: i16,
    /// Those without an answer, in the order in which they were sent.
    pub(super) in_flight: VecDeque<ProduceRequest>,
    /// How much of the last of them was written.
    written_bytes: usize,
    /// The broker has yet to answer the request that is sent last where it acknowledges nothing.
    pub(super) awaits_final_answer: bool,
    /// Requests to be used again.
    pub(super) spare: Vec<ProduceRequest>,
}

impl Requests {
    /// Puts a request in line; [`Exchange::write`] writes it.
    pub(super) fn enqueue(&mut self, request: ProduceRequest) {
        self.in_flight.push_back(request);
        self.written_bytes = 0;
    }

    fn is_written(&self) -> bool {
        self.in_flight.back().is_none_or(|request| self.written_bytes == request.size_bytes)
    }
}

impl Exchange for Requests {
    fn write(&mut self, stream: &mut Transport) -> Result<bool> {
        let Some(request) = self.in_flight.back() else { return Ok(true) };
        while self.written_bytes < request.size_bytes {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = request.rest(self.written_bytes, &mut slices);
            match stream.write_vectored(&slices[..count]) {
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
        self.in_flight.len()
    }

    fn oldest_sent_at(&self) -> Option<u64> {
        self.in_flight.front().map(|request| request.at)
    }

    fn connected(&mut self, produce_version: i16) {
        self.version = produce_version;
    }

    fn disconnected(&mut self) {
        (self.written_bytes, self.awaits_final_answer) = (0, false);
    }
}

impl Broker<Requests> {
    /// True when another request may be sent.
    pub(super) fn has_room(&self, max_in_flight: usize, now: u64) -> bool {
        self.is_open(now) && self.exchange.in_flight.len() < max_in_flight && self.is_written()
    }

    /// True when every request is written to its end.
    pub(super) fn is_written(&self) -> bool {
        let is_flushed = match &self.connection {
            Connection::Up(link) => !link.stream.wants_write(),
            _ => true,
        };
        is_flushed && self.exchange.is_written()
    }
}

impl ProduceRequest {
    /// The slices that are left to write after so many bytes, as many as there is room for; returns how many.
    fn rest<'a>(&'a self, written_bytes: usize, slices: &mut [IoSlice<'a>; SLICES]) -> usize {
        let (mut skip, mut count, mut head_from) = (written_bytes, 0, 0);
        for part in &self.batches {
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
    use crate::batch::write::{ANONYMOUS, Batch, RecordTemplates};
    use crate::config::Compression;
    use cliffwatch_measure::record::Identity;

    #[test]
    fn writing_may_go_on_from_any_byte() {
        let shapes = RecordTemplates::new(&[40], false, 1.0).unwrap();
        let mut request = ProduceRequest { head: (0..100).collect(), ..ProduceRequest::default() };
        let mut whole = Vec::new();
        for (index, head_end) in [10, 11, 50, 100].into_iter().enumerate() {
            let mut batch = Batch::new(1_000);
            let identity = Identity { producer: 0, partition: 0, sequence: index as u64, timestamp_microseconds: 0 };
            batch.push(&shapes, 0, None, &identity, 0);
            batch.finish(ANONYMOUS, 0, Compression::None).unwrap();
            let head_from = request.batches.last().map_or(0, |part: &RequestBatch| part.head_end);
            whole.extend_from_slice(&request.head[head_from..head_end]);
            whole.extend_from_slice(batch.wire());
            let pending =
                PendingBatch { batch, number: 0, made: 0, sent: 0, identity: None, failures: 0, in_doubt: false };
            request.batches.push(RequestBatch { partition: index, head_end, pending: Some(pending) });
        }
        for written in 0..whole.len() {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let count = request.rest(written, &mut slices);
            let rest: Vec<u8> = slices[..count].iter().flat_map(|slice| slice.to_vec()).collect();
            assert_eq!(rest, whole[written..], "after {written} bytes");
        }
    }
}
