//! Simulated cluster with one log per partition and Kafka's idempotence: sequence order per producer id, and
//! deduplication of its last five batches.

use std::collections::{BTreeMap, VecDeque};

use bytes::{Buf, Bytes, BytesMut};
use cliffwatch_measure::record;
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    FetchRequest, FetchResponse, ProduceRequest, ProduceResponse, RequestHeader, TopicName,
};
use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

use super::random::Random;
use crate::batch::read::{ReceivedBatch, ReceivedRecord};
use crate::error::{code, describe};
use crate::wire::{fetch, produce};

const NOT_LEADER: i16 = 6;
const REQUEST_TIMED_OUT: i16 = 7;
const NOT_ENOUGH_REPLICAS_AFTER_APPEND: i16 = 20;
const FETCH_SESSION_ID_NOT_FOUND: i16 = 70;
const INVALID_FETCH_SESSION_EPOCH: i16 = 71;
/// Batches remembered per producer id for deduplication, as in Kafka.
const REMEMBERED: usize = 5;
const PRODUCER_ID_AT: usize = 43;
const SEQUENCE_AT: usize = 53;
const COUNT_AT: usize = 57;

/// Batch stored in the log.
struct Stored {
    offset: i64,
    count: i64,
    bytes: Bytes,
}

/// Remembered batch of a producer id: first sequence, last sequence, base offset.
type Remembered = (i32, i32, i64);

/// Log of a simulated partition.
pub(super) struct PartitionLog {
    /// Index of its topic.
    pub(super) topic: usize,
    /// Partition number within the topic.
    pub(super) index: i32,
    /// Broker id of its leader; None while it has none.
    pub(super) leader: Option<i32>,
    /// Log end offset.
    pub(super) end: i64,
    stored: Vec<Stored>,
    producers: BTreeMap<i64, VecDeque<Remembered>>,
    /// Offset after the last record served to a consumer.
    served: i64,
}

/// Simulated brokers and partitions.
pub(super) struct Cluster {
    /// Topic names, by topic index.
    pub(super) topics: Vec<String>,
    /// Partition logs, by partition id.
    pub(super) partitions: Vec<PartitionLog>,
    /// Whether an unknown producer id has to begin at sequence 0, as before Kafka 2.5; later versions accept any.
    pub(super) is_strict: bool,
    /// Per mille of batches that are rejected although valid, of batches that are appended but answered with an error,
    /// and of produce responses that throttle.
    pub(super) refusals: u64,
    /// Whether the brokers support fetch sessions.
    pub(super) keeps_sessions: bool,
    /// Whether each produced batch is printed on standard error.
    pub(super) is_told: bool,
}

/// Fetch session of a connection: id, epoch, and fetch offset by topic and partition.
#[derive(Default)]
pub(super) struct Sessions {
    id: i32,
    epoch: i32,
    positions: BTreeMap<(String, i32), i64>,
}

impl Cluster {
    fn find(&mut self, topic: &str, index: i32) -> Option<&mut PartitionLog> {
        let topics = &self.topics;
        self.partitions.iter_mut().find(|log| log.index == index && topics[log.topic] == topic)
    }

    /// Handles a produce request and returns the response, including its length field.
    pub(super) fn produce(&mut self, broker: i32, request: &[u8], random: &mut Random) -> Vec<u8> {
        let mut rest = Bytes::copy_from_slice(request);
        let header = RequestHeader::decode(&mut rest, 1).unwrap();
        assert_eq!(header.request_api_key, produce::API);
        let version = header.request_api_version;
        let request = ProduceRequest::decode(&mut rest, version).unwrap();
        let throttle = if random.per_mille(self.refusals) { 30 } else { 0 };
        let topics = request.topic_data.into_iter().map(|topic| {
            let outcomes = topic.partition_data.into_iter().map(|part| {
                let batch = part.records.unwrap_or_default();
                let signature = signature_of(&batch);
                let (error, offset, is_kept) = self.append(broker, &topic.name, part.index, batch, random);
                if self.is_told {
                    let (topic, index, name) = (topic.name.as_str(), part.index, describe(error).0);
                    eprintln!("broker {broker} {topic}/{index}: {signature:?} {name} {offset} {is_kept}");
                }
                PartitionProduceResponse::default()
                    .with_index(part.index)
                    .with_error_code(error)
                    .with_base_offset(offset)
            });
            TopicProduceResponse::default().with_name(topic.name.clone()).with_partition_responses(outcomes.collect())
        });
        let answer = ProduceResponse::default().with_responses(topics.collect()).with_throttle_time_ms(throttle);
        answered(header.correlation_id, version, &answer)
    }

