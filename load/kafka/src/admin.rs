//! Admin requests outside the hot path: metadata, topics, configs, offsets, producer ids, group coordinators.

use std::collections::BTreeMap;

use kafka_protocol::messages::create_topics_request::{CreatableTopic, CreatableTopicConfig};
use kafka_protocol::messages::delete_topics_request::DeleteTopicState;
use kafka_protocol::messages::describe_configs_request::DescribeConfigsResource;
use kafka_protocol::messages::list_offsets_request::{ListOffsetsPartition, ListOffsetsTopic};
use kafka_protocol::messages::metadata_request::MetadataRequestTopic;
use kafka_protocol::messages::{
    CreateTopicsRequest, DeleteTopicsRequest, DescribeConfigsRequest, FindCoordinatorRequest, InitProducerIdRequest,
    ListOffsetsRequest, MetadataRequest, MetadataResponse, TopicName,
};
use kafka_protocol::protocol::StrBytes;

use crate::config::Topics;
use crate::error::{Error, Result, code};
use crate::session::{Address, Session, refuse};

/// Cluster metadata: brokers, the controller, and the leaders of the topics' partitions.
#[derive(Debug, Clone, Default)]
pub(crate) struct Metadata {
    /// Broker addresses by broker id.
    pub(crate) brokers: BTreeMap<i32, Address>,
    /// Broker id of the controller, where topics are created.
    pub(crate) controller: i32,
    /// The requested topics, in the order of the request; a missing one has `UNKNOWN_TOPIC_OR_PARTITION`.
    pub(crate) topics: Vec<Topic>,
}

/// Metadata of one topic, as the broker reports it.
#[derive(Debug, Clone)]
pub(crate) struct Topic {
    /// Topic name.
    pub(crate) name: String,
    /// Kafka error code of the topic; 0 for none.
    pub(crate) error: i16,
    /// Leader (broker id, -1 for none) and number of replicas of each partition, by partition index.
    pub(crate) partitions: BTreeMap<i32, (i32, usize)>,
}

fn topic_name(name: &str) -> TopicName {
    TopicName(StrBytes::from_string(name.to_owned()))
}

/// Finds the coordinator of a consumer group (`FindCoordinator`).
///
/// # Errors
/// `Error::Broker` while the group has no coordinator; `Error::Protocol` for an invalid port; otherwise as
/// [`Session::call`].
pub(crate) fn coordinator(session: &mut Session, group: &str) -> Result<Address> {
    let doing = "looking for the group's coordinator";
    let key = StrBytes::from_string(group.to_owned());
    let request = FindCoordinatorRequest::default().with_key(key).with_key_type(0);
    let answer = session.call(doing, &request, 3)?;
    refuse(doing, answer.error_code, answer.error_message.as_deref())?;
    let port = u16::try_from(answer.port).map_err(|_| Error::Protocol(doing))?;
    Ok(Address { host: answer.host.as_str().to_owned(), port })
}

/// Requests metadata of `topics`; never creates them.
///
/// # Errors
/// As [`Session::call`]. The error of a single topic is in `Topic::error`.
pub(crate) fn metadata(session: &mut Session, topics: &[String]) -> Result<Metadata> {
    let wanted = topics.iter().map(|name| MetadataRequestTopic::default().with_name(Some(topic_name(name)))).collect();
    let request = MetadataRequest::default().with_topics(Some(wanted)).with_allow_auto_topic_creation(false);
    let answer = session.call("asking for metadata", &request, 9)?;
    Ok(read_metadata(&answer, topics))
}

/// Extracts the brokers, the controller and `topics` from a Metadata response.
pub(crate) fn read_metadata(answer: &MetadataResponse, topics: &[String]) -> Metadata {
    let brokers = answer
        .brokers
        .iter()
        .filter_map(|broker| {
            let port = u16::try_from(broker.port).ok()?;
            Some((broker.node_id.0, Address { host: broker.host.as_str().to_owned(), port }))
        })
        .collect();
    let mut found: BTreeMap<String, Topic> = answer
        .topics
        .iter()
        .filter_map(|topic| {
            let name = topic.name.as_ref()?.as_str().to_owned();
            let partitions = topic
                .partitions
                .iter()
                .map(|partition| (partition.partition_index, (partition.leader_id.0, partition.replica_nodes.len())))
                .collect();
            Some((name.clone(), Topic { name, error: topic.error_code, partitions }))
        })
        .collect();
    let missing = |name: &String| Topic {
        name: name.clone(),
        error: code::UNKNOWN_TOPIC_OR_PARTITION,
        partitions: BTreeMap::new(),
    };
    let topics = topics.iter().map(|name| found.remove(name).unwrap_or_else(|| missing(name))).collect();
    Metadata { brokers, controller: answer.controller_id.0, topics }
}

