//! Backlog of a log: batches to write, shed or postpone.

use super::Shard;
use crate::figures;
use crate::log::Role;
use cliffwatch_measure::clock::nanoseconds;

/// Maximum bytes of waiting batches that are written together; a single batch may be longer.
const FLIGHT_BYTES: u64 = 1 << 20;

impl Shard {
    /// Sheds the batches of a log that are overdue by more than the burst limit: counts them and never writes them.
    pub(super) fn shed_overdue(&mut self, at: usize) {
        let role = self.shape(at).role;
        let log = &mut self.plan.logs[at];
        if role == Role::Entries || log.next >= self.horizon {
            return;
        }
        let batches = (self.horizon - log.next).div_ceil(log.stride);
        let from = log.next;
        log.next += batches * log.stride;
        if role == Role::Journal {
            self.shed.push_back((from, log.next));
        }
        self.plan.recorder.lock().add(figures::SHED, batches * u64::from(self.plan.config.batch_records));
    }

    /// Returns the number of batches that a log could write now.
    pub(super) fn waiting(&mut self, at: usize) -> u64 {
        let shape = self.shape(at);
        if shape.role != Role::Entries {
            let log = &self.plan.logs[at];
            let waiting = self.released.saturating_sub(log.next).div_ceil(log.stride);
            return if shape.coalesce { waiting } else { waiting.min(1) };
        }
        let log = &mut self.plan.logs[at];
        while let Some(&(from, to)) = self.shed.front() {
            if from > log.next {
                return from.min(self.checkpoint_to).saturating_sub(log.next);
            }
            log.next = log.next.max(to);
            self.shed.pop_front();
        }
        self.checkpoint_to.saturating_sub(log.next)
    }

    /// Returns true when a journal should wait for more batches to share a sync with, and sets the end of that wait.
    pub(super) fn waits_for_group(&mut self, at: usize, bytes: u64) -> bool {
        let Some(journal) = self.plan.config.journal.as_ref().filter(|_| at == 0) else { return false };
        if journal.group_seconds == 0.0 || bytes >= journal.group_bytes {
            return false;
        }
        let until = self.plan.schedule.due(self.plan.logs[at].next).saturating_add(nanoseconds(journal.group_seconds));
        if self.plan.clock.now() >= until {
            return false;
        }
        self.group_until = until;
        true
    }

    /// Returns how many of `wanted` batches to write together, limited by the free buffers and `FLIGHT_BYTES`.
    pub(super) fn flight_batches(&self, at: usize, wanted: u64) -> u64 {
        let batch_bytes = self.plan.config.batch_bytes();
        let log = &self.plan.logs[at];
        let chunk_bytes = self.buffers.buffer_bytes() as u64;
        let begun = if self.shape(at).direct { log.length % chunk_bytes } else { 0 };
        let capacity = (self.buffers.free() as u64 * chunk_bytes).saturating_sub(begun);
        wanted.min(capacity / batch_bytes).min((FLIGHT_BYTES / batch_bytes).max(1))
    }
}
