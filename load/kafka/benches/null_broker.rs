//! A broker that acknowledges whatever it is sent and keeps nothing, as a process: prints where it listens, and ends with its
//! standard input. The benchmark of memory produces to it.

#[path = "../tests/null_broker/mod.rs"]
mod null_broker;

use std::io::Read;
use std::sync::Arc;
use std::time::Duration;

const PARTITIONS: i32 = 288;

fn main() {
    let (address, _) = null_broker::start(PARTITIONS, false, Arc::new(|_| Duration::ZERO));
    println!("{address}");
    let _ = std::io::stdin().read_to_end(&mut Vec::new());
}
