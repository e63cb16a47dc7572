//! Completions of requests: files opened, space allocated, buffers written, logs synced, batches acknowledged.

use super::{ALLOCATE, SYNC, Shard, WRITE, Work, token};
use crate::error::{Error, Result};
use crate::figures;
use crate::files::FileTask;
use crate::index::Indexes;
use crate::io::{Done, Request};
use crate::log::{LogState, Role, WriteGroup};
use std::os::fd::{FromRawFd, OwnedFd};

impl Shard {
    /// Processes completed requests; if there are none, waits up to `nanoseconds` for one.
    pub(super) fn reap(&mut self, nanoseconds: u64) -> Result<()> {
        let mut done = std::mem::take(&mut self.done);
        self.io.wait(nanoseconds, &mut done)?;
        let now = self.plan.clock.now();
        for &one in &done {
            self.take_in(one, now)?;
        }
        done.clear();
        self.done = done;
        Ok(())
    }

    pub(super) fn take_in(&mut self, done: Done, now: u64) -> Result<()> {
        let at = (done.token as u32) as usize;
        let buffer = (done.token >> 32) as u32 & 0xff_ffff;
        let kind = done.token >> 56;
        if kind == ALLOCATE && done.result == -libc::EOPNOTSUPP {
            self.plan.shapes.iter_mut().for_each(|shape| shape.preallocate_bytes = 0);
            self.plan.logs[at].state = LogState::Idle;
            self.wake(at);
            return Ok(());
        }
        if done.result < 0 {
            self.plan.recorder.lock().add(figures::ERRORS, 1);
            let what = ["write to it", "sync it", "allocate space for it", "make it"][kind as usize];
            let source = std::io::Error::from_raw_os_error(-done.result);
            return Err(Error::file(self.plan.logs[at].path(), what)(source));
        }
        match kind {
            WRITE => self.written(at, buffer, done.result as u32, now),
            SYNC => {
                let group = self.plan.logs[at].group;
                let mut tally = self.plan.recorder.lock();
                tally.latency(figures::SYNC, now - group.sync_begun, 1);
                tally.add(figures::SYNCS, 1);
                drop(tally);
                self.finished(at, now)
            }
            ALLOCATE => {
                let log = &mut self.plan.logs[at];
                log.allocated += log.group.bytes;
                log.state = LogState::Idle;
                self.wake(at);
                Ok(())
            }
            _ => self.opened(at, done.result),
        }
    }

    pub(super) fn opened(&mut self, at: usize, descriptor: i32) -> Result<()> {
        let interval = self.shape(at).index_interval_bytes;
        let log = &mut self.plan.logs[at];
        // SAFETY: a file thread opened it for this log, and no other code has the descriptor.
        log.file = Some(unsafe { OwnedFd::from_raw_fd(descriptor) });
        if interval > 0 {
            log.indexes = Some(Box::new(Indexes::make(log.directory(), log.base)?));
        }
        log.state = LogState::Idle;
        self.wake(at);
        Ok(())
    }

    pub(super) fn written(&mut self, at: usize, buffer: u32, count: u32, now: u64) -> Result<()> {
        let part = &mut self.parts[buffer as usize];
        let mut tally = self.plan.recorder.lock();
        tally.add(figures::WRITTEN_BYTES, u64::from(count));
        if count < part.length {
            // A short write, for example because of a signal: submit the rest.
            drop(tally);
            (part.from, part.length) = (part.from + count, part.length - count);
            part.offset += u64::from(count);
            let rest = *part;
            return self.submit_part(at, buffer, rest);
        }
        let part = *part;
        tally.latency(figures::WRITE, now - part.begun, 1);
        tally.add(figures::WRITES, 1);
        drop(tally);
        let (from, to) = part.foreign;
        if from < to && self.encoder.slot_bytes() > 0 {
            self.buffers.restore(buffer as usize, from as usize, to as usize);
        }
        self.buffers.give(buffer);
        let log = &mut self.plan.logs[at];
        log.group.outstanding -= 1;
        if log.group.outstanding > 0 {
            return Ok(());
        }
        log.length += log.group.bytes;
        // Entries are synced once they have caught up with the checkpoint.
        let caught_up = log.next >= self.checkpoint_to;
        let shape = self.shape(at);
        if shape.sync || shape.role == Role::Entries && caught_up {
            let log = &mut self.plan.logs[at];
            log.state = LogState::Syncing;
            log.group.sync_begun = now;
            return self.io.submit(token(SYNC, 0, at), Request::Sync { file: log.descriptor() });
        }
        self.finished(at, now)
    }

    /// Completes a log's write group: publishes, indexes and acknowledges it, and wakes the log.
    pub(super) fn finished(&mut self, at: usize, now: u64) -> Result<()> {
        let shape = self.shape(at);
        let (role, interval) = (shape.role, shape.index_interval_bytes);
        let log = &mut self.plan.logs[at];
        let was_synced = log.state == LogState::Syncing;
        let group = std::mem::take(&mut log.group);
        log.state = LogState::Idle;
        log.publish();
        if interval > 0
            && let Some(indexes) = &mut log.indexes
        {
            let position = log.length - group.bytes;
            let appended = group.batches * u64::from(self.plan.config.batch_records);
            let record = log.sequences[0] - log.base - appended;
            indexes.appended(record, position, group.bytes, now / 1_000_000, interval)?;
        }
        let next = log.next;
        if role == Role::Entries {
            if was_synced {
                self.release_journals();
            }
        } else {
            self.acknowledge(at, &group, now);
            self.acknowledged = next;
            self.unchecked_bytes += group.bytes;
        }
        self.wake(at);
        Ok(())
    }

    /// Counts the batches of a group as appended and records their latencies.
    pub(super) fn acknowledge(&mut self, at: usize, group: &WriteGroup, now: u64) {
        let stride = self.plan.logs[at].stride;
        let begun = group.begun.unwrap_or(now);
        let records = u64::from(self.plan.config.batch_records);
        let mut tally = self.plan.recorder.lock();
        let mut late = 0;
        if matches!(self.plan.work, Work::Until(_)) {
            for index in (0..group.batches).map(|batch| group.first + batch * stride) {
                let due = self.plan.schedule.due(index);
                tally.latency(figures::APPEND, now.saturating_sub(due), 1);
                tally.latency(figures::APPEND_SERVICE, now.saturating_sub(begun.max(due)), 1);
                late += u64::from(begun > due + figures::LATE_NANOSECONDS);
            }
        }
        tally.add(figures::OPERATIONS, group.batches * records);
        tally.add(figures::BATCHES, group.batches);
        tally.add(figures::BYTES, group.bytes);
        tally.add(figures::LATE, late * records);
    }

    /// Deletes the full segments of the journal, whose batches the entries now hold.
    pub(super) fn release_journals(&mut self) {
        let expired = self.plan.logs[0].expire(0, 0);
        for segment in expired {
            self.plan
                .file_threads
                .submit(FileTask::Delete(self.plan.logs[0].paths(segment.base, &self.plan.shapes[0])));
        }
    }
}
