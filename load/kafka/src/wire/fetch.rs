//! Fetch requests (version 11) with fetch sessions: after the first, a request lists only partitions whose position has
//! changed, and a response only those with data or changes.

use super::{Malformed, WireReader};

/// API key of Fetch.
pub(crate) const API: i16 = 1;
/// Version of Fetch requests and responses.
pub(crate) const VERSION: i16 = 11;

/// Fetch parameters that all requests of a consumer share.
#[derive(Debug, Clone)]
pub(crate) struct FetchTerms {
    /// Kafka client id.
    pub(crate) client_id: String,
    /// `fetch.max.wait.ms`: the broker answers after this, or once it has `min_bytes`.
    pub(crate) max_wait_milliseconds: i32,
    /// `fetch.min.bytes`; see `max_wait_milliseconds`.
    pub(crate) min_bytes: i32,
    /// `fetch.max.bytes`: most bytes in a response.
    pub(crate) max_bytes: i32,
    /// `max.partition.fetch.bytes`: most bytes of one partition in a response.
    pub(crate) partition_max_bytes: i32,
}

/// Fetch session id and epoch; both 0 to start a session.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct FetchSession {
    /// Session id assigned by the broker.
    pub(crate) id: i32,
    /// Session epoch: number of the request within the session.
    pub(crate) epoch: i32,
}

impl FetchSession {
    /// Session for the next request, given the session id in the response; an id of 0 starts a new session.
    #[must_use]
    pub(crate) fn next(self, id: i32) -> Self {
        if id == 0 {
            return Self::default();
        }
        Self { id, epoch: if self.epoch == i32::MAX { 1 } else { self.epoch + 1 } }
    }
}

/// Partition to fetch, with the offset to begin at.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FetchPosition<'a> {
    /// Topic name.
    pub(crate) topic: &'a str,
    /// Partition index.
    pub(crate) partition: i32,
    /// First offset to fetch.
    pub(crate) offset: i64,
}

/// Encodes a Fetch request into `bytes`, replacing its contents. Partitions of one topic must be adjacent.
pub(crate) fn request<'a>(
    bytes: &mut Vec<u8>,
    correlation: i32,
    terms: &FetchTerms,
    session: FetchSession,
    positions: impl Iterator<Item = FetchPosition<'a>>,
) {
    super::begin(bytes, API, VERSION, correlation, &terms.client_id);
    bytes.extend_from_slice(&(-1_i32).to_be_bytes());
    bytes.extend_from_slice(&terms.max_wait_milliseconds.to_be_bytes());
    bytes.extend_from_slice(&terms.min_bytes.to_be_bytes());
    bytes.extend_from_slice(&terms.max_bytes.to_be_bytes());
    bytes.push(0);
    bytes.extend_from_slice(&session.id.to_be_bytes());
    bytes.extend_from_slice(&session.epoch.to_be_bytes());
    let topics_at = bytes.len();
    bytes.extend_from_slice(&[0; 4]);
    let (mut topics, mut partitions, mut partitions_at, mut present) = (0_i32, 0_i32, 0, "");
    for position in positions {
        if topics == 0 || position.topic != present {
            super::string(bytes, position.topic);
            partitions_at = bytes.len();
            bytes.extend_from_slice(&[0; 4]);
            (topics, partitions, present) = (topics + 1, 0, position.topic);
        }
        bytes.extend_from_slice(&position.partition.to_be_bytes());
        bytes.extend_from_slice(&(-1_i32).to_be_bytes());
        bytes.extend_from_slice(&position.offset.to_be_bytes());
        bytes.extend_from_slice(&(-1_i64).to_be_bytes());
        bytes.extend_from_slice(&terms.partition_max_bytes.to_be_bytes());
        partitions += 1;
        bytes[partitions_at..partitions_at + 4].copy_from_slice(&partitions.to_be_bytes());
    }
    bytes[topics_at..topics_at + 4].copy_from_slice(&topics.to_be_bytes());
    bytes.extend_from_slice(&0_i32.to_be_bytes());
    super::string(bytes, "");
    let length = bytes.len() - 4;
    super::set_length(bytes, length);
}

/// Top-level fields of a Fetch response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FetchHead {
    /// Throttle time: how long the client is to send nothing, in milliseconds.
    pub(crate) throttle_milliseconds: i32,
    /// Kafka error code of the fetch session; 0 for none.
    pub(crate) error: i16,
    /// Fetch session id; 0 when the broker keeps no session.
    pub(crate) session_id: i32,
}

