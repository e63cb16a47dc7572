//! Produce requests on one connection: written incrementally, answered in order.

use std::collections::VecDeque;
use std::io::{ErrorKind, IoSlice, Result, Write};

use super::queue::PendingBatch;
use crate::hot::broker::{Broker, Connection, Exchange};
use crate::security::Transport;

/// Most slices written with one system call.
const SLICES: usize = 64;

/// Batch within a produce request.
pub(super) struct RequestBatch {
    /// Partition id.
    pub(crate) partition: usize,
    /// End of the part of the request's head that precedes the batch.
    pub(crate) head_end: usize,
    /// The batch; None once it is acknowledged, failed or queued for a retry.
    pub(crate) pending: Option<PendingBatch>,
}

/// Produce request that is being written or in flight.
#[derive(Default)]
pub(super) struct ProduceRequest {
    /// Correlation id.
    pub(crate) correlation: i32,
    /// The request without the batches.
    pub(crate) head: Vec<u8>,
    /// The batches, in the order of sending.
    pub(crate) batches: Vec<RequestBatch>,
    /// Size on the wire, in bytes.
    pub(crate) size_bytes: usize,
    /// Time at which writing began, in nanoseconds since the epoch.
    pub(crate) at: u64,
}

/// Produce requests of one connection.
#[derive(Default)]
pub(crate) struct Requests {
    /// Version of produce requests on this connection.
    pub(super) version: i16,
    /// Requests in flight, in order of sending.
    pub(super) in_flight: VecDeque<ProduceRequest>,
    /// Bytes written of the last request.
    written_bytes: usize,
    /// With acks 0: true while the response to the final request is outstanding.
    pub(super) awaits_final_answer: bool,
    /// Request buffers for reuse.
    pub(super) spare: Vec<ProduceRequest>,
}

impl Requests {
    /// Appends a request; [`Exchange::write`] writes it.
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
    /// True when another request may be sent: connection open, fewer in flight than the limit, none half written.
    pub(super) fn has_room(&self, max_in_flight: usize, now: u64) -> bool {
        self.is_open(now) && self.exchange.in_flight.len() < max_in_flight && self.is_written()
    }

    /// True when every request is written completely, TLS buffers included.
    pub(super) fn is_written(&self) -> bool {
        let is_flushed = match &self.connection {
            Connection::Up(link) => !link.stream.wants_write(),
            _ => true,
        };
        is_flushed && self.exchange.is_written()
    }
}

impl ProduceRequest {
    /// Fills `slices` with the parts left to write after `written_bytes`; returns how many slices were filled.
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
