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
}

/// A partition as one producer sees it.
pub(crate) struct PartitionQueue {
    /// Its topic, by index.
    pub(crate) topic: usize,
    /// Its number in the topic.
    pub(crate) index: i32,
    /// Who leads it, by index among the brokers; None while nobody does.
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
    /// True while it stands in the list of those that have something to send.
    pub(crate) is_listed: bool,
    next_number: u64,
    /// The sequence of the next record.
    pub(crate) next_record: u64,
    /// The sequence, for the broker, of the next record that is signed.
    pub(crate) next_signed: i32,
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
    pub(crate) fn new(topic: usize, index: i32) -> Self {
        Self {
            topic,
            index,
            leader: None,
            open: None,
            open_until: u64::MAX,
            waiting: VecDeque::new(),
            in_flight: 0,
            held_until: None,
            is_listed: false,
            next_number: 0,
            next_record: 0,
            next_signed: 0,
            failed: Vec::new(),
        }
    }

    /// Records can be expected to get through: it has a leader, and nothing failed lately.
    #[must_use]
    pub(crate) fn is_available(&self) -> bool {
        self.leader.is_some() && self.held_until.is_none()
    }

    /// Opens a batch to put records in.
    pub(crate) fn begin(&mut self, batch: Batch, now: u64, until: u64) {
        self.open_until = until;
        self.open =
            Some(PendingBatch { batch, number: self.next_number, made: now, sent: 0, identity: None, failures: 0 });
        self.next_number += 1;
    }

    /// Nothing more is put into the open batch.
    pub(crate) fn close(&mut self) {
        if let Some(pending) = self.open.take() {
            self.waiting.push_back(pending);
        }
        self.open_until = u64::MAX;
    }

    /// True when something waits, whether or not it may be sent now.
    #[must_use]
    pub(crate) fn has_ready(&self, now: u64) -> bool {
        !self.waiting.is_empty() || (self.open.is_some() && self.open_until <= now)
    }

    /// The batch that comes next.
    #[must_use]
    pub(crate) fn oldest(&self) -> Option<&PendingBatch> {
        self.waiting.front().or(self.open.as_ref())
    }

    /// True when the next batch may be sent now.
    #[must_use]
    pub(crate) fn may_send(&self, now: u64) -> bool {
        let is_held = self.held_until.is_some_and(|until| self.in_flight > 0 || until > now);
        !is_held && self.has_ready(now)
    }

    /// When a hold on it ends.
    #[must_use]
    pub(crate) fn held_until(&self) -> Option<u64> {
        self.held_until
    }

    /// The size of the batch that [`PartitionQueue::take`] would give.
    #[must_use]
    pub(crate) fn next_size_bytes(&self) -> usize {
        self.oldest().map_or(0, |pending| pending.batch.size_bytes())
    }

    /// The next batch to send.
    pub(crate) fn take(&mut self) -> Option<PendingBatch> {
        if self.waiting.is_empty() {
            self.close();
        }
        let pending = self.waiting.pop_front()?;
        self.held_until = None;
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
        match self.failed.last_mut() {
            Some(last) if last.1 == from => last.1 = to,
            _ => self.failed.push((from, to)),
        }
    }

    /// All batches that wait have to be signed anew, from 0 on.
    pub(crate) fn unsign(&mut self) {
        self.next_signed = 0;
        self.waiting.iter_mut().for_each(|pending| pending.identity = None);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn queue_with(count: u64) -> PartitionQueue {
        let mut queue = PartitionQueue::new(0, 0);
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
    fn an_open_batch_waits_for_its_moment_unless_it_is_closed() {
        let mut queue = PartitionQueue::new(0, 0);
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
