//! Encoding of batches into buffers, and submission of buffers for writing.

use super::{BufferedWrite, Shard, WRITE, token};
use crate::error::{Error, Result};
use crate::io::Request;
use crate::log::LogState;
use cliffwatch_measure::record::Identity;

/// Buffer that is being filled.
struct Chunk {
    buffer: u32,
    from: usize,
    at: usize,
    foreign_to: usize,
    file_offset: u64,
}

impl Shard {
    /// Encodes the next `batches` batches of a log into buffers and submits the buffers for writing.
    pub(super) fn write(&mut self, at: usize, batches: u64) -> Result<()> {
        let log = &mut self.plan.logs[at];
        log.state = LogState::Writing;
        log.group.first = log.next;
        log.group.batches = batches;
        log.next += batches * log.stride;
        let position = log.length;
        let (first, stride) = (log.group.first, log.stride);
        let mut chunk = None;
        let mut end = position;
        for index in (0..batches).map(|batch| first + batch * stride) {
            end = self.lay(at, index, &mut chunk, end)?;
        }
        if let Some(chunk) = chunk {
            self.send(at, chunk)?;
        }
        self.plan.logs[at].group.bytes = end - position;
        Ok(())
    }

    /// Encodes one batch into buffers, for `position` in the file; returns the position after it.
    fn lay(&mut self, at: usize, index: u64, open: &mut Option<Chunk>, mut position: u64) -> Result<u64> {
        let due = self.plan.schedule.due(index);
        let log = &self.plan.logs[at];
        let carried = log.sequences.len() as u64;
        let place = if carried > 1 { (index % carried) as usize } else { 0 };
        let mut identity = Identity {
            producer: 0,
            partition: log.first_partition + place as u32,
            sequence: log.sequences[place],
            timestamp_microseconds: due / 1_000,
        };
        let slot_bytes = self.encoder.slot_bytes();
        for _ in 0..self.plan.config.batch_records {
            if slot_bytes > 0 {
                let chunk = match open {
                    Some(chunk) => chunk,
                    None => open.insert(self.open_chunk(at, position)?),
                };
                self.encoder.seal_slot(&mut self.buffers, chunk.buffer, chunk.at, &identity);
                chunk.at += slot_bytes;
                position += slot_bytes as u64;
                if chunk.at == self.buffers.buffer_bytes()
                    && let Some(full) = open.take()
                {
                    self.send(at, full)?;
                }
            } else {
                position = self.copy(at, &identity, open, position)?;
            }
            identity.sequence += 1;
        }
        self.plan.logs[at].sequences[place] = identity.sequence;
        Ok(position)
    }

    /// Copies one record into buffers, across a boundary if necessary; returns the file position after it.
    fn copy(&mut self, at: usize, identity: &Identity, open: &mut Option<Chunk>, mut position: u64) -> Result<u64> {
        let mut copied = 0;
        let bytes = self.encoder.make_record(identity);
        while copied < bytes {
            let chunk = match open {
                Some(chunk) => chunk,
                None => open.insert(self.open_chunk(at, position)?),
            };
            let room = &mut self.buffers.bytes(chunk.buffer)[chunk.at..];
            let fits = room.len().min(bytes - copied);
            room[..fits].copy_from_slice(&self.encoder.made_record()[copied..copied + fits]);
            (copied, chunk.at, position) = (copied + fits, chunk.at + fits, position + fits as u64);
            if chunk.at == self.buffers.buffer_bytes()
                && let Some(full) = open.take()
            {
                self.send(at, full)?;
            }
        }
        Ok(position)
    }

    fn open_chunk(&mut self, at: usize, position: u64) -> Result<Chunk> {
        // `flight_batches` ensures that enough buffers are free.
        let missing = || Error::System { what: "buffers", source: std::io::ErrorKind::OutOfMemory.into() };
        let buffer = self.buffers.take().ok_or_else(missing)?;
        if !self.shape(at).direct {
            return Ok(Chunk { buffer, from: 0, at: 0, foreign_to: 0, file_offset: position });
        }
        let within = (position % self.buffers.buffer_bytes() as u64) as usize;
        let from = within - within % crate::buffers::BLOCK_BYTES;
        if within > from
            && let Some(tail) = &self.plan.logs[at].tail
        {
            self.buffers.bytes(buffer)[from..within].copy_from_slice(&tail[..within - from]);
        }
        Ok(Chunk { buffer, from, at: within, foreign_to: within, file_offset: position - within as u64 })
    }

    /// Submits a buffer for writing. With O_DIRECT a partly filled last block is padded with zeros and copied to the
    /// log's `tail`.
    fn send(&mut self, at: usize, chunk: Chunk) -> Result<()> {
        const BLOCK: usize = crate::buffers::BLOCK_BYTES;
        let mut to = chunk.at;
        if self.shape(at).direct && !chunk.at.is_multiple_of(BLOCK) {
            to = chunk.at.next_multiple_of(BLOCK);
            let bytes = self.buffers.bytes(chunk.buffer);
            bytes[chunk.at..to].fill(0);
            let tail = self.plan.logs[at].tail.get_or_insert_with(|| Box::new([0; BLOCK]));
            tail.copy_from_slice(&bytes[to - BLOCK..to]);
        }
        let foreign_from = if chunk.foreign_to > chunk.from { chunk.from } else { chunk.at };
        let foreign_to = if to > chunk.at { to } else { chunk.foreign_to.max(foreign_from) };
        let log = &mut self.plan.logs[at];
        log.group.outstanding += 1;
        let part = BufferedWrite {
            file: log.descriptor(),
            from: chunk.from as u32,
            length: (to - chunk.from) as u32,
            offset: chunk.file_offset + chunk.from as u64,
            begun: self.plan.clock.now(),
            foreign: (foreign_from as u32, foreign_to as u32),
        };
        self.parts[chunk.buffer as usize] = part;
        self.submit_part(at, chunk.buffer, part)
    }

    pub(super) fn submit_part(&mut self, at: usize, buffer: u32, part: BufferedWrite) -> Result<()> {
        let BufferedWrite { file, from, length, offset, .. } = part;
        self.io.submit(token(WRITE, buffer, at), Request::Write { file, buffer, from, length, offset })
    }
}
