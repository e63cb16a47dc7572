//! Queue of batches to one partition, in order of arrival at the broker.

use std::collections::VecDeque;

use crate::batch::write::{Batch, ProducerIdentity};
use crate::hot::leaders::HasLeader;
use crate::track::Sequences;

/// Batch that is not acknowledged yet: open, waiting or in flight.
pub(crate) struct PendingBatch {
    /// The records.
    pub(crate) batch: Batch,
    /// Number of the batch within the partition, from 0.
    pub(crate) number: u64,
    /// Time of the first record's making, in nanoseconds since the epoch.
    pub(crate) made: u64,
    /// Time of the first sending, in nanoseconds since the epoch; 0 if it was not sent.
    pub(crate) sent: u64,
    /// Producer id, epoch and base sequence in its header; None before it is sent.
    pub(crate) identity: Option<ProducerIdentity>,
    /// Number of failed sends.
    pub(crate) failures: u32,
    /// True when the broker may have written the batch under this identity: it was sent, and no response refused it.
    pub(crate) in_doubt: bool,
}

/// One producer's queue of batches to a partition, with leader and idempotence state.
pub(crate) struct PartitionQueue {
    /// Topic index.
    pub(crate) topic: usize,
    /// Partition index within the topic.
    pub(crate) index: i32,
    /// Leader, as an index among the brokers; None while there is none.
    pub(crate) leader: Option<usize>,
    /// Open batch, to which records are appended.
    pub(crate) open: Option<PendingBatch>,
    /// Time from which the open batch may be sent, in nanoseconds since the epoch.
    pub(crate) open_until: u64,
    waiting: VecDeque<PendingBatch>,
    /// Number of batches in flight.
    pub(crate) in_flight: u32,
    /// Hold after a failure: nothing is sent before this time, nor while a batch is in flight, which keeps the order.
    held_until: Option<u64>,
    /// True while a retried batch is in flight. Nothing else is sent then: the broker recognizes only the last five
    /// batches of a producer, and others beside repeated retries would push this one out.
    is_repeating: bool,
    /// True while it is in the producer's list of partitions with batches to send.
    pub(crate) is_listed: bool,
    next_number: u64,
    /// Verification sequence of the next record (see [`Sequences`]).
    pub(crate) next_record: u64,
    /// Producer id and epoch for its batches; None without idempotence.
    pub(crate) producer_id: Option<(i64, i16)>,
    /// Kafka sequence number of the first record of the next batch to be signed.
    pub(crate) next_signed: i32,
    /// True when a new producer id is needed. Until then only batches in doubt are sent, under the old id: under a new
    /// one the broker would not recognize them and would write them twice.
    is_resetting: bool,
    /// Sequences of records that will never be acknowledged, in order.
    pub(crate) failed: Vec<Sequences>,
}

impl HasLeader for PartitionQueue {
    fn topic_partition(&self) -> (usize, i32) {
        (self.topic, self.index)
    }

    fn leader(&self) -> Option<usize> {
        self.leader
    }

    fn set_leader(&mut self, leader: Option<usize>) {
        self.leader = leader;
    }
}

impl PartitionQueue {
    /// Empty queue without a leader.
    #[must_use]
    pub(crate) fn new(topic: usize, index: i32, producer_id: Option<(i64, i16)>) -> Self {
        Self {
            topic,
            index,
            leader: None,
            open: None,
            open_until: u64::MAX,
            waiting: VecDeque::new(),
            in_flight: 0,
            held_until: None,
            is_repeating: false,
            is_listed: false,
            next_number: 0,
            next_record: 0,
            producer_id,
            next_signed: 0,
            is_resetting: false,
            failed: Vec::new(),
        }
    }

    /// True when records can be expected to get through: a leader, no hold after a failure, no pending reset.
    #[must_use]
    pub(crate) fn is_available(&self) -> bool {
        self.leader.is_some() && self.held_until.is_none() && !self.is_resetting
    }

    /// Opens a batch for records; it lingers until `until`.
    pub(crate) fn begin(&mut self, batch: Batch, now: u64, until: u64) {
        self.open_until = until;
        let number = self.next_number;
        self.open =
            Some(PendingBatch { batch, number, made: now, sent: 0, identity: None, failures: 0, in_doubt: false });
        self.next_number += 1;
    }

