//! What waits to be sent to a partition, in the order in which it has to arrive.

use std::collections::VecDeque;

use crate::batch::write::{Batch, ProducerIdentity};
use crate::hot::leaders::HasLeader;
use crate::track::Sequences;

/// A batch that is not acknowledged yet.
pub(crate) struct PendingBatch {
    /// Its records.
    pub(crate) batch: Batch,
    /// Its number among the partition's batches.
    pub(crate) number: u64,
    /// When its first record was put in, in nanoseconds since the epoch.
    pub(crate) made: u64,
    /// When it was first sent; 0 when it was not.
    pub(crate) sent: u64,
    /// Who signs it, once it was sent.
    pub(crate) identity: Option<ProducerIdentity>,
    /// How often it was sent and failed.
    pub(crate) failures: u32,
    /// The broker may have it, under this identity: it was sent, and no answer refused it.
    pub(crate) in_doubt: bool,
}

/// A partition as one producer sees it.
pub(crate) struct PartitionQueue {
    /// Its topic, by index.
    pub(crate) topic: usize,
    /// Its number in the topic.
    pub(crate) index: i32,
    /// Its leader, by index among the brokers; None while it has none.
    pub(crate) leader: Option<usize>,
    /// The batch that records are put in.
    pub(crate) open: Option<PendingBatch>,
    /// The open batch may be sent from this moment on.
    pub(crate) open_until: u64,
    waiting: VecDeque<PendingBatch>,
    /// Batches under way.
    pub(crate) in_flight: u32,
    /// Something failed: nothing is sent before this moment, nor while anything is under way, so that order is kept.
    held_until: Option<u64>,
    /// What is under way was sent before. Nothing is sent beside it: the broker knows the last five batches of a producer
    /// again, and others that arrive while this one is sent again and again would have it forgotten.
    is_repeating: bool,
    /// True while it stands in the list of those that have something to send.
    pub(crate) is_listed: bool,
    next_number: u64,
    /// The sequence of the next record.
    pub(crate) next_record: u64,
    /// Who signs its batches; None without idempotence.
    pub(crate) producer_id: Option<(i64, i16)>,
    /// The sequence, for the broker, of the next record that is signed.
    pub(crate) next_signed: i32,
    /// It needs another producer id. Until then nothing is sent but what the broker may have under this one: under another
    /// it would not know it again, and keep it twice.
    is_resetting: bool,
    /// Records that will never be acknowledged, in order.
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
    /// Nothing waits.
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

    /// Records can be expected to get through: it has a leader, and nothing failed lately.
    #[must_use]
    pub(crate) fn is_available(&self) -> bool {
        self.leader.is_some() && self.held_until.is_none() && !self.is_resetting
    }

    /// Opens a batch to put records in.
    pub(crate) fn begin(&mut self, batch: Batch, now: u64, until: u64) {
        self.open_until = until;
        let number = self.next_number;
        self.open =
            Some(PendingBatch { batch, number, made: now, sent: 0, identity: None, failures: 0, in_doubt: false });
        self.next_number += 1;
    }

    /// Nothing more is put into the open batch.
    pub(crate) fn close(&mut self) {
        if let Some(pending) = self.open.take() {
            self.waiting.push_back(pending);
        }
        self.open_until = u64::MAX;
    }

    /// True when something waits that a hold alone may keep from being sent now.
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

    /// The oldest batch that is not under way.
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

    /// When a hold on it ends.
    #[must_use]
    pub(crate) fn held_until(&self) -> Option<u64> {
        self.held_until
    }

    /// The size of the batch that [`PartitionQueue::take`] would give.
    #[must_use]
    pub(crate) fn next_size_bytes(&self) -> usize {
        let in_doubt = self.first_in_doubt().filter(|_| self.is_resetting).and_then(|at| self.waiting.get(at));
        in_doubt.or(self.oldest()).map_or(0, |pending| pending.batch.size_bytes())
    }

    /// The next batch to send.
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

    /// A batch that was under way has to be sent again, not before `until`. It goes back to where it was in line.
    pub(crate) fn give_back(&mut self, pending: PendingBatch, until: u64) {
        self.in_flight -= 1;
        let at = self.waiting.partition_point(|other| other.number < pending.number);
        self.waiting.insert(at, pending);
        self.held_until = Some(self.held_until.map_or(until, |held| held.max(until)));
    }

    /// True when `number` is that of the oldest batch: none before it is waiting.
    #[must_use]
    pub(crate) fn is_first(&self, number: u64) -> bool {
        self.waiting.front().is_none_or(|front| front.number > number)
    }

    /// Takes out a batch that has waited since before `limit`.
    pub(crate) fn expire(&mut self, limit: u64) -> Option<PendingBatch> {
        if self.waiting.front().is_some_and(|pending| pending.made < limit) {
            return self.waiting.pop_front();
        }
        if self.waiting.is_empty() && self.open.as_ref().is_some_and(|pending| pending.made < limit) {
            return self.open.take();
        }
        None
    }

    /// The records of this batch will never be acknowledged.
    pub(crate) fn fail(&mut self, pending: &PendingBatch) {
        let from = pending.batch.first_sequence;
        let to = from + pending.batch.count() as u64;
        // One that was sent may be given up before an older one that waits.
        let at = self.failed.partition_point(|other| other.1 <= from);
        match at.checked_sub(1).map(|before| &mut self.failed[before]) {
            Some(before) if before.1 == from => before.1 = to,
            _ => self.failed.insert(at, (from, to)),
        }
    }

    /// Has it go on under another producer id.
    pub(crate) fn reset(&mut self) {
        self.is_resetting = self.producer_id.is_some();
    }

    /// True while it waits for another producer id, or for what is to be known before it takes one.
    #[must_use]
    pub(crate) fn is_resetting(&self) -> bool {
        self.is_resetting
    }

    /// True once nothing is left that the broker may have under the old producer id without having said so.
    #[must_use]
    pub(crate) fn needs_producer_id(&self) -> bool {
        self.is_resetting && self.in_flight == 0 && self.first_in_doubt().is_none()
    }

    /// Has all that waits signed anew, from 0 on.
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
