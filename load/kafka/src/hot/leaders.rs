//! Which broker leads each partition of a hot thread.

use crate::admin::Metadata;
use crate::session::Address;

use super::broker::{Broker, Exchange};

/// A partition whose leader a hot thread follows.
pub(crate) trait HasLeader {
    /// Its topic, by index, and its number in the topic.
    fn topic_partition(&self) -> (usize, i32);

    /// Its leader, by index among the thread's brokers; None while it has none.
    fn leader(&self) -> Option<usize>;

    /// Another broker leads it now, or none.
    fn set_leader(&mut self, leader: Option<usize>);
}

/// A partition's leader before and after metadata was taken over, by index among the brokers.
pub(crate) type LeaderChange = (Option<usize>, Option<usize>);

/// Takes over who leads what. Brokers keep their indexes; new ones are appended.
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

/// Where brokers listen that are connected now: they can be asked.
pub(crate) fn known_addresses<E: Exchange>(brokers: &[Broker<E>]) -> Vec<Address> {
    brokers.iter().filter(|broker| broker.is_up()).map(|broker| broker.address.clone()).collect()
}
