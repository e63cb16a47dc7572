//! Writes the seed inputs of fuzzing into fuzz/corpus, made by the encoders themselves:
//! `cargo run -p cliffwatch-fuzz --example seeds`.

use bytes::BytesMut;
use cliffwatch_measure::record::{Identity, seal};
use kafka_protocol::messages::consumer_protocol_assignment::TopicPartition;
use kafka_protocol::messages::create_topics_response::CreatableTopicResult;
use kafka_protocol::messages::delete_groups_response::DeletableGroupResult;
use kafka_protocol::messages::delete_topics_response::DeletableTopicResult;
use kafka_protocol::messages::describe_configs_response::{
    DescribeConfigsResourceResult, DescribeConfigsResult, DescribeConfigsSynonym,
};
use kafka_protocol::messages::fetch_response::{FetchableTopicResponse, PartitionData};
use kafka_protocol::messages::join_group_response::JoinGroupResponseMember;
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::offset_commit_response::{OffsetCommitResponsePartition, OffsetCommitResponseTopic};
use kafka_protocol::messages::offset_fetch_response::{OffsetFetchResponsePartition, OffsetFetchResponseTopic};
use kafka_protocol::messages::produce_response::{PartitionProduceResponse, TopicProduceResponse};
use kafka_protocol::messages::{
    ApiVersionsResponse, ConsumerProtocolAssignment, CreateTopicsResponse, DeleteGroupsResponse, DeleteTopicsResponse,
    DescribeConfigsResponse, FetchResponse, JoinGroupResponse, ListOffsetsResponse, MetadataResponse,
    OffsetCommitResponse, OffsetFetchResponse, ProduceResponse, SaslHandshakeResponse, TopicName,
    api_versions_response,
};
use kafka_protocol::protocol::{Encodable, StrBytes};
use std::fs;
use std::io::Result;
use std::path::Path;

fn main() -> Result<()> {
    for (target, seeds) in [
        ("answers", answers()),
        ("batches", batches()),
        ("compressed_batches", compressed_batches()),
        ("hot_answers", hot_answers()),
        ("markers", texts(&MARKERS)),
        ("profiles", texts(&PROFILES)),
        ("segments", SEGMENTS.iter().map(|seed| seed.to_vec()).collect()),
        ("traces", traces()),
        ("written_batches", WRITTEN_BATCHES.iter().map(|seed| seed.to_vec()).collect()),
    ] {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
        fs::create_dir_all(&directory)?;
        for (number, seed) in seeds.iter().enumerate() {
            fs::write(directory.join(format!("seed-{number:02}")), seed)?;
        }
    }
    Ok(())
}

/// Encodes a seed: the number of the answer (response) type, its version counted from the lowest, and the answer.
fn answer(of: u8, version: i16, lowest: i16, answer: &impl Encodable) -> Vec<u8> {
    let mut bytes = BytesMut::new();
    bytes.extend_from_slice(&[of, (version - lowest) as u8]);
    // An answer that cannot be encoded would give an empty seed, which is harmless.
    let _ = answer.encode(&mut bytes, version);
    bytes.to_vec()
}

fn text(text: &'static str) -> StrBytes {
    StrBytes::from_static_str(text)
}

fn topic(name: &'static str) -> TopicName {
    TopicName(text(name))
}