/// Partition in a Fetch response; borrows its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FetchedPartition<'a> {
    /// Topic name.
    pub(crate) topic: &'a str,
    /// Partition index.
    pub(crate) partition: i32,
    /// Kafka error code; 0 for none.
    pub(crate) error: i16,
    /// High watermark: the offset after the last record that all in-sync replicas have.
    pub(crate) high_watermark: i64,
    /// Record batches; the last may be incomplete.
    pub(crate) records: &'a [u8],
}

/// Decodes a Fetch response (after its correlation id) and calls `found` for each partition.
///
/// # Errors
/// `Malformed` when it is invalid; `found` was called for the partitions before the fault.
pub(crate) fn parts<'a>(bytes: &'a [u8], mut found: impl FnMut(FetchedPartition<'a>)) -> Result<FetchHead, Malformed> {
    let mut reader = WireReader::new(bytes);
    let head =
        FetchHead { throttle_milliseconds: reader.int32()?, error: reader.int16()?, session_id: reader.int32()? };
    for _ in 0..reader.count()? {
        let topic = reader.string()?;
        for _ in 0..reader.count()? {
            let (partition, error, high_watermark) = (reader.int32()?, reader.int16()?, reader.int64()?);
            reader.take(16)?;
            for _ in 0..reader.count()? {
                reader.take(16)?;
            }
            reader.int32()?;
            found(FetchedPartition { topic, partition, error, high_watermark, records: reader.bytes()? });
        }
    }
    Ok(head)
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
    use kafka_protocol::messages::{FetchRequest, FetchResponse, RequestHeader, TopicName};
    use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

    #[test]
    fn a_request_is_what_the_protocol_library_reads() {
        let terms = FetchTerms {
            client_id: "me".to_owned(),
            max_wait_milliseconds: 500,
            min_bytes: 1,
            max_bytes: 1000,
            partition_max_bytes: 100,
        };
        let positions = [("a", 0, 5), ("a", 3, 6), ("b", 0, 7)];
        let positions = positions.map(|(topic, partition, offset)| FetchPosition { topic, partition, offset });
        let mut bytes = Vec::new();
        request(&mut bytes, 9, &terms, FetchSession { id: 77, epoch: 3 }, positions.into_iter());
        assert_eq!(bytes[..4], (super::super::length(bytes.len()) - 4).to_be_bytes());
        let mut rest = Bytes::from(bytes).slice(4..);
        let header = RequestHeader::decode(&mut rest, 1).unwrap();
        assert_eq!((header.request_api_key, header.request_api_version), (API, VERSION));
        let read = FetchRequest::decode(&mut rest, VERSION).unwrap();
        assert!(rest.is_empty());
        assert_eq!((read.max_wait_ms, read.min_bytes, read.max_bytes), (500, 1, 1000));
        assert_eq!((read.session_id, read.session_epoch, read.topics.len()), (77, 3, 2));
        let second = &read.topics[0].partitions[1];
        assert_eq!((second.partition, second.fetch_offset, second.partition_max_bytes), (3, 6, 100));
    }

    #[test]
    fn an_answer_of_the_protocol_library_is_read_and_any_part_of_it_is_malformed() {
        let partition = PartitionData::default()
            .with_partition_index(5)
            .with_error_code(6)
            .with_high_watermark(88)
            .with_records(Some(Bytes::from_static(b"batches")));
        let empty = PartitionData::default().with_partition_index(6).with_aborted_transactions(None);
        let topic = FetchableTopicResponse::default()
            .with_topic(TopicName(StrBytes::from_static_str("t")))
            .with_partitions(vec![partition, empty]);
        let answer = FetchResponse::default().with_session_id(4).with_throttle_time_ms(12).with_responses(vec![topic]);
        let mut bytes = Vec::new();
        answer.encode(&mut bytes, VERSION).unwrap();
        let mut found = Vec::new();
        let head = parts(&bytes, |part| found.push(part)).unwrap();
        assert_eq!(head, FetchHead { throttle_milliseconds: 12, error: 0, session_id: 4 });
        let first = FetchedPartition { topic: "t", partition: 5, error: 6, high_watermark: 88, records: b"batches" };
        assert_eq!((found.len(), found[0], found[1].records), (2, first, [].as_slice()));
        for length in 0..bytes.len() {
            assert_eq!(parts(&bytes[..length], |_| {}), Err(Malformed));
        }
    }
}
