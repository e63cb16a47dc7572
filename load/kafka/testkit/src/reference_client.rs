//! A client that only sends and waits: what a machine takes to wake a thread up and to carry bytes is in what it sees as
//! it is in what any other client sees, and nothing else is.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use cliffwatch_kafka::take_short_turns;
use hdrhistogram::Histogram;

/// The header of a batch of records (Kafka's message format 2), which ends with how many records are in it.
const BATCH_HEADER_BYTES: usize = 61;

/// Sends one record as often a second and waits for all answers; nanoseconds from each one's due time until its answer.
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

/// A produce request, version 8, of one batch of one record for partition 0.
fn request(correlation: u32) -> Vec<u8> {
    let mut body = Vec::new();
    body.extend_from_slice(&0_i16.to_be_bytes());
    body.extend_from_slice(&8_i16.to_be_bytes());
    body.extend_from_slice(&correlation.to_be_bytes());
    // No client id, no transaction, acknowledged by all, within 30 s.
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