fn answers() -> Vec<Vec<u8>> {
    let api = api_versions_response::ApiVersion::default().with_api_key(3).with_max_version(9);
    let versions = ApiVersionsResponse::default().with_api_keys(vec![api.clone(), api]);
    let broker =
        MetadataResponseBroker::default().with_host(text("localhost")).with_port(9092).with_rack(Some(text("r")));
    let partition = MetadataResponsePartition::default().with_replica_nodes(vec![1.into(), 2.into()]);
    let described = MetadataResponseTopic::default()
        .with_name(Some(topic("a")))
        .with_partitions(vec![partition.clone(), partition.with_partition_index(1)]);
    let metadata = MetadataResponse::default().with_brokers(vec![broker]).with_topics(vec![described]);
    let created = CreatableTopicResult::default().with_name(topic("a")).with_error_code(36);
    let deleted = DeletableTopicResult::default().with_name(Some(topic("a"))).with_error_code(3);
    let synonym =
        DescribeConfigsSynonym::default().with_name(text("log.cleanup.policy")).with_value(Some(text("delete")));
    let config = DescribeConfigsResourceResult::default()
        .with_name(text("cleanup.policy"))
        .with_value(Some(text("delete")))
        .with_synonyms(vec![synonym]);
    let result = DescribeConfigsResult::default().with_resource_name(text("a")).with_configs(vec![config]);
    let offset = ListOffsetsPartitionResponse::default().with_offset(7);
    let offsets = ListOffsetsTopicResponse::default().with_name(topic("a")).with_partitions(vec![offset]);
    let member = JoinGroupResponseMember::default().with_member_id(text("me"));
    let joined = JoinGroupResponse::default().with_protocol_name(Some(text("roundrobin"))).with_members(vec![member]);
    let fetched = OffsetFetchResponsePartition::default().with_metadata(Some(text("{}")));
    let fetched = OffsetFetchResponseTopic::default().with_name(topic("a")).with_partitions(vec![fetched]);
    let committed = OffsetCommitResponseTopic::default()
        .with_name(topic("a"))
        .with_partitions(vec![OffsetCommitResponsePartition::default()]);
    let handshake = SaslHandshakeResponse::default().with_mechanisms(vec![text("PLAIN"), text("SCRAM-SHA-256")]);
    let group = DeletableGroupResult::default().with_error_code(69);
    let assigned = TopicPartition::default().with_topic(topic("a")).with_partitions(vec![0, 1]);
    let assignment = ConsumerProtocolAssignment::default().with_assigned_partitions(vec![assigned]);
    let mut seeds = vec![
        answer(0, 0, 0, &versions),
        answer(2, 2, 2, &CreateTopicsResponse::default().with_topics(vec![CreatableTopicResult::default()])),
        answer(2, 5, 2, &CreateTopicsResponse::default().with_topics(vec![created])),
        answer(8, 2, 0, &joined),
        answer(8, 5, 0, &joined),
        answer(13, 3, 2, &OffsetCommitResponse::default().with_topics(vec![committed])),
        answer(14, 1, 0, &handshake),
        answer(16, 1, 0, &DeleteGroupsResponse::default().with_results(vec![group])),
        b"\x12r=abcd,s=AAAA,i=4096".to_vec(),
    ];
    seeds.extend([1, 3, 5, 7, 8, 9].map(|version| answer(1, version, 0, &metadata)));
    let deleted = DeleteTopicsResponse::default().with_responses(vec![deleted]);
    seeds.extend([1, 4, 5, 6].map(|version| answer(3, version, 1, &deleted)));
    let results = DescribeConfigsResponse::default().with_results(vec![result]);
    seeds.extend([1, 3].map(|version| answer(4, version, 1, &results)));
    let offsets = ListOffsetsResponse::default().with_topics(vec![offsets]);
    seeds.extend([1, 2, 5].map(|version| answer(5, version, 1, &offsets)));
    let fetched = OffsetFetchResponse::default().with_topics(vec![fetched]);
    seeds.extend([1, 3, 5].map(|version| answer(12, version, 1, &fetched)));
    // An assignment is preceded by its version, 0, as other answers are by theirs.
    let mut assigned = answer(17, 0, 0, &assignment);
    assigned.insert(2, 0);
    seeds.push(assigned);
    seeds
}

