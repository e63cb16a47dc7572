//! Reference client that only sends and waits: its latency is that of the machine (thread wake-up, loopback transfer)
//! and of the broker, without any of the client under test.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use cliffwatch_kafka::take_short_turns;
use hdrhistogram::Histogram;

/// Length of a record batch header (message format 2); its last 4 bytes are the record count.
const BATCH_HEADER_BYTES: usize = 61;

/// Sends `rate` single-record requests per second and returns the latency from due time to response, in nanoseconds.
/// Blocks until all responses have arrived.
pub fn latency(broker: SocketAddr, rate: f64, seconds: f64) -> Histogram<u64> {
    let mut stream = TcpStream::connect(broker).unwrap();
    stream.set_nodelay(true).unwrap();
    let mut input = stream.try_clone().unwrap();
    let count = (rate * seconds) as u32;
    let begun = Instant::now() + Duration::from_millis(100);
    let due = move |index: u32| begun + Duration::from_secs_f64(f64::from(index) / rate);
    let reader = std::thread::spawn(move || {
        take_short_turns();
        let mut latency = Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3).unwrap();
        let (mut announced, mut answer) = ([0; 4], Vec::new());
        for index in 0..count {
            input.read_exact(&mut announced).unwrap();
            answer.resize(u32::from_be_bytes(announced) as usize, 0);
            input.read_exact(&mut answer).unwrap();
            latency.record(u64::try_from(due(index).elapsed().as_nanos()).unwrap()).unwrap();
        }
        latency
    });
    take_short_turns();
    for index in 0..count {
        std::thread::sleep(due(index).saturating_duration_since(Instant::now()));
        stream.write_all(&request(index)).unwrap();
    }
    reader.join().unwrap()
}

/// Encodes a produce request (version 8) with one batch header that states one record, for partition 0.
fn request(correlation: u32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&0_i16.to_be_bytes());
    body.extend_from_slice(&8_i16.to_be_bytes());
    body.extend_from_slice(&correlation.to_be_bytes());
    // No client id, no transactional id, acks=all, timeout 30 s.
    body.extend_from_slice(&(-1_i16).to_be_bytes());
    body.extend_from_slice(&(-1_i16).to_be_bytes());
    body.extend_from_slice(&(-1_i16).to_be_bytes());
    body.extend_from_slice(&30_000_i32.to_be_bytes());
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&4_i16.to_be_bytes());
    body.extend_from_slice(b"null");
    body.extend_from_slice(&1_i32.to_be_bytes());
    body.extend_from_slice(&0_i32.to_be_bytes());
    body.extend_from_slice(&(BATCH_HEADER_BYTES as u32).to_be_bytes());
    body.extend_from_slice(&[0; BATCH_HEADER_BYTES - 4]);
    body.extend_from_slice(&1_i32.to_be_bytes());
    let mut request = u32::try_from(body.len()).unwrap().to_be_bytes().to_vec();
    request.append(&mut body);
    request
}
