//! Makes the records that are due and appends them to the open batch of their partition.

use cliffwatch_measure::record::Identity;

use super::{PartitionQueue, Producer, keys};
use crate::batch::write::Batch;

/// Most records made per turn, before connections are served again.
pub(super) const RECORDS_AT_ONCE: usize = 2_048;

impl Producer {
    pub(super) fn has_memory(&self) -> bool {
        self.live_bytes + self.settings.batch_size_bytes.min(self.shapes.record_bytes_max(0)) <= self.buffer_bytes
    }

    /// Makes the records that are due, while buffer memory lasts; returns how many.
    pub(super) fn make(&mut self, now: u64) -> usize {
        let is_unbounded = self.pace.is_unbounded();
        let mut made = 0;
        while made < RECORDS_AT_ONCE && self.has_memory() && self.has_due() {
            if self.pace.allowed(now) > now {
                break;
            }
            if is_unbounded {
                // At most a request's size ahead: more would only go through the caches twice.
                let ahead = self.live_bytes - self.in_flight_bytes;
                if ahead >= self.settings.request_size_bytes {
                    break;
                }
            }
            let due = self.pace.due(now);
            self.make_one(now, due);
            self.pace.advance(now, due);
            made += 1;
        }
        made
    }

    fn make_one(&mut self, now: u64, due: u64) {
        let shape = self.sizes.draw(&mut self.random);
        let key = self.keys.draw(&mut self.random);
        let partition = match key {
            Some(key) => {
                let (from, to) = self.topic_ranges[(self.made % self.topic_ranges.len() as u64) as usize];
                from + keys::partition_of(key, to - from)
            }
            None => self.partition_without_key(),
        };
        self.made += 1;
        let record_bytes = self.shapes.record_bytes_max(shape);
        let batch_size = self.settings.batch_size_bytes;
        let is_full = |queue: &PartitionQueue| {
            queue.open.as_ref().is_some_and(|open| open.batch.size_bytes() + record_bytes > batch_size)
        };
        if is_full(&self.queues[partition]) {
            self.queues[partition].close();
            self.list(partition);
        }
        if self.queues[partition].open.is_none() {
            let until = if self.pace.is_unbounded() { now } else { due + self.linger };
            let batch = self.fresh_batch();
            self.live_bytes += batch.size_bytes();
            self.queues[partition].begin(batch, now, until);
            self.opened.push_back((partition, until));
        }
        let queue = &mut self.queues[partition];
        let identity = Identity {
            producer: self.identity,
            partition: partition as u32,
            sequence: queue.next_record,
            timestamp_microseconds: due / 1_000,
        };
        queue.next_record += 1;
        if let Some(open) = &mut queue.open {
            let before = open.batch.size_bytes();
            open.batch.push(&self.shapes, shape, key, &identity, due);
            self.live_bytes += open.batch.size_bytes() - before;
            // Closed at once, so that the next record without a key goes to another partition.
            if open.batch.size_bytes() + record_bytes > batch_size {
                queue.close();
                self.list(partition);
            }
        }
    }

    /// Partition of a record without a key: that of the open batch, or else the next available one.
    fn partition_without_key(&mut self) -> usize {
        if self.queues[self.current].open.is_some() {
            return self.current;
        }
        let count = self.queues.len();
        let next = (self.current + 1) % count;
        self.current = (0..count)
            .map(|step| (next + step) % count)
            .find(|&partition| self.queues[partition].is_available())
            .unwrap_or(next);
        self.current
    }

    fn fresh_batch(&mut self) -> Batch {
        match self.spare.pop() {
            Some(mut batch) => {
                self.spare_bytes -= batch.memory_bytes();
                batch.clear();
                batch
            }
            None => Batch::new(self.settings.batch_size_bytes),
        }
    }

    /// Keeps a batch's buffer for reuse, unless all buffers together would exceed `buffer_bytes`.
    pub(super) fn keep_buffer(&mut self, batch: Batch) {
        let bytes = batch.memory_bytes();
        if self.live_bytes + self.spare_bytes + bytes <= self.buffer_bytes {
            self.spare_bytes += bytes;
            self.spare.push(batch);
        }
    }

    pub(super) fn list(&mut self, partition: usize) {
        let queue = &mut self.queues[partition];
        if !queue.is_listed {
            queue.is_listed = true;
            self.listed.push_back(partition);
        }
    }

    /// Lists partitions for sending whose open batch has lingered long enough; after the load's end, all of them.
    pub(super) fn list_due(&mut self, now: u64) {
        let is_over = self.over_since.is_some();
        while let Some(&(partition, until)) = self.opened.front() {
            if until > now && !is_over {
                break;
            }
            self.opened.pop_front();
            if is_over {
                self.queues[partition].close();
            }
            if self.queues[partition].has_ready(now) {
                self.list(partition);
            }
        }
    }
}