/// Creates a topic with the partitions, replication factor and settings of `shape`; `only_validate` has the broker
/// validate the request without creating it. False when the topic exists already.
///
/// # Errors
/// `Error::Broker` with the broker's error code and message; otherwise as [`Session::call`].
pub(crate) fn create_topic(session: &mut Session, name: &str, shape: &Topics, only_validate: bool) -> Result<bool> {
    let configs = shape
        .settings
        .iter()
        .map(|(name, value)| {
            CreatableTopicConfig::default()
                .with_name(StrBytes::from_string(name.clone()))
                .with_value(Some(StrBytes::from_string(value.clone())))
        })
        .collect();
    let topic = CreatableTopic::default()
        .with_name(topic_name(name))
        .with_num_partitions(shape.partitions.cast_signed())
        .with_replication_factor(shape.replication_factor.unwrap_or(-1))
        .with_configs(configs);
    let request = CreateTopicsRequest::default()
        .with_topics(vec![topic])
        .with_timeout_ms(30_000)
        .with_validate_only(only_validate);
    let answer = session.call("creating a topic", &request, 4)?;
    let doing = format!("creating topic {name}");
    for topic in &answer.topics {
        if topic.error_code == code::TOPIC_ALREADY_EXISTS {
            return Ok(false);
        }
        refuse(&doing, topic.error_code, topic.error_message.as_deref())?;
    }
    Ok(true)
}

/// Deletes topics; ignores those that do not exist.
///
/// # Errors
/// `Error::Broker` with the broker's error code and message; otherwise as [`Session::call`].
pub(crate) fn delete_topics(session: &mut Session, names: &[String]) -> Result<()> {
    let names_only = names.iter().map(|name| topic_name(name)).collect();
    let states = names.iter().map(|name| DeleteTopicState::default().with_name(Some(topic_name(name)))).collect();
    let request = DeleteTopicsRequest::default().with_timeout_ms(30_000);
    // Up to version 5 the request lists names, from version 6 on topic states; only one of the two may be set.
    let request = match session.version(20, (1, 6)) {
        Some(6) => request.with_topics(states),
        _ => request.with_topic_names(names_only),
    };
    let answer = session.call("deleting topics", &request, 6)?;
    for topic in &answer.responses {
        if topic.error_code != code::UNKNOWN_TOPIC_OR_PARTITION {
            refuse("deleting topics", topic.error_code, topic.error_message.as_deref())?;
        }
    }
    Ok(())
}

/// Effective settings of a topic, defaults included (`DescribeConfigs`).
///
/// # Errors
/// `Error::Broker` with the broker's error code and message; otherwise as [`Session::call`].
pub(crate) fn topic_settings(session: &mut Session, name: &str) -> Result<BTreeMap<String, String>> {
    const TOPIC: i8 = 2;
    let resource = DescribeConfigsResource::default()
        .with_resource_type(TOPIC)
        .with_resource_name(StrBytes::from_string(name.to_owned()))
        .with_configuration_keys(None);
    let request = DescribeConfigsRequest::default().with_resources(vec![resource]);
    let answer = session.call("asking for settings", &request, 3)?;
    let mut settings = BTreeMap::new();
    for result in &answer.results {
        refuse(
            &format!("asking for the settings of topic {name}"),
            result.error_code,
            result.error_message.as_deref(),
        )?;
        for config in &result.configs {
            if let Some(value) = &config.value {
                settings.insert(config.name.as_str().to_owned(), value.as_str().to_owned());
            }
        }
    }
    Ok(settings)
}

/// Offset that a `ListOffsets` request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OffsetSpec {
    /// Log start offset: that of the first retained record.
    Earliest,
    /// Offset after the last record that consumers can read.
    Latest,
}

/// Offsets of a topic's partitions as (partition index, error code, offset), from the broker that leads them
/// (`ListOffsets`).
///
/// # Errors
/// As [`Session::call`]. Errors of single partitions are in the result.
pub(crate) fn offsets(
    session: &mut Session,
    topic: &str,
    partitions: &[i32],
    which: OffsetSpec,
) -> Result<Vec<(i32, i16, i64)>> {
    let timestamp = match which {
        OffsetSpec::Earliest => -2,
        OffsetSpec::Latest => -1,
    };
    let partitions = partitions
        .iter()
        .map(|&index| {
            ListOffsetsPartition::default()
                .with_partition_index(index)
                .with_current_leader_epoch(-1)
                .with_timestamp(timestamp)
        })
        .collect();
    let topic = ListOffsetsTopic::default().with_name(topic_name(topic)).with_partitions(partitions);
    let request = ListOffsetsRequest::default().with_replica_id((-1).into()).with_topics(vec![topic]);
    let answer = session.call("asking for offsets", &request, 5)?;
    Ok(answer
        .topics
        .iter()
        .flat_map(|topic| &topic.partitions)
        .map(|partition| (partition.partition_index, partition.error_code, partition.offset))
        .collect())
}

/// Requests a new producer id with its epoch (`InitProducerId`, not transactional).
///
/// # Errors
/// `Error::Broker` with the broker's error code; otherwise as [`Session::call`].
pub(crate) fn producer_id(session: &mut Session) -> Result<(i64, i16)> {
    let request = InitProducerIdRequest::default()
        .with_transactional_id(None)
        .with_transaction_timeout_ms(60_000)
        .with_producer_id((-1).into())
        .with_producer_epoch(-1);
    let answer = session.call("asking for a producer id", &request, 4)?;
    refuse("asking for a producer id", answer.error_code, None)?;
    Ok((answer.producer_id.0, answer.producer_epoch))
}
