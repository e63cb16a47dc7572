//! Null broker: acknowledges without storing more than the batches to be read next, so that measured latency is the
//! client's own. It can delay its produce responses, and records the actual delays.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use cliffwatch_kafka::take_short_turns;
use hdrhistogram::Histogram;
use kafka_protocol::messages::api_versions_response::ApiVersion;
use kafka_protocol::messages::describe_configs_response::DescribeConfigsResult;
use kafka_protocol::messages::list_offsets_response::{ListOffsetsPartitionResponse, ListOffsetsTopicResponse};
use kafka_protocol::messages::metadata_response::{
    MetadataResponseBroker, MetadataResponsePartition, MetadataResponseTopic,
};
use kafka_protocol::messages::{
    ApiVersionsResponse, DescribeConfigsRequest, DescribeConfigsResponse, FetchRequest, InitProducerIdResponse,
    ListOffsetsRequest, ListOffsetsResponse, MetadataRequest, MetadataResponse, RequestHeader, ResponseHeader,
};
use kafka_protocol::protocol::{Decodable, Encodable, HeaderVersion, StrBytes};

const PRODUCE: i16 = 0;
const FETCH: i16 = 1;
const LIST_OFFSETS: i16 = 2;
const METADATA: i16 = 3;
const API_VERSIONS: i16 = 18;
const INIT_PRODUCER_ID: i16 = 22;
const DESCRIBE_CONFIGS: i16 = 32;
/// Batches kept per partition for reading; the oldest are dropped first.
const KEPT: usize = 1 << 14;

/// Converts a length to the protocol's 32-bit integer; panics when it does not fit.
fn length(count: usize) -> i32 {
    i32::try_from(count).unwrap()
}

/// Delay of a produce response, as a function of the request's arrival time since the broker's start.
pub type Delay = Arc<dyn Fn(Duration) -> Duration + Send + Sync>;

#[derive(Default)]
struct PartitionLog {
    end: i64,
    batches: VecDeque<(i64, Bytes)>,
}

/// Hold times in nanoseconds, from a produce request's arrival until its response is written, counted once per record.
pub type HoldTimes = Arc<Mutex<Histogram<u64>>>;

struct NullBroker {
    address: SocketAddr,
    partitions: i32,
    begun: Instant,
    delay: Delay,
    keeps: bool,
    logs: Mutex<Vec<PartitionLog>>,
    more: Condvar,
    held: HoldTimes,
}

/// Delayed response, to be written at `until`.
struct DelayedAnswer {
    arrived: Instant,
    until: Instant,
    records: u64,
    bytes: Vec<u8>,
}

/// Starts a null broker on a loopback port and returns its address and its hold times. It accepts any topic name and
/// runs until the process ends. With `keeps`, batches are kept for fetching.
pub fn start(partitions: i32, keeps: bool, delay: Delay) -> (SocketAddr, HoldTimes) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let logs = Mutex::new((0..partitions).map(|_| PartitionLog::default()).collect());
    let held: HoldTimes = Arc::new(Mutex::new(Histogram::new_with_bounds(1, 3_600_000_000_000, 3).unwrap()));
    let (begun, more, shown) = (Instant::now(), Condvar::new(), Arc::clone(&held));
    let broker = NullBroker { address, partitions, begun, delay, keeps, logs, more, held };
    let broker = Arc::new(broker);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let (broker, stream) = (Arc::clone(&broker), stream.unwrap());
            std::thread::spawn(move || broker.serve(&stream));
        }
    });
    (address, shown)
}

impl NullBroker {
    /// Serves one connection until it ends. A second thread writes delayed responses when they are due, so that a delay
    /// does not block reading; other responses are written at once.
    fn serve(self: &Arc<Self>, stream: &TcpStream) {
        stream.set_nodelay(true).unwrap();
        take_short_turns();
        let (sender, receiver) = std::sync::mpsc::channel::<DelayedAnswer>();
        let (mut at_once, mut out) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        let delayed = Arc::new(AtomicUsize::new(0));
        let waiting = Arc::clone(&delayed);
        let broker = Arc::clone(self);
        std::thread::spawn(move || {
            take_short_turns();
            while let Ok(late) = receiver.recv() {
                // A sleep ends slightly late: sleep up to 150 µs before the time, then spin.
                while let Some(left) = late.until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
                {
                    if left > Duration::from_micros(200) {
                        std::thread::sleep(left - Duration::from_micros(150));
                    } else {
                        std::hint::spin_loop();
                    }
                }
                broker.note(late.arrived, late.records);
                if out.write_all(&late.bytes).is_err() {
                    return;
                }
                waiting.fetch_sub(1, Ordering::AcqRel);
            }
        });
        let mut input = std::io::BufReader::with_capacity(1 << 20, stream);
        let mut bytes = Vec::new();
        loop {
            let mut announced = [0; 4];
            if input.read_exact(&mut announced).is_err() {
                return;
            }
            bytes.resize(i32::from_be_bytes(announced) as usize, 0);
            if input.read_exact(&mut bytes).is_err() {
                return;
            }
            let arrived = Instant::now();
            let (api, records, mut answer) = self.answer(&bytes);
            if answer.is_empty() {
                continue;
            }
            let after = length(answer.len()) - 4;
            answer[..4].copy_from_slice(&after.to_be_bytes());
            let delay = if api == PRODUCE { (self.delay)(arrived - self.begun) } else { Duration::ZERO };
            let is_sent = if delay.is_zero() && delayed.load(Ordering::Acquire) == 0 {
                self.note(arrived, records);
                at_once.write_all(&answer).is_ok()
            } else {
                delayed.fetch_add(1, Ordering::AcqRel);
                sender.send(DelayedAnswer { arrived, until: arrived + delay, records, bytes: answer }).is_ok()
            };
            if !is_sent {
                return;
            }
        }
    }

