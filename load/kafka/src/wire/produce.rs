//! Produce requests (versions 3 to 8): batches of many partitions, sent from their own buffers.

use super::{Malformed, WireReader};

/// API key of Produce.
pub(crate) const API: i16 = 0;
/// Supported versions of Produce: lowest and highest.
pub(crate) const VERSIONS: (i16, i16) = (3, 8);

/// Encoder of a Produce request without the batches, which are sent from their own buffers in between.
pub(crate) struct ProduceHead<'a> {
    bytes: &'a mut Vec<u8>,
    batch_bytes: usize,
    topics_at: usize,
    topics: i32,
    partitions_at: usize,
    partitions: i32,
}

impl<'a> ProduceHead<'a> {
    /// Begins a request in `bytes`, replacing its contents. `acks` as on the wire: 0, 1, or -1 for all.
    pub(crate) fn begin(
        bytes: &'a mut Vec<u8>,
        version: i16,
        correlation: i32,
        client_id: &str,
        acks: i16,
        timeout_milliseconds: i32,
    ) -> Self {
        super::begin(bytes, API, version, correlation, client_id);
        bytes.extend_from_slice(&(-1_i16).to_be_bytes());
        bytes.extend_from_slice(&acks.to_be_bytes());
        bytes.extend_from_slice(&timeout_milliseconds.to_be_bytes());
        let topics_at = bytes.len();
        bytes.extend_from_slice(&[0; 4]);
        Self { bytes, batch_bytes: 0, topics_at, topics: 0, partitions_at: 0, partitions: 0 }
    }

    /// Starts the next topic; the partitions that follow belong to it.
    pub(crate) fn topic(&mut self, name: &str) {
        self.end_topic();
        super::string(self.bytes, name);
        self.partitions_at = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 4]);
        self.topics += 1;
        self.partitions = 0;
    }

    /// Adds a partition with a batch of `size` bytes, which is to be sent after the bytes of the head up to the
    /// position returned.
    pub(crate) fn partition(&mut self, index: i32, size: usize) -> usize {
        self.bytes.extend_from_slice(&index.to_be_bytes());
        self.bytes.extend_from_slice(&super::length(size).to_be_bytes());
        self.partitions += 1;
        self.batch_bytes += size;
        self.bytes.len()
    }

    /// Completes the counts and the size field; returns the size of the whole request on the wire, in bytes.
    pub(crate) fn end(mut self) -> usize {
        self.end_topic();
        let at = self.topics_at;
        self.bytes[at..at + 4].copy_from_slice(&self.topics.to_be_bytes());
        let length = self.bytes.len() + self.batch_bytes;
        super::set_length(self.bytes, length - 4);
        length
    }

    fn end_topic(&mut self) {
        if self.topics > 0 {
            let at = self.partitions_at;
            self.bytes[at..at + 4].copy_from_slice(&self.partitions.to_be_bytes());
        }
    }
}

/// Outcome of one partition's batch, from a Produce response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PartitionOutcome<'a> {
    /// Topic name.
    pub(crate) topic: &'a str,
    /// Partition index.
    pub(crate) partition: i32,
    /// Kafka error code; 0 when the batch was written.
    pub(crate) error: i16,
    /// Offset of the batch's first record; -1 when it was not written.
    pub(crate) base_offset: i64,
    /// The broker's error message; often empty.
    pub(crate) message: &'a str,
}

