//! Where notes lie: in the metadata of a committed offset, of a group without members. Brokers keep it as they
//! keep any offset, hand it out as soon as it is acknowledged and not before it was sent, and no topic is touched.

use kafka_protocol::messages::offset_commit_request::{OffsetCommitRequestPartition, OffsetCommitRequestTopic};
use kafka_protocol::messages::offset_fetch_request::OffsetFetchRequestTopic;
use kafka_protocol::messages::{DeleteGroupsRequest, GroupId, OffsetCommitRequest, OffsetFetchRequest, TopicName};
use kafka_protocol::protocol::StrBytes;

use super::note::ClockNote;
use crate::admin;
use crate::error::{Error, Result};
use crate::session::{Address, Dialer, Session, refuse};

/// Of a commit that no member of a group makes.
const NO_GENERATION: i32 = -1;

/// The mailbox of one producing process.
pub(crate) struct Mailbox {
    group: String,
    topic: String,
    partition: i32,
    session: Session,
}

impl Mailbox {
    /// Opens that of the process whose records carry `incarnation`. `topic` and `partition` exist.
    ///
    /// # Errors
    /// What the session said.
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

    /// Leaves a note; returns once it is acknowledged.
    ///
    /// # Errors
    /// What the session said.
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

    /// The newest note; None when there is none yet.
    ///
    /// # Errors
    /// What the session said.
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
        // What is there and is no note is not of this version of the program.
        Ok(found.metadata.as_ref().and_then(|text| serde_json::from_str(text.as_str()).ok()))
    }

    /// Deletes the group, once the note is not needed any more.
    pub(crate) fn remove(&mut self) {
        let request = DeleteGroupsRequest::default().with_groups_names(vec![self.group_id()]);
        // Brokers forget it by themselves when it is not used for some days.
        let _ = self.session.call("removing a note of the time", &request, 1);
    }
}