    /// Records the hold time of a produce request whose response is about to be written.
    fn note(&self, arrived: Instant, records: u64) {
        if records > 0 {
            let held = u64::try_from(arrived.elapsed().as_nanos()).unwrap();
            self.held.lock().unwrap().saturating_record_n(held, records);
        }
    }

    /// Handles a request: returns its API key, its record count (0 except for produce), and the response.
    fn answer(&self, bytes: &[u8]) -> (i16, u64, Vec<u8>) {
        let api = i16::from_be_bytes([bytes[0], bytes[1]]);
        let version = i16::from_be_bytes([bytes[2], bytes[3]]);
        if api == PRODUCE {
            let (records, answer) = self.produced(bytes);
            return (api, records, answer);
        }
        let header_version = match api {
            METADATA if version >= 9 => 2,
            INIT_PRODUCER_ID if version >= 2 => 2,
            _ => 1,
        };
        let mut rest = Bytes::copy_from_slice(bytes);
        let header = RequestHeader::decode(&mut rest, header_version).unwrap();
        let mut answer = BytesMut::new();
        answer.extend_from_slice(&[0; 4]);
        let correlation = header.correlation_id;
        match api {
            API_VERSIONS => put(&mut answer, correlation, version, &versions()),
            METADATA => put(&mut answer, correlation, version, &self.metadata(&mut rest, version)),
            LIST_OFFSETS => put(&mut answer, correlation, version, &self.offsets(&mut rest, version)),
            DESCRIBE_CONFIGS => put(&mut answer, correlation, version, &settings(&mut rest, version)),
            INIT_PRODUCER_ID => put(&mut answer, correlation, version, &InitProducerIdResponse::default()),
            FETCH => self.fetched(&mut answer, correlation, &FetchRequest::decode(&mut rest, version).unwrap()),
            other => panic!("request {other} is not known here"),
        }
        (api, 0, answer.to_vec())
    }

    /// Handles a produce request (version 8): keeps its batches if enabled; returns record count and acknowledgements.
    fn produced(&self, bytes: &[u8]) -> (u64, Vec<u8>) {
        let int16 = |at: usize| i16::from_be_bytes([bytes[at], bytes[at + 1]]);
        let int32 = |at: usize| i32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let (mut answer, mut records) = (vec![0; 4], 0);
        answer.extend_from_slice(&bytes[4..8]);
        let mut at = 10 + int16(8).max(0) as usize + 2 + 2 + 4;
        let topics = int32(at);
        at += 4;
        answer.extend_from_slice(&topics.to_be_bytes());
        for _ in 0..topics {
            let name = 2 + int16(at) as usize;
            answer.extend_from_slice(&bytes[at..at + name]);
            let partitions = int32(at + name);
            answer.extend_from_slice(&partitions.to_be_bytes());
            at += name + 4;
            for _ in 0..partitions {
                let (index, size) = (int32(at), int32(at + 4) as usize);
                records += u64::try_from(int32(at + 8 + 57)).unwrap();
                self.keep(index, &bytes[at + 8..at + 8 + size]);
                at += 8 + size;
                answer.extend_from_slice(&index.to_be_bytes());
                // No error, offset 0, no append time, log start 0, no record errors, no message.
                answer.extend_from_slice(&[0; 2 + 8]);
                answer.extend_from_slice(&(-1_i64).to_be_bytes());
                answer.extend_from_slice(&[0; 8 + 4]);
                answer.extend_from_slice(&(-1_i16).to_be_bytes());
            }
        }
        answer.extend_from_slice(&[0; 4]);
        (records, answer)
    }

    fn keep(&self, index: i32, batch: &[u8]) {
        if !self.keeps {
            return;
        }
        let count = i32::from_be_bytes(batch[57..61].try_into().unwrap());
        let mut batch = batch.to_vec();
        let mut logs = self.logs.lock().unwrap();
        let log = &mut logs[index as usize];
        batch[..8].copy_from_slice(&log.end.to_be_bytes());
        log.batches.push_back((log.end, Bytes::from(batch)));
        log.end += i64::from(count);
        if log.batches.len() > KEPT {
            log.batches.pop_front();
        }
        drop(logs);
        self.more.notify_all();
    }

