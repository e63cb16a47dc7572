//! Consumer group membership: one thread beside each consumer joins the group and passes on its partition assignment.
//!
//! Classic protocol, eager rebalancing: at each rebalance every member gives up all its partitions, so that no two
//! members read the same partition.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use kafka_protocol::messages::consumer_protocol_assignment::TopicPartition;
use kafka_protocol::messages::join_group_request::JoinGroupRequestProtocol;
use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::sync_group_request::SyncGroupRequestAssignment;
use kafka_protocol::messages::{
    ConsumerProtocolAssignment, ConsumerProtocolSubscription, GroupId, HeartbeatRequest, JoinGroupRequest,
    JoinGroupResponse, LeaveGroupRequest, OffsetCommitRequest, OffsetFetchRequest, SyncGroupRequest, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};
use serde_json::json;

use crate::admin;
use crate::error::{Error, Result, code, describe};
use crate::hot::background::{BackgroundTasks, Update};
use crate::hot::events::EventReporter;
use crate::session::{Address, Dialer, Session, refuse};
use crate::shared::Shared;
use crate::wire::shapes::check_assignment;

const PROTOCOL: &str = "roundrobin";
const HEARTBEATS_APART: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);
/// Session timeout: the coordinator removes a member that sends no heartbeat for this long.
const SESSION_MILLISECONDS: i32 = 10_000;
/// Rebalance timeout: the coordinator removes a member that does not rejoin within this; below the request timeout.
const REBALANCE_MILLISECONDS: i32 = 6_000;

/// Offsets by partition id.
type Positions = BTreeMap<usize, i64>;

/// Group membership of one consumer: joins, sends heartbeats, assigns partitions, commits offsets.
pub(crate) struct Membership {
    /// Group id.
    pub(crate) group: String,
    /// Dialer for broker connections.
    pub(crate) dialer: Arc<Dialer>,
    /// Bootstrap servers.
    pub(crate) bootstrap: Arc<Vec<Address>>,
    /// State shared by all threads of the run.
    pub(crate) shared: Arc<Shared>,
    /// Channel to the consumer, for its assignments.
    pub(crate) consumer: BackgroundTasks,
    /// Start offsets of partitions that neither this process has read nor the group has committed an offset for.
    pub(crate) initial: Positions,
    /// Reporter of group events.
    pub(crate) events: EventReporter,
    /// Set once nothing is left to read; the member then leaves the group.
    pub(crate) ended: Arc<AtomicBool>,
}

/// Membership in a consumer group: member id and generation.
#[derive(Default)]
struct Member {
    id: StrBytes,
    generation: i32,
}

fn text(text: &str) -> StrBytes {
    StrBytes::from_string(text.to_owned())
}

impl Membership {
    /// Stays in the group until `ended` is set, then leaves it. Blocks. Errors are reported and joining is retried.
    pub(crate) fn run(mut self) {
        let mut member = Member::default();
        while !self.ended.load(Ordering::Acquire) {
            if let Err(error) = self.take_part(&mut member) {
                self.events.report_recurring("group_disturbed", "", json!({"error": error.to_string()}));
                std::thread::sleep(LOOK);
            }
        }
    }

    fn group_id(&self) -> GroupId {
        GroupId(text(&self.group))
    }

    /// Takes part in one generation: joins, assigns partitions, sends heartbeats until a rebalance or the end, then
    /// revokes all partitions and commits their offsets.
    fn take_part(&mut self, member: &mut Member) -> Result<()> {
        let mut session = self.coordinator()?;
        let joined = match self.join(&mut session, member) {
            Ok(joined) => joined,
            Err(error) => {
                // The coordinator may no longer know this member id: join as a new member.
                member.id = StrBytes::default();
                return Err(error);
            }
        };
        let partition_ids = self.sync(&mut session, member, &joined)?;
        let positions = self.positions(&mut session, &partition_ids)?;
        self.events.report("group_assigned", json!({"generation": member.generation, "partitions": positions.len()}));
        self.assign(positions);
        let stayed = self.stay(&mut session, member);
        self.assign(Positions::new());
        let committed = self.commit(&mut session, member, &partition_ids);
        if self.ended.load(Ordering::Acquire) {
            let leave = LeaveGroupRequest::default().with_group_id(self.group_id()).with_member_id(member.id.clone());
            // If this fails, the session timeout removes the member.
            let _ = session.call("leaving a group", &leave, 2);
        }
        stayed.and(committed)
    }

