//! What the client itself adds: a load of 100,000 records a second on a broker that keeps nothing, without linger.
//!
//! Prints one line a latency: its median and 99th percentile in microseconds.

#[path = "../tests/null_broker/mod.rs"]
mod null_broker;

use std::sync::Arc;
use std::time::Duration;

use null_broker::load::{Load, Told, carry_out};

fn main() {
    let broker = null_broker::start(24, true, Arc::new(|_| Duration::ZERO));
    let told = carry_out(broker, &Load { rate: 100_000.0, seconds: 10.0, consumes: true });
    let show = |name: &str, quantile: fn(&Told, f64) -> Duration| {
        println!("{name} {:.1} {:.1}", microseconds(quantile(&told, 0.5)), microseconds(quantile(&told, 0.99)));
    };
    show("publish", Told::publish);
    show("end_to_end", Told::end_to_end);
}

fn microseconds(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e6
}
