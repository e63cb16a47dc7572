//! Partition assignment of a consumer: its partitions, their leaders, start positions and end offsets.

use std::collections::BTreeMap;

use super::{BACKOFF, Consumer, Partition};
use crate::admin::OffsetSpec;
use crate::hot::background::{Task, Update, WantedPartition};

impl Consumer {
    pub(super) fn take_update(&mut self, update: Update) {
        match update {
            Update::Offsets(which, offsets) => self.found_offsets(which, &offsets),
            Update::Assigned(positions, taken_over) => {
                self.assign(&positions);
                // The membership thread may have stopped waiting.
                let _ = taken_over.send(());
            }
            Update::Connected(..) | Update::Metadata(_) | Update::ProducerId(_) | Update::Rate(_) => {}
        }
    }

    /// Replaces the assignment: keeps partitions that stay, parks the record tracks of removed ones, adds new ones at
    /// their offset, and begins every fetch session anew.
    pub(super) fn assign(&mut self, positions: &BTreeMap<usize, i64>) {
        let mut parked = self.client.shared.parked();
        let (kept, gone) = std::mem::take(&mut self.partitions)
            .into_iter()
            .partition(|partition: &Partition| positions.contains_key(&partition.id));
        self.partitions = kept;
        for partition in gone {
            parked.insert(partition.id, partition.track);
        }
        self.where_is.fill(None);
        for (at, partition) in self.partitions.iter().enumerate() {
            self.where_is[partition.id] = Some(at);
        }
        for (&id, &position) in positions {
            if self.where_is[id].is_some() {
                continue;
            }
            let found = &self.client.shared.partitions[id];
            let mut partition = Partition::new(id, found.topic, found.index);
            partition.position = Some(position);
            partition.track = parked.remove(&id).unwrap_or_default();
            self.where_is[id] = Some(self.partitions.len());
            self.partitions.push(partition);
        }
        drop(parked);
        for broker in &mut self.client.brokers {
            broker.exchange.must_begin = true;
        }
        self.follow_leaders();
    }

    /// Applies the leaders in the current metadata. Fetch sessions of brokers that gained or lost a partition begin
    /// anew.
    pub(super) fn follow_leaders(&mut self) {
        let changes = self.client.take_over(&self.metadata, &mut self.partitions);
        for broker in changes.into_iter().flat_map(|(before, after)| [before, after]).flatten() {
            self.client.brokers[broker].exchange.must_begin = true;
        }
    }

    fn found_offsets(&mut self, which: OffsetSpec, offsets: &BTreeMap<usize, i64>) {
        self.is_asking_offsets = false;
        for (id, &offset) in offsets {
            let Some(at) = self.where_is[*id] else { continue };
            let partition = &mut self.partitions[at];
            match which {
                OffsetSpec::Latest => partition.end = Some(offset),
                OffsetSpec::Earliest => {
                    partition.go_on_at(offset);
                    if let Some(leader) = partition.leader {
                        self.client.brokers[leader].exchange.must_begin = true;
                    }
                }
            }
        }
    }

    /// Requests earliest offsets for partitions without a position or, once all writing has ended, end offsets for
    /// those without one. One request at a time, at most one per first backoff interval.
    pub(super) fn ask_offsets(&mut self, now: u64) {
        if self.is_asking_offsets || self.offsets_at > now {
            return;
        }
        let which = if self.partitions.iter().any(|partition| partition.position.is_none()) {
            OffsetSpec::Earliest
        } else if self.over_since.is_some() {
            OffsetSpec::Latest
        } else {
            return;
        };
        let mut wanted: BTreeMap<usize, Vec<WantedPartition>> = BTreeMap::new();
        for partition in &self.partitions {
            let is_wanted = match which {
                OffsetSpec::Earliest => partition.position.is_none(),
                OffsetSpec::Latest => partition.end.is_none(),
            };
            if let (true, Some(leader)) = (is_wanted, partition.leader) {
                let topic = self.client.shared.topics[partition.topic].clone();
                wanted.entry(leader).or_default().push((partition.id, topic, partition.index));
            }
        }
        if wanted.is_empty() {
            return;
        }
        self.is_asking_offsets = true;
        self.offsets_at = now + BACKOFF.first_nanoseconds;
        let wanted =
            wanted.into_iter().map(|(leader, list)| (self.client.brokers[leader].address.clone(), list)).collect();
        self.client.tasks.start(Task::Offsets(which, wanted));
    }
}