    fn coordinator(&self) -> Result<Session> {
        let address = admin::coordinator(&mut self.dialer.open_any(self.bootstrap.iter())?, &self.group)?;
        self.dialer.open(&address)
    }

    fn join(&self, session: &mut Session, member: &mut Member) -> Result<JoinGroupResponse> {
        let topics = self.shared.topics.iter().map(|topic| text(topic)).collect();
        let subscription = versioned(&ConsumerProtocolSubscription::default().with_topics(topics))?;
        let doing = "joining a group";
        loop {
            let protocol = JoinGroupRequestProtocol::default()
                .with_name(StrBytes::from_static_str(PROTOCOL))
                .with_metadata(subscription.clone());
            let request = JoinGroupRequest::default()
                .with_group_id(self.group_id())
                .with_session_timeout_ms(SESSION_MILLISECONDS)
                .with_rebalance_timeout_ms(REBALANCE_MILLISECONDS)
                .with_member_id(member.id.clone())
                .with_protocol_type(StrBytes::from_static_str("consumer"))
                .with_protocols(vec![protocol]);
            let answer = session.call(doing, &request, 5)?;
            if answer.error_code == code::MEMBER_ID_REQUIRED {
                member.id = answer.member_id;
                continue;
            }
            refuse(doing, answer.error_code, None)?;
            member.id = answer.member_id.clone();
            member.generation = answer.generation_id;
            return Ok(answer);
        }
    }

    /// Syncs with the group and returns the ids of the assigned partitions; as leader it first assigns partitions to
    /// all members, round-robin.
    fn sync(&self, session: &mut Session, member: &Member, joined: &JoinGroupResponse) -> Result<Vec<usize>> {
        let doing = "taking part in a group";
        let is_leader = joined.leader == joined.member_id;
        let assignments = if is_leader { self.deal_out(joined)? } else { Vec::new() };
        let request = SyncGroupRequest::default()
            .with_group_id(self.group_id())
            .with_generation_id(member.generation)
            .with_member_id(member.id.clone())
            .with_assignments(assignments);
        let answer = session.call(doing, &request, 3)?;
        refuse(doing, answer.error_code, None)?;
        if answer.assignment.len() < 2 {
            return Ok(Vec::new());
        }
        let ours = read_assignment(answer.assignment)?;
        let is_ours = |topic: &str, index: i32| {
            let mut named = ours.assigned_partitions.iter().filter(|found| found.topic.as_str() == topic);
            named.any(|found| found.partitions.contains(&index))
        };
        let partitions = self.shared.partitions.iter().enumerate();
        let ours = partitions.filter(|(_, found)| is_ours(&self.shared.topics[found.topic], found.index));
        Ok(ours.map(|(id, _)| id).collect())
    }

    fn deal_out(&self, joined: &JoinGroupResponse) -> Result<Vec<SyncGroupRequestAssignment>> {
        let count = joined.members.len().max(1);
        let of_member =
            |(number, member): (usize, &kafka_protocol::messages::join_group_response::JoinGroupResponseMember)| {
                let mut by_topic: BTreeMap<usize, Vec<i32>> = BTreeMap::new();
                for found in self.shared.partitions.iter().skip(number).step_by(count) {
                    by_topic.entry(found.topic).or_default().push(found.index);
                }
                let partitions = by_topic.into_iter().map(|(topic, indexes)| {
                    TopicPartition::default()
                        .with_topic(TopicName(text(&self.shared.topics[topic])))
                        .with_partitions(indexes)
                });
                let assignment = ConsumerProtocolAssignment::default().with_assigned_partitions(partitions.collect());
                Ok(SyncGroupRequestAssignment::default()
                    .with_member_id(member.member_id.clone())
                    .with_assignment(versioned(&assignment)?))
            };
        joined.members.iter().enumerate().map(of_member).collect()
    }