fn hot_answers() -> Vec<Vec<u8>> {
    let outcome = PartitionProduceResponse::default().with_index(1).with_base_offset(9);
    let produced = |outcome: PartitionProduceResponse| {
        let of_topic = TopicProduceResponse::default().with_name(topic("a"));
        let of_topic = of_topic.with_partition_responses(vec![outcome.clone(), outcome]);
        ProduceResponse::default().with_responses(vec![of_topic]).with_throttle_time_ms(1)
    };
    let refused = outcome.clone().with_error_code(6).with_error_message(Some(text("moved")));
    let part = PartitionData::default().with_high_watermark(5).with_records(Some("records".into()));
    let fetched = FetchableTopicResponse::default().with_topic(topic("a")).with_partitions(vec![part]);
    let fetched = FetchResponse::default().with_session_id(4).with_responses(vec![fetched]);
    [(produced(outcome.clone()), 3), (produced(outcome), 5), (produced(refused), 8)]
        .iter()
        .map(|(answered, version)| answer((version - 3) as u8, *version, 0, answered))
        .chain([answer(7, 11, 0, &fetched)])
        // Hot answers have no second byte.
        .map(|mut seed| {
            seed.remove(1);
            seed
        })
        .collect()
}

fn batches() -> Vec<Vec<u8>> {
    let samples = cliffwatch_kafka::fuzzing::sample_batches();
    let offset = [0; 8];
    let mut seeds: Vec<_> = samples.iter().map(|batch| [&[0], &offset[..], batch].concat()).collect();
    seeds.extend(samples.iter().map(|batch| [&[1], &offset[..], batch].concat()));
    seeds.push([&[1], &offset[..], &samples.concat()].concat());
    seeds
}

fn compressed_batches() -> Vec<Vec<u8>> {
    let offset = [0; 8];
    // One record, which the target compresses, after the first offset and the count.
    let mut value = [7; 33];
    seal(&mut value, &Identity { producer: 0, partition: 0, sequence: 0, timestamp_microseconds: 1 });
    let record = [&[78, 0, 0, 0, 1, 66], &value[..], &[0]].concat();
    let packed_there = (0..4).map(|kind| [&[1 | kind << 2], &offset[..], &[2, 0, 0, 0], &record].concat());
    // The payloads of compressed batches in another envelope.
    let samples = cliffwatch_kafka::fuzzing::sample_batches();
    let samples = (0..).zip(&samples);
    let packed =
        samples.map(|(kind, batch): (u8, _)| [&[kind << 2], &offset[..], &[8, 0, 0, 0], &batch[61..]].concat());
    packed_there.chain(packed).collect()
}

fn texts(seeds: &[&str]) -> Vec<Vec<u8>> {
    seeds.iter().map(|seed| seed.as_bytes().to_vec()).collect()
}

const MARKERS: [&str; 4] = [
    r#"{"version":1,"partitions":1,"shared":false,"record_bytes":64}"#,
    r#"{"version":1,"partitions":3,"shared":true,"record_bytes":null}"#,
    r#"{"version":1,"partitions":1,"shared":false,"record_bytes":32}"#,
    r#"{"version":1,"partitions":2,"shared":false,"record_bytes":1024}"#,
];

const PROFILES: [&str; 6] = [
    "blocks: 64\npages-per-block: 64\nplanes: 2\nworkload: uniform\nfills: 2.5\n",
    "blocks: 64\npages-per-block: 64\nworkload: hot-cold\nhot-space: 0.1\nhot-writes: 0.9\nreads-per-write: 1\n",
    "capacity: 256MiB\npages-per-block: 64\nworkload: streams\nstreams: 4\nsegment-size: 1MiB\nextent-size: 256KiB\n\
     sync: write-back\nwrite-back-size: 64KiB\ntrim: true\nrate-skew: 0.5\n",
    "capacity: 64MB\npage-size: 4KiB\nscale: 2\nworkload: streams\nstreams: 2\nsegment-size: 512KiB\nextent-size: 64KiB\n\
     sync: 1MiB\nduration: 36h\ninterval: 10s\n",
    "timing: on\nchannels: 2\ndies-per-channel: 2\nplanes: 1\npages-per-block: 64\nblocks: 32\nread-latency: 75us\n\
     suspend-latency: 1ms\nprogram-spread: 0.2\nrate: 0.5 GB/s\narrivals: poisson\nprecondition: random\n",
    "policy: cost-benefit\nfrontiers: 2\nplacement: recency\ncopies-apart: true\ngc-pacing: 0\nbuffer-size: 1MiB\n\
     buffer-protected: false\nseed: 7\ncliff-factor: 3\nblocks: 64\n",
];

