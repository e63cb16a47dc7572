//! Storage of clock notes: the metadata of a committed offset of a consumer group without members. Brokers keep it like
//! any offset and return it once it is acknowledged, never before it was sent; no topic is written to.

use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{DeleteGroupsRequest, GroupId, OffsetCommitRequest, OffsetFetchRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::note::ClockNote;
use crate::admin;
use crate::error::{Error, Result};
use crate::session::{Address, Dialer, Session, refuse};

/// Generation of an offset commit outside of any group membership.
const NO_GENERATION: i32 = -1;

/// Storage of one producing process's clock notes: a consumer group's committed offset, at its coordinator.
pub(crate) struct Mailbox {
    group: String,
    topic: String,
    partition: i32,
    session: Session,
}

impl Mailbox {
    /// Connects to the coordinator of the notes of the process whose records carry `incarnation`. `topic` and
    /// `partition` must exist.
    ///
    /// # Errors
    /// Connection, protocol or broker error.
    pub(crate) fn open(
        dialer: &Dialer,
        bootstrap: &[Address],
        incarnation: u32,
        topic: &str,
        partition: i32,
    ) -> Result<Self> {
        let group = format!("cliffwatch-clock-{incarnation:06x}");
        let address = admin::coordinator(&mut dialer.open_any(bootstrap.iter())?, &group)?;
        Ok(Self { group, topic: topic.to_owned(), partition, session: dialer.open(&address)? })
    }

    fn group_id(&self) -> GroupId {
        GroupId(StrBytes::from_string(self.group.clone()))
    }

    fn topic_name(&self) -> TopicName {
        TopicName(StrBytes::from_string(self.topic.clone()))
    }

    /// Commits a note, replacing the last one. Blocks until it is acknowledged.
    ///
    /// # Errors
    /// Connection, protocol or broker error.
    pub(crate) fn leave(&mut self, note: &ClockNote) -> Result<()> {
        let doing = "leaving a note of the time";
        let text = serde_json::to_string(note).map_err(|_| Error::Protocol(doing))?;
        let partition = OffsetCommitRequestPartition::default()
            .with_partition_index(self.partition)
            .with_committed_offset(note.number.cast_signed())
            .with_committed_metadata(Some(StrBytes::from_string(text)));
        let topic = OffsetCommitRequestTopic::default().with_name(self.topic_name()).with_partitions(vec![partition]);
        let request = OffsetCommitRequest::default()
            .with_group_id(self.group_id())
            .with_generation_id_or_member_epoch(NO_GENERATION)
            .with_topics(vec![topic]);
        let answer = self.session.call(doing, &request, 5)?;
        let partitions = answer.topics.iter().flat_map(|topic| &topic.partitions);
        let code = partitions.map(|partition| partition.error_code).find(|code| *code != 0);
        refuse(doing, code.unwrap_or(0), None)
    }

    /// Fetches the newest note; None when there is none or it cannot be parsed. Blocks.
    ///
    /// # Errors
    /// Connection, protocol or broker error.
    pub(crate) fn look(&mut self) -> Result<Option<ClockNote>> {
        let doing = "looking for a note of the time";
        let topic = OffsetFetchRequestTopic::default()
            .with_name(self.topic_name())
            .with_partition_indexes(vec![self.partition]);
        let request = OffsetFetchRequest::default().with_group_id(self.group_id()).with_topics(Some(vec![topic]));
        let answer = self.session.call(doing, &request, 5)?;
        refuse(doing, answer.error_code, None)?;
        let found = answer.topics.iter().flat_map(|topic| &topic.partitions).next();
        let Some(found) = found else { return Ok(None) };
        refuse(doing, found.error_code, None)?;
        // Metadata that is not a note was written by another version of the program.
        Ok(found.metadata.as_ref().and_then(|text| serde_json::from_str(text.as_str()).ok()))
    }

    /// Deletes the group with its note; errors are ignored.
    pub(crate) fn remove(&mut self) {
        let request = DeleteGroupsRequest::default().with_groups_names(vec![self.group_id()]);
        // Otherwise brokers expire it by offset retention, after some days.
        let _ = self.session.call("removing a note of the time", &request, 1);
    }
}