    /// Start offsets of the assigned partitions: this process's position, else the committed offset, else the
    /// configured start. Partitions with none of these are left out.
    fn positions(&self, session: &mut Session, partition_ids: &[usize]) -> Result<Positions> {
        let doing = "asking where the group is";
        let topics = self.by_topic(partition_ids).into_iter().map(|(topic, list)| {
            OffsetFetchRequestTopic::default()
                .with_name(TopicName(text(&self.shared.topics[topic])))
                .with_partition_indexes(list.iter().map(|(index, _)| *index).collect())
        });
        let request = OffsetFetchRequest::default().with_group_id(self.group_id()).with_topics(Some(topics.collect()));
        let answer = session.call(doing, &request, 5)?;
        refuse(doing, answer.error_code, None)?;
        let mut committed = BTreeMap::new();
        for topic in &answer.topics {
            for partition in &topic.partitions {
                committed.insert((topic.name.as_str(), partition.partition_index), partition.committed_offset);
            }
        }
        let position = |&id: &usize| {
            let found = &self.shared.partitions[id];
            let ours = self.shared.positions[id].load(Ordering::Acquire);
            let groups = committed.get(&(self.shared.topics[found.topic].as_str(), found.index)).copied().unwrap_or(-1);
            let offset = [ours, groups].into_iter().find(|offset| *offset >= 0);
            Some((id, offset.or_else(|| self.initial.get(&id).copied())?))
        };
        Ok(partition_ids.iter().filter_map(position).collect())
    }

    fn by_topic(&self, partition_ids: &[usize]) -> BTreeMap<usize, Vec<(i32, usize)>> {
        let mut by_topic: BTreeMap<usize, Vec<(i32, usize)>> = BTreeMap::new();
        for &id in partition_ids {
            let found = &self.shared.partitions[id];
            by_topic.entry(found.topic).or_default().push((found.index, id));
        }
        by_topic
    }

    /// Sends the consumer its assignment and waits up to 5 s until it has taken it over.
    fn assign(&self, positions: Positions) {
        let (sender, receiver) = channel();
        self.consumer.send(Update::Assigned(positions, sender));
        // A consumer that has ended does not reply.
        let _ = receiver.recv_timeout(Duration::from_secs(5));
    }

    /// Sends a heartbeat each second until the group rebalances or `ended` is set. Fails with the broker's or the
    /// connection's error; a broker error also drops the member id.
    fn stay(&self, session: &mut Session, member: &mut Member) -> Result<()> {
        let doing = "staying in a group";
        loop {
            let mut waited = Duration::ZERO;
            while waited < HEARTBEATS_APART {
                if self.ended.load(Ordering::Acquire) {
                    return Ok(());
                }
                std::thread::sleep(LOOK);
                waited += LOOK;
            }
            let request = HeartbeatRequest::default()
                .with_group_id(self.group_id())
                .with_generation_id(member.generation)
                .with_member_id(member.id.clone());
            let answer = session.call(doing, &request, 3)?;
            match answer.error_code {
                code::NONE => {}
                code::REBALANCE_IN_PROGRESS => return Ok(()),
                other => {
                    member.id = StrBytes::default();
                    return refuse(doing, other, Some(describe(other).0));
                }
            }
        }
    }

    fn commit(&self, session: &mut Session, member: &Member, partition_ids: &[usize]) -> Result<()> {
        let topics = self.by_topic(partition_ids).into_iter().map(|(topic, list)| {
            let partitions = list.iter().filter_map(|&(index, id)| {
                let offset = self.shared.positions[id].load(Ordering::Acquire);
                let partition = OffsetCommitRequestPartition::default();
                (offset >= 0).then(|| partition.with_partition_index(index).with_committed_offset(offset))
            });
            OffsetCommitRequestTopic::default()
                .with_name(TopicName(text(&self.shared.topics[topic])))
                .with_partitions(partitions.collect())
        });
        let request = OffsetCommitRequest::default()
            .with_group_id(self.group_id())
            .with_generation_id_or_member_epoch(member.generation)
            .with_member_id(member.id.clone())
            .with_topics(topics.collect());
        session.call("committing offsets", &request, 5).map(|_| ())
    }
}

/// Encodes a message of the consumer protocol (subscription or assignment), preceded by its version, 0.
fn versioned<M: Encodable>(message: &M) -> Result<Bytes> {
    let mut bytes = BytesMut::new();
    bytes.extend_from_slice(&[0; 2]);
    message.encode(&mut bytes, 0).map_err(|_| Error::Protocol("group"))?;
    Ok(bytes.freeze())
}

/// Decodes an assignment made by the group leader, skipping the version before it.
///
/// # Errors
/// `Error::Protocol` when the bytes are not an assignment.
pub(crate) fn read_assignment(mut assignment: Bytes) -> Result<ConsumerProtocolAssignment> {
    const READING: &str = "reading an assignment";
    if assignment.len() < 2 {
        return Err(Error::Protocol(READING));
    }
    let _version = assignment.split_to(2);
    check_assignment(&assignment).map_err(|_| Error::Protocol(READING))?;
    ConsumerProtocolAssignment::decode(&mut assignment, 0).map_err(|_| Error::Protocol(READING))
}