    /// Closes the open batch and appends it to those waiting.
    pub(crate) fn close(&mut self) {
        if let Some(pending) = self.open.take() {
            self.waiting.push_back(pending);
        }
        self.open_until = u64::MAX;
    }

    /// True when a batch is ready, regardless of holds and batches in flight; during a reset, only one in doubt.
    #[must_use]
    pub(crate) fn has_ready(&self, now: u64) -> bool {
        if self.is_resetting {
            return self.first_in_doubt().is_some();
        }
        !self.waiting.is_empty() || (self.open.is_some() && self.open_until <= now)
    }

    fn first_in_doubt(&self) -> Option<usize> {
        self.waiting.iter().position(|pending| pending.in_doubt)
    }

    /// Oldest batch that is not in flight.
    #[must_use]
    pub(crate) fn oldest(&self) -> Option<&PendingBatch> {
        self.waiting.front().or(self.open.as_ref())
    }

    /// True when the next batch may be sent now.
    #[must_use]
    pub(crate) fn may_send(&self, now: u64) -> bool {
        let is_held = self.held_until.is_some_and(|until| self.in_flight > 0 || until > now);
        let is_alone = self.is_repeating && self.in_flight > 0;
        !is_held && !is_alone && self.has_ready(now)
    }

    /// End of the hold after a failure, in nanoseconds since the epoch; None without a hold.
    #[must_use]
    pub(crate) fn held_until(&self) -> Option<u64> {
        self.held_until
    }

    /// Size of the batch that [`PartitionQueue::take`] would return, in bytes.
    #[must_use]
    pub(crate) fn next_size_bytes(&self) -> usize {
        let in_doubt = self.first_in_doubt().filter(|_| self.is_resetting).and_then(|at| self.waiting.get(at));
        in_doubt.or(self.oldest()).map_or(0, |pending| pending.batch.size_bytes())
    }

    /// Takes the next batch for sending; it counts as in flight from then on. During a reset, only batches in doubt.
    pub(crate) fn take(&mut self) -> Option<PendingBatch> {
        if self.waiting.is_empty() && !self.is_resetting {
            self.close();
        }
        let at = if self.is_resetting { self.first_in_doubt()? } else { 0 };
        let pending = self.waiting.remove(at)?;
        self.held_until = None;
        self.is_repeating = pending.failures > 0;
        self.in_flight += 1;
        Some(pending)
    }

    /// Returns an in-flight batch to its place in the queue for a retry, not before `until`.
    pub(crate) fn give_back(&mut self, pending: PendingBatch, until: u64) {
        self.in_flight -= 1;
        let at = self.waiting.partition_point(|other| other.number < pending.number);
        self.waiting.insert(at, pending);
        self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
    }

    /// True when no batch with a lower number is waiting.
    #[must_use]
    pub(crate) fn is_first(&self, number: u64) -> bool {
        self.waiting.front().is_none_or(|front| front.number > number)
    }

    /// Removes the oldest batch if it was made before `limit`.
    pub(crate) fn expire(&mut self, limit: u64) -> Option<PendingBatch> {
        if self.waiting.front().is_some_and(|pending| pending.made < limit) {
            return self.waiting.pop_front();
        }
        if self.waiting.is_empty() && self.open.as_ref().is_some_and(|pending| pending.made < limit) {
            return self.open.take();
        }
        None
    }

    /// Marks the records of a batch as failed: they will never be acknowledged.
    pub(crate) fn fail(&mut self, pending: &PendingBatch) {
        let from = pending.batch.first_sequence;
        let to = from + pending.batch.count() as u64;
        // A batch that was sent may fail before an older one that waits.
        let at = self.failed.partition_point(|other| other.1 <= from);
        match at.checked_sub(1).map(|before| &mut self.failed[before]) {
            Some(before) if before.1 == from => before.1 = to,
            _ => self.failed.insert(at, (from, to)),
        }
    }

    /// Starts a reset to a new producer id; no effect without idempotence.
    pub(crate) fn reset(&mut self) {
        self.is_resetting = self.producer_id.is_some();
    }

    /// True during a reset: until a new producer id is assigned.
    #[must_use]
    pub(crate) fn is_resetting(&self) -> bool {
        self.is_resetting
    }

    /// True when a reset waits only for the new producer id: no batch is in flight or in doubt under the old one.
    #[must_use]
    pub(crate) fn needs_producer_id(&self) -> bool {
        self.is_resetting && self.in_flight == 0 && self.first_in_doubt().is_none()
    }