    /// Handles a fetch request: waits for data up to its maximum wait; responds without a session, so that every
    /// request names all partitions.
    fn fetched(&self, answer: &mut BytesMut, correlation: i32, request: &FetchRequest) {
        let until = Instant::now() + Duration::from_millis(request.max_wait_ms as u64);
        let wanted = &request.topics[0];
        let mut logs = self.logs.lock().unwrap();
        while !wanted.partitions.iter().any(|one| logs[one.partition as usize].end > one.fetch_offset) {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            logs = self.more.wait_timeout(logs, left).unwrap().0;
        }
        answer.extend_from_slice(&correlation.to_be_bytes());
        // No throttling, no error, no session, one topic.
        answer.extend_from_slice(&[0; 4 + 2 + 4]);
        answer.extend_from_slice(&1_i32.to_be_bytes());
        let name = wanted.topic.as_bytes();
        answer.extend_from_slice(&(i16::try_from(name.len()).unwrap()).to_be_bytes());
        answer.extend_from_slice(name);
        answer.extend_from_slice(&length(wanted.partitions.len()).to_be_bytes());
        for one in &wanted.partitions {
            let log = &logs[one.partition as usize];
            answer.extend_from_slice(&one.partition.to_be_bytes());
            answer.extend_from_slice(&[0; 2]);
            answer.extend_from_slice(&log.end.to_be_bytes());
            answer.extend_from_slice(&log.end.to_be_bytes());
            answer.extend_from_slice(&[0; 8 + 4]);
            answer.extend_from_slice(&(-1_i32).to_be_bytes());
            let from = log.batches.partition_point(|(offset, _)| *offset < one.fetch_offset);
            let batches = log.batches.iter().skip(from);
            let size: usize = batches.clone().map(|(_, batch)| batch.len()).sum();
            answer.extend_from_slice(&length(size).to_be_bytes());
            batches.for_each(|(_, batch)| answer.extend_from_slice(batch));
        }
    }

    fn metadata(&self, rest: &mut Bytes, version: i16) -> MetadataResponse {
        let request = MetadataRequest::decode(rest, version).unwrap();
        let host = StrBytes::from_string(self.address.ip().to_string());
        let broker = MetadataResponseBroker::default()
            .with_node_id(1.into())
            .with_host(host)
            .with_port(self.address.port().into());
        let partitions = (0..self.partitions).map(|index| {
            MetadataResponsePartition::default()
                .with_partition_index(index)
                .with_leader_id(1.into())
                .with_replica_nodes(vec![1.into()])
        });
        let topics = request.topics.unwrap_or_default().into_iter().map(|topic| {
            MetadataResponseTopic::default().with_name(topic.name).with_partitions(partitions.clone().collect())
        });
        MetadataResponse::default()
            .with_brokers(vec![broker])
            .with_controller_id(1.into())
            .with_topics(topics.collect())
    }

    fn offsets(&self, rest: &mut Bytes, version: i16) -> ListOffsetsResponse {
        let request = ListOffsetsRequest::decode(rest, version).unwrap();
        let logs = self.logs.lock().unwrap();
        let topics = request.topics.into_iter().map(|topic| {
            let partitions = topic.partitions.iter().map(|one| {
                ListOffsetsPartitionResponse::default()
                    .with_partition_index(one.partition_index)
                    .with_offset(logs[one.partition_index as usize].end)
            });
            ListOffsetsTopicResponse::default().with_name(topic.name).with_partitions(partitions.collect())
        });
        ListOffsetsResponse::default().with_topics(topics.collect())
    }
}

fn versions() -> ApiVersionsResponse {
    let known =
        [(PRODUCE, 8), (FETCH, 11), (LIST_OFFSETS, 5), (METADATA, 9), (INIT_PRODUCER_ID, 4), (DESCRIBE_CONFIGS, 3)];
    let apis = known.map(|(api, version)| {
        ApiVersion::default().with_api_key(api).with_min_version(version).with_max_version(version)
    });
    ApiVersionsResponse::default().with_api_keys(apis.to_vec())
}

fn settings(rest: &mut Bytes, version: i16) -> DescribeConfigsResponse {
    let request = DescribeConfigsRequest::decode(rest, version).unwrap();
    let results = request.resources.into_iter().map(|resource| {
        DescribeConfigsResult::default()
            .with_resource_type(resource.resource_type)
            .with_resource_name(resource.resource_name)
    });
    DescribeConfigsResponse::default().with_results(results.collect())
}

fn put<M: Encodable + HeaderVersion>(answer: &mut BytesMut, correlation: i32, version: i16, message: &M) {
    let header = ResponseHeader::default().with_correlation_id(correlation);
    // ApiVersions responses keep header version 0, since the client does not know the supported versions yet.
    header.encode(answer, M::header_version(version)).unwrap();
    message.encode(answer, version).unwrap();
}