    /// Appends a batch; returns the error code and offset of the response, and whether the batch is in the log.
    fn append(&mut self, broker: i32, topic: &str, index: i32, batch: Bytes, random: &mut Random) -> (i16, i64, bool) {
        let (is_strict, refusals) = (self.is_strict, self.refusals);
        let Some(log) = self.find(topic, index) else { return (code::UNKNOWN_TOPIC_OR_PARTITION, -1, false) };
        if log.leader != Some(broker) {
            return (NOT_LEADER, -1, false);
        }
        if random.per_mille(refusals) {
            let error = random.pick(&[code::NOT_ENOUGH_REPLICAS, code::CORRUPT_MESSAGE, REQUEST_TIMED_OUT]);
            return (error, -1, false);
        }
        let (error, offset) = log.take(batch, is_strict);
        if error == code::NONE && random.per_mille(refusals) {
            return (random.pick(&[NOT_ENOUGH_REPLICAS_AFTER_APPEND, REQUEST_TIMED_OUT]), -1, true);
        }
        (error, offset, error == code::NONE)
    }

    /// Handles a fetch request and returns the response; None while there is no data and `may_wait` is set.
    pub(super) fn fetch(
        &mut self,
        broker: i32,
        sessions: &mut Sessions,
        request: &[u8],
        may_wait: bool,
    ) -> Option<Vec<u8>> {
        let mut rest = Bytes::copy_from_slice(request);
        let header = RequestHeader::decode(&mut rest, 1).unwrap();
        assert_eq!((header.request_api_key, header.request_api_version), (fetch::API, fetch::VERSION));
        let request = FetchRequest::decode(&mut rest, fetch::VERSION).unwrap();
        let refuse = |error| {
            Some(answered(header.correlation_id, fetch::VERSION, &FetchResponse::default().with_error_code(error)))
        };
        let is_whole = request.session_id == 0;
        if is_whole {
            sessions.positions.clear();
        } else if request.session_id != sessions.id {
            return refuse(FETCH_SESSION_ID_NOT_FOUND);
        } else if request.session_epoch != sessions.epoch {
            return refuse(INVALID_FETCH_SESSION_EPOCH);
        }
        for topic in &request.topics {
            for part in &topic.partitions {
                sessions.positions.insert((topic.topic.to_string(), part.partition), part.fetch_offset);
            }
        }
        let mut found: BTreeMap<String, Vec<PartitionData>> = BTreeMap::new();
        let mut has_any = false;
        for ((topic, index), offset) in &sessions.positions {
            let data = self.read(broker, topic, *index, *offset);
            let is_news =
                data.error_code != code::NONE || data.records.as_ref().is_some_and(|records| !records.is_empty());
            has_any |= is_news;
            if is_whole || is_news {
                found.entry(topic.clone()).or_default().push(data);
            }
        }
        if !has_any && may_wait {
            return None;
        }
        if is_whole && self.keeps_sessions {
            (sessions.id, sessions.epoch) = (sessions.id + 1, 0);
        }
        sessions.epoch += 1;
        let id = if self.keeps_sessions { sessions.id } else { 0 };
        let topics = found.into_iter().map(|(topic, data)| {
            FetchableTopicResponse::default().with_topic(TopicName(StrBytes::from_string(topic))).with_partitions(data)
        });
        let answer = FetchResponse::default().with_session_id(id).with_responses(topics.collect());
        Some(answered(header.correlation_id, fetch::VERSION, &answer))
    }

