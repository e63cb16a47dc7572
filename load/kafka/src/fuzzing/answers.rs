//! Fuzz targets for broker responses: those that our own code parses (hot path), and those that the library decodes.

use bytes::{BufMut, Bytes, BytesMut};
use cliffwatch_measure::fuzzing::Input;
use kafka_protocol::messages::{
    ApiVersionsRequest, CreateTopicsRequest, DeleteGroupsRequest, DeleteTopicsRequest, DescribeConfigsRequest,
    FetchResponse, FindCoordinatorRequest, HeartbeatRequest, InitProducerIdRequest, JoinGroupRequest,
    LeaveGroupRequest, ListOffsetsRequest, MetadataRequest, OffsetCommitRequest, OffsetFetchRequest, ProduceResponse,
    SaslAuthenticateRequest, SaslHandshakeRequest, SyncGroupRequest,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, Request};

use crate::admin::read_metadata;
use crate::config::Mechanism;
use crate::consumer::group::read_assignment;
use crate::security::Credentials;
use crate::session::read_answer;
use crate::wire::{fetch, produce, shapes};

const NONCE: &str = "abc";

/// Fuzzes a response other than of the hot path. Input: a byte for the request type, one for the version, the response.
pub fn answers(input: &[u8]) {
    let mut input = Input::new(input);
    match input.byte() {
        0 => take::<ApiVersionsRequest>(&mut input, 0),
        1 => {
            if let Some(answer) = read::<MetadataRequest>(&mut input, 9) {
                let names = ["a".to_owned(), "b".to_owned()];
                let metadata = read_metadata(&answer, &names);
                assert!(metadata.topics.iter().map(|topic| &topic.name).eq(&names), "other topics than were asked for");
            }
        }
        2 => take::<CreateTopicsRequest>(&mut input, 4),
        3 => take::<DeleteTopicsRequest>(&mut input, 6),
        4 => take::<DescribeConfigsRequest>(&mut input, 3),
        5 => take::<ListOffsetsRequest>(&mut input, 5),
        6 => take::<InitProducerIdRequest>(&mut input, 4),
        7 => take::<FindCoordinatorRequest>(&mut input, 3),
        8 => take::<JoinGroupRequest>(&mut input, 5),
        9 => take::<SyncGroupRequest>(&mut input, 3),
        10 => take::<HeartbeatRequest>(&mut input, 3),
        11 => take::<LeaveGroupRequest>(&mut input, 2),
        12 => take::<OffsetFetchRequest>(&mut input, 5),
        13 => take::<OffsetCommitRequest>(&mut input, 5),
        14 => take::<SaslHandshakeRequest>(&mut input, 1),
        15 => take::<SaslAuthenticateRequest>(&mut input, 1),
        16 => take::<DeleteGroupsRequest>(&mut input, 1),
        17 => assignment(input.rest()),
        18 => challenge(input.rest()),
        _ => {}
    }
}

fn take<R: Request>(input: &mut Input<'_>, version_max: i16) {
    let _ = read::<R>(input, version_max);
}

/// Decodes a response and asserts that one the library encodes is never rejected as malformed.
fn read<R: Request>(input: &mut Input<'_>, version_max: i16) -> Option<R::Response> {
    let range = (R::VERSIONS.min, R::VERSIONS.max.min(version_max));
    let version = range.0 + i16::from(input.byte()) % (range.1 - range.0 + 1);
    let mut bytes = BytesMut::new();
    bytes.put_i32(0);
    let is_flexible = <R::Response as HeaderVersion>::header_version(version) > 0;
    if is_flexible {
        bytes.put_u8(0);
    }
    bytes.extend_from_slice(input.rest());
    let answer = read_answer::<R>("fuzzing", bytes.freeze(), version, 0).ok()?;
    let mut written = BytesMut::new();
    // The library counts tagged fields with tags above 31 bits when writing, but then leaves them out.
    if !is_flexible && answer.encode(&mut written, version).is_ok() {
        assert!(
            shapes::check_answer(R::KEY, version, &written).is_ok(),
            "an answer to request {} is taken for malformed",
            R::KEY
        );
    }
    Some(answer)
}

fn assignment(bytes: &[u8]) {
    let Ok(assignment) = read_assignment(Bytes::copy_from_slice(bytes)) else { return };
    let mut written = BytesMut::new();
    if assignment.encode(&mut written, 0).is_ok() {
        assert!(shapes::check_assignment(&written).is_ok(), "{assignment:?} is taken for malformed");
    }
}

/// Fuzzes the server-first message of SCRAM.
fn challenge(bytes: &[u8]) {
    let credentials = Credentials::new(Mechanism::ScramSha256, "user".to_owned(), "password".to_owned());
    let (_, exchange) = credentials.exchange(NONCE);
    let Ok(Some(proof)) = exchange.answer(bytes) else { return };
    let message = String::from_utf8(proof.message).unwrap_or_default();
    assert!(message.starts_with(&format!("c=biws,r={NONCE}")) && proof.expected.starts_with("v="));
}

/// Fuzzes a produce or fetch response. Input: a byte for the produce version (above the supported ones: fetch), and the
/// response. Asserts that our parser and the library agree where both accept it.
pub fn hot_answers(input: &[u8]) {
    let mut input = Input::new(input);
    let version = produce::VERSIONS.0 + i16::from(input.byte() % 8);
    let bytes = input.rest();
    if version > produce::VERSIONS.1 { fetched(bytes) } else { produced(bytes, version) }
}

fn produced(bytes: &[u8], version: i16) {
    let mut found = Vec::new();
    let Ok(throttle) = produce::outcomes(bytes, version, |outcome| found.push(outcome)) else { return };
    let Ok(answer) = ProduceResponse::decode(&mut Bytes::copy_from_slice(bytes), version) else { return };
    assert_eq!(throttle, answer.throttle_time_ms);
    let mut others = found.iter();
    for topic in &answer.responses {
        for partition in &topic.partition_responses {
            let message = partition.error_message.as_deref().filter(|message| !message.is_empty());
            let of_record = || partition.record_errors.last()?.batch_index_error_message.as_deref();
            let expected = produce::PartitionOutcome {
                topic: topic.name.as_str(),
                partition: partition.index,
                error: partition.error_code,
                base_offset: partition.base_offset,
                message: message.or_else(of_record).unwrap_or_default(),
            };
            assert_eq!(others.next(), Some(&expected));
        }
    }
    assert_eq!(others.next(), None);
}

fn fetched(bytes: &[u8]) {
    let mut found = Vec::new();
    let Ok(head) = fetch::parts(bytes, |part| found.push(part)) else { return };
    let Ok(answer) = FetchResponse::decode(&mut Bytes::copy_from_slice(bytes), fetch::VERSION) else { return };
    let expected = (answer.throttle_time_ms, answer.error_code, answer.session_id);
    assert_eq!((head.throttle_milliseconds, head.error, head.session_id), expected);
    let mut others = found.iter();
    for topic in &answer.responses {
        for partition in &topic.partitions {
            let expected = fetch::FetchedPartition {
                topic: topic.topic.as_str(),
                partition: partition.partition_index,
                error: partition.error_code,
                high_watermark: partition.high_watermark,
                records: partition.records.as_deref().unwrap_or_default(),
            };
            assert_eq!(others.next(), Some(&expected));
        }
    }
    assert_eq!(others.next(), None);
}