    /// Ends a reset: signs all waiting batches anew with this producer id, sequence numbers from 0.
    pub(crate) fn go_on_as(&mut self, producer_id: (i64, i16)) {
        self.producer_id = Some(producer_id);
        (self.next_signed, self.is_resetting) = (0, false);
        self.waiting.iter_mut().for_each(|pending| pending.identity = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::write::RecordTemplates;
    use cliffwatch_measure::record::Identity;

    fn queue_with(count: u64) -> PartitionQueue {
        let mut queue = PartitionQueue::new(0, 0, Some((7, 0)));
        for _ in 0..count {
            queue.begin(Batch::new(1_000), 0, 0);
            queue.close();
        }
        queue
    }

    #[test]
    fn what_failed_is_sent_again_in_its_old_order_once_nothing_is_under_way() {
        let mut queue = queue_with(4);
        let mut sent: Vec<PendingBatch> = (0..3).filter_map(|_| queue.take()).collect();
        let third = sent.pop().unwrap();
        let second = sent.pop().unwrap();
        let first = sent.pop().unwrap();
        queue.give_back(second, 50);
        assert!(!queue.may_send(60), "the first and third are under way");
        queue.give_back(third, 40);
        queue.give_back(first, 40);
        assert!(!queue.may_send(49));
        assert!(queue.may_send(50));
        let numbers: Vec<u64> = std::iter::from_fn(|| queue.take()).map(|pending| pending.number).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
    }

    #[test]
    fn what_failed_is_in_order_whatever_failed_first() {
        let mut queue = queue_with(0);
        let shapes = RecordTemplates::new(&[40], false, 1.0).unwrap();
        for sequence in [4, 0, 1, 3, 7] {
            let mut batch = Batch::new(1_000);
            batch.push(
                &shapes,
                0,
                None,
                &Identity { producer: 0, partition: 0, sequence, timestamp_microseconds: 0 },
                0,
            );
            queue.begin(batch, 0, 0);
            queue.close();
            let failed = queue.take().unwrap();
            queue.fail(&failed);
        }
        assert_eq!(queue.failed, [(0, 2), (3, 4), (4, 5), (7, 8)]);
    }

    #[test]
    fn what_a_broker_may_have_is_asked_for_under_the_old_producer_id_and_all_else_waits_for_the_new_one() {
        let mut queue = queue_with(5);
        let mut sent: Vec<PendingBatch> = (0..3).filter_map(|_| queue.take()).collect();
        queue.reset();
        for pending in &mut sent {
            pending.identity = Some(ProducerIdentity { producer_id: 7, epoch: 0, sequence: 0 });
        }
        let (third, second) = (sent.pop().unwrap(), sent.pop().unwrap());
        queue.give_back(PendingBatch { in_doubt: true, ..third }, 0);
        // Refused, so that nothing has to be asked.
        queue.give_back(second, 0);
        assert!(!queue.needs_producer_id(), "the first is under way, and the third is in doubt");
        queue.in_flight -= 1;
        assert_eq!(queue.take().map(|pending| pending.number), Some(2));
        queue.in_flight -= 1;
        assert!(!queue.has_ready(u64::MAX), "the second, and what was never sent, wait");
        assert!(queue.take().is_none());
        assert!(queue.needs_producer_id());
        queue.go_on_as((8, 0));
        assert!(!queue.needs_producer_id());
        let rest: Vec<PendingBatch> = std::iter::from_fn(|| queue.take()).collect();
        assert_eq!(rest.iter().map(|pending| pending.number).collect::<Vec<_>>(), [1, 3, 4]);
        assert!(rest.iter().all(|pending| pending.identity.is_none()));
    }

    #[test]
    fn a_queue_without_a_producer_id_is_not_reset() {
        let mut queue = PartitionQueue::new(0, 0, None);
        queue.reset();
        assert!(!queue.is_resetting());
    }

    #[test]
    fn an_open_batch_waits_for_its_moment_unless_it_is_closed() {
        let mut queue = PartitionQueue::new(0, 0, None);
        queue.begin(Batch::new(1_000), 100, 200);
        assert!(!queue.may_send(199));
        assert!(queue.may_send(200));
        queue.close();
        assert!(queue.may_send(0));
        assert!(queue.expire(100).is_none());
        assert!(queue.expire(101).is_some());
        assert!(queue.oldest().is_none());
    }
}