/// Seeds of `segments`: options, number of segments, for each the number of records and a byte each; then the damage.
const SEGMENTS: [&[u8]; 10] = [
    &[0x28, 2, 4, 1, 2, 3, 4, 3, 5, 6, 7, 2, 8, 9],
    &[0x00, 1, 4, 1, 2, 3, 4, 3, 50, 60, 70],
    &[0x05, 1, 4, 1, 2, 3, 4, 3, 50, 61, 72],
    // A flipped bit, …
    &[0x28, 1, 4, 1, 2, 3, 4, 2, 5, 6, 0, 1, 70, 0, 4],
    // … the length of the last record, …
    &[0x38, 0, 2, 1, 2, 0, 0, 5, 4, 4],
    // … a cut, zeros in and behind the records, …
    &[0x28, 1, 4, 1, 2, 3, 4, 2, 5, 6, 1, 1, 70, 0],
    &[0x28, 1, 4, 1, 2, 3, 4, 2, 5, 6, 2, 0, 70, 0, 90],
    &[0x00, 1, 4, 1, 2, 3, 4, 2, 5, 6, 7, 1, 0, 0, 77, 0],
    // … a record twice, and one that was never written.
    &[0x28, 1, 4, 1, 2, 3, 4, 2, 5, 6, 5, 0, 64, 0, 64, 0, 128, 0],
    &[0x08, 0, 2, 1, 2, 6, 0, 32, 0, 0, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0],
];

fn traces() -> Vec<Vec<u8>> {
    let csv = "seconds,operation,offset_bytes,size_bytes\n0,write,0,32768\n0.5,write,4096,32768\n1,write,20480,4096\n\
               2,trim,0,20000\n3,flush,0,0\n4,read,16000,1000\n";
    let blkparse = "  8,0 3 10 0.009500000 697 Q W 64 + 32 [fio]\n  8,0 3 11 0.009507758 697 D W 64 + 32 [fio]\n\
                    \x20 8,0 1 12 0.010000000 697 D FN [kworker]\n  8,0 1 13 0.011000000 697 D DS 0 + 64 [fstrim]\n\
                    \x20 8,0 1 14 0.012000000 697 D R 8 + 8 [fio]\nCPU0 (8,0):\n";
    let traced = |options: u8, pages: u8, text: &str| [&[options, pages], text.as_bytes()].concat();
    vec![
        traced(0x50, 99, csv),
        traced(0x52, 99, csv),
        traced(0x00, 255, csv),
        traced(0x30, 99, blkparse),
        traced(0x33, 255, blkparse),
    ]
}

/// Seeds of `written_batches`: whether there are keys; records by shape, each with key and time; the end of a batch.
const WRITTEN_BATCHES: [&[u8]; 5] = [
    &[
        1, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 2, 0, 0, 0, 1, 0, 0, 0, 0xe1, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 70, 0, 0, 0,
        4, 0,
    ],
    &[0, 3, 1, 0, 0, 0, 5, 1, 0, 0, 0, 0xe2, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 90, 0, 0, 0, 4, 1],
    &[0, 2, 1, 0, 0, 0, 2, 1, 0, 0, 0, 0xe3, 1, 0, 0, 0, 0, 0, 0, 0, 5, 0, 0, 0, 9, 0, 0, 0, 0, 2, 1, 1, 0, 0, 0, 0xe4],
    &[0, 4, 1, 0, 0, 0, 4, 1, 0, 0, 0, 0xe4],
    &[0, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0xe0],
];