/// Decodes a Produce response (after its correlation id) and calls `found` for each partition; returns the throttle
/// time in milliseconds.
///
/// # Errors
/// `Malformed` when it is invalid; `found` was called for the partitions before the fault.
pub(crate) fn outcomes<'a>(
    bytes: &'a [u8],
    version: i16,
    mut found: impl FnMut(PartitionOutcome<'a>),
) -> Result<i32, Malformed> {
    let mut reader = WireReader::new(bytes);
    for _ in 0..reader.count()? {
        let topic = reader.string()?;
        for _ in 0..reader.count()? {
            let (partition, error, base_offset) = (reader.int32()?, reader.int16()?, reader.int64()?);
            reader.int64()?;
            if version >= 5 {
                reader.int64()?;
            }
            let mut message = "";
            if version >= 8 {
                for _ in 0..reader.count()? {
                    reader.int32()?;
                    message = reader.string()?;
                }
                let whole = reader.string()?;
                message = if whole.is_empty() { message } else { whole };
            }
            found(PartitionOutcome { topic, partition, error, base_offset, message });
        }
    }
    reader.int32()
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
    use kafka_protocol::messages::{ProduceRequest, ProduceResponse, RequestHeader, TopicName};
    use kafka_protocol::protocol::{Decodable, Encodable, StrBytes};

    #[test]
    fn a_request_put_together_is_what_the_protocol_library_reads() {
        for version in VERSIONS.0..=VERSIONS.1 {
            let mut bytes = Vec::new();
            let mut head = ProduceHead::begin(&mut bytes, version, 42, "me", -1, 30_000);
            head.topic("a");
            let ends = [head.partition(3, 5), head.partition(4, 1)];
            head.topic("b");
            let last = head.partition(0, 2);
            let length = head.end();
            let mut wire = Vec::new();
            let mut from = 0;
            for (end, batch) in [(ends[0], "first"), (ends[1], "2"), (last, "33")] {
                wire.extend_from_slice(&bytes[from..end]);
                wire.extend_from_slice(batch.as_bytes());
                from = end;
            }
            assert_eq!((wire.len(), from), (length, bytes.len()));
            assert_eq!(wire[..4], (super::super::length(length) - 4).to_be_bytes());
            let mut rest = Bytes::from(wire).slice(4..);
            let header = RequestHeader::decode(&mut rest, 1).unwrap();
            assert_eq!((header.request_api_key, header.request_api_version, header.correlation_id), (0, version, 42));
            let request = ProduceRequest::decode(&mut rest, version).unwrap();
            let topics: Vec<_> = request.topic_data.iter().map(|topic| topic.name.as_str().to_owned()).collect();
            assert_eq!((request.acks, request.timeout_ms, topics), (-1, 30_000, vec!["a".to_owned(), "b".to_owned()]));
            let first = &request.topic_data[0].partition_data;
            assert_eq!((first[0].index, first[0].records.as_deref()), (3, Some(b"first".as_slice())));
            assert_eq!((first[1].index, first[1].records.as_deref()), (4, Some(b"2".as_slice())));
            assert!(rest.is_empty());
        }
    }

    #[test]
    fn an_answer_of_the_protocol_library_is_read_and_any_part_of_it_is_malformed() {
        for version in VERSIONS.0..=VERSIONS.1 {
            let partition = PartitionProduceResponse::default().with_index(7).with_error_code(6).with_base_offset(99);
            let partition = if version >= 8 {
                partition.with_error_message(Some(StrBytes::from_static_str("moved")))
            } else {
                partition
            };
            let topic = TopicProduceResponse::default()
                .with_name(TopicName(StrBytes::from_static_str("t")))
                .with_partition_responses(vec![partition.clone(), partition]);
            let answer = ProduceResponse::default().with_responses(vec![topic]).with_throttle_time_ms(11);
            let mut bytes = Vec::new();
            answer.encode(&mut bytes, version).unwrap();
            let mut found = Vec::new();
            assert_eq!(outcomes(&bytes, version, |outcome| found.push(outcome)), Ok(11));
            assert_eq!(found.len(), 2);
            let message = if version >= 8 { "moved" } else { "" };
            assert_eq!(found[1], PartitionOutcome { topic: "t", partition: 7, error: 6, base_offset: 99, message });
            for length in 0..bytes.len() {
                assert_eq!(outcomes(&bytes[..length], version, |_| {}), Err(Malformed));
            }
        }
    }
}
