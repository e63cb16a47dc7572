//! Null broker as a process, for the memory benchmark to produce to: acknowledges everything and stores nothing. Prints
//! its address, and exits when its standard input is closed.

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
