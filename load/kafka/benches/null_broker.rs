//! A broker that acknowledges whatever it is sent and keeps nothing, as a process: prints where it listens, and ends with its
//! standard input. The benchmark of memory produces to it.

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

use cliffwatch_kafka_testkit::null_broker;

const PARTITIONS: i32 = 288;

fn main() {
    let (address, _) = null_broker::start(PARTITIONS, false, Arc::new(|_| Duration::ZERO));
    println!("{address}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
