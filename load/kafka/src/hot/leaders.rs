//! Partition leaders of a hot thread, updated from metadata.

use crate::admin::Metadata;
use crate::session::Address;

use super::broker::{Broker, Exchange};

/// Partition whose leader is updated from metadata.
pub(crate) trait HasLeader {
    /// Topic index, and partition number within the topic.
    fn topic_partition(&self) -> (usize, i32);

    /// Index of the leader among the client's brokers; None while there is none.
    fn leader(&self) -> Option<usize>;

    /// Sets a new leader, or none.
    fn set_leader(&mut self, leader: Option<usize>);
}

/// Leader change of a partition: broker indexes before and after, None for no leader.
pub(crate) type LeaderChange = (Option<usize>, Option<usize>);

/// Applies metadata to brokers and partitions, and returns the leader changes. Brokers keep their indexes; new ones are
/// appended.
pub(crate) fn take_over<E: Exchange>(
    metadata: &Metadata,
    brokers: &mut Vec<Broker<E>>,
    partitions: &mut [impl HasLeader],
) -> Vec<LeaderChange> {
    for (&id, address) in &metadata.brokers {
        match brokers.iter_mut().find(|broker| broker.id == id) {
            Some(broker) => broker.address = address.clone(),
            None => brokers.push(Broker::new(id, address.clone())),
        }
    }
    let mut changes = Vec::new();
    for partition in partitions {
        let (topic, index) = partition.topic_partition();
        let found = metadata.topics.get(topic).and_then(|topic| topic.partitions.get(&index));
        let leader = found.and_then(|(id, _)| brokers.iter().position(|broker| broker.id == *id));
        if leader != partition.leader() {
            changes.push((partition.leader(), leader));
            partition.set_leader(leader);
        }
    }
    changes
}

/// The number of partitions without a leader.
pub(crate) fn leaderless(partitions: &[impl HasLeader]) -> usize {
    partitions.iter().filter(|partition| partition.leader().is_none()).count()
}

/// Addresses of the brokers that are connected now.
pub(crate) fn known_addresses<E: Exchange>(brokers: &[Broker<E>]) -> Vec<Address> {
    brokers.iter().filter(|broker| broker.is_up()).map(|broker| broker.address.clone()).collect()
}