    fn read(&mut self, broker: i32, topic: &str, index: i32, offset: i64) -> PartitionData {
        let data = PartitionData::default().with_partition_index(index);
        let Some(log) = self.find(topic, index) else { return data.with_error_code(code::UNKNOWN_TOPIC_OR_PARTITION) };
        if log.leader != Some(broker) {
            return data.with_error_code(NOT_LEADER);
        }
        if offset > log.end {
            return data.with_error_code(code::OFFSET_OUT_OF_RANGE);
        }
        let mut records = BytesMut::new();
        let first = log.stored.partition_point(|stored| stored.offset + stored.count <= offset);
        for stored in log.stored[first..].iter().take(8) {
            records.extend_from_slice(&stored.bytes);
            log.served = log.served.max(stored.offset + stored.count);
        }
        data.with_high_watermark(log.end).with_last_stable_offset(log.end).with_records(Some(records.freeze()))
    }
}

impl PartitionLog {
    pub(super) fn new(topic: usize, index: i32, leader: i32) -> Self {
        let (stored, producers) = (Vec::new(), BTreeMap::new());
        Self { topic, index, leader: Some(leader), end: 0, stored, producers, served: 0 }
    }

    /// Appends a batch, unless it is a duplicate or out of sequence; returns error code and base offset.
    fn take(&mut self, batch: Bytes, is_strict: bool) -> (i16, i64) {
        let (producer, first, count) = signature_of(&batch);
        if producer >= 0 {
            let last = first + count - 1;
            let known = self.producers.entry(producer).or_default();
            if let Some((_, _, offset)) = known.iter().find(|known| (known.0, known.1) == (first, last)) {
                return (code::NONE, *offset);
            }
            match known.back() {
                Some((_, before, _)) if first != before + 1 => return (code::OUT_OF_ORDER_SEQUENCE_NUMBER, -1),
                None if first != 0 && is_strict => return (code::UNKNOWN_PRODUCER_ID, -1),
                _ => {}
            }
            known.push_back((first, last, self.end));
            if known.len() > REMEMBERED {
                known.pop_front();
            }
        }
        let offset = self.end;
        let mut bytes = BytesMut::from(&batch[..]);
        bytes[..8].copy_from_slice(&offset.to_be_bytes());
        self.stored.push(Stored { offset, count: count.into(), bytes: bytes.freeze() });
        self.end += i64::from(count);
        (code::NONE, offset)
    }

    /// Truncates up to `batches` batches that were not served to a consumer, as an unclean leader election does.
    pub(super) fn truncate(&mut self, batches: usize) {
        for _ in 0..batches {
            if self.stored.last().is_none_or(|stored| stored.offset < self.served) {
                return;
            }
            let Some(stored) = self.stored.pop() else { return };
            self.end = stored.offset;
            for known in self.producers.values_mut() {
                known.retain(|(_, _, offset)| *offset < stored.offset);
            }
        }
    }

    /// Producer and sequence of every record in the log, in offset order.
    pub(super) fn records(&self) -> Vec<(u32, u64)> {
        let mut found = Vec::new();
        for stored in &self.stored {
            let mut bytes = &stored.bytes[..];
            let batch = ReceivedBatch::take(&mut bytes).unwrap().unwrap();
            assert!(batch.is_intact());
            let mut records = batch.records();
            for _ in 0..batch.count {
                let value = ReceivedRecord::take(&mut records).unwrap().value.unwrap();
                let (identity, _) = record::check(value).unwrap();
                found.push((identity.producer, identity.sequence));
            }
        }
        found
    }
}

/// Producer id, base sequence and record count of a batch.
fn signature_of(batch: &[u8]) -> (i64, i32, i32) {
    ((&batch[PRODUCER_ID_AT..]).get_i64(), (&batch[SEQUENCE_AT..]).get_i32(), (&batch[COUNT_AT..]).get_i32())
}

fn answered(correlation: i32, version: i16, body: &impl Encodable) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(&correlation.to_be_bytes());
    body.encode(&mut bytes, version).unwrap();
    let length = bytes.len() - 4;
    crate::wire::set_length(&mut bytes, length);
    bytes.to_vec()
}
