//! Load on the null broker, and the latencies that it reported.

use std::io::Write;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use cliffwatch_kafka::Config;
use cliffwatch_measure::clock::Clock;
use cliffwatch_measure::output::Output;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::Deserializer;
use serde_json::{Value, json};

/// Parameters of a load.
pub struct Load {
    /// Target rate in records per second.
    pub rate: f64,
    /// Duration in seconds.
    pub seconds: f64,
    /// Whether the records are also consumed.
    pub consumes: bool,
}

/// Latencies that a load reported.
pub struct Reported {
    publish: Histogram<u64>,
    end_to_end: Histogram<u64>,
    seconds: Vec<[u64; 2]>,
}

impl Reported {
    /// Quantile (0 to 1) of the publish latency: from due time to acknowledgement.
    pub fn publish(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.publish.value_at_quantile(quantile))
    }

    /// Quantile (0 to 1) of the end-to-end latency: from due time to reading.
    pub fn end_to_end(&self, quantile: f64) -> Duration {
        Duration::from_nanos(self.end_to_end.value_at_quantile(quantile))
    }

    /// Lowest p99 of any one-second window: publish latency, end-to-end latency.
    pub fn quietest_second(&self) -> [Duration; 2] {
        [0, 1].map(|of| Duration::from_nanos(self.seconds.iter().map(|one| one[of]).min().unwrap_or_default()))
    }

    /// Number of records acknowledged.
    pub fn count(&self) -> u64 {
        self.publish.len()
    }
}

/// Quantile (0 to 1) of a broker's hold times.
pub fn quantile(held: &Mutex<Histogram<u64>>, quantile: f64) -> Duration {
    Duration::from_nanos(held.lock().unwrap().value_at_quantile(quantile))
}

/// Adds a window's histogram of this latency and returns its p99 in nanoseconds; `u64::MAX` when it has none.
fn merge(into: &mut Histogram<u64>, window: &Value, name: &str) -> u64 {
    let Some(text) = window["latency"][name].as_str() else { return u64::MAX };
    let bytes = base64::engine::general_purpose::STANDARD.decode(text).unwrap();
    let histogram: Histogram<u64> = Deserializer::new().deserialize(&mut bytes.as_slice()).unwrap();
    into.add(&histogram).unwrap();
    histogram.value_at_quantile(0.99)
}

/// Output buffer for the lines that a load prints.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Runs a load in this process and returns its latencies. Blocks until the load has ended; panics when it fails.
pub fn execute(broker: SocketAddr, load: &Load) -> Reported {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs_f64();
    let start = now.ceil() + 1.0;
    let document = json!({
        "start": start, "stop": start + load.seconds, "window_seconds": 1.0,
        "bootstrap_servers": [broker.to_string()], "topics": {"existing": ["null"]},
        // Enough in-flight requests that no record waits for another's response.
        "producer": {"rate": load.rate, "linger_seconds": 0.0, "max_in_flight": 1000, "idempotence": false},
        "consumer": if load.consumes { json!({}) } else { Value::Null },
    });
    let (lines, clock) = (Lines::default(), Clock::anchored());
    let config = Config::parse(&document.to_string()).unwrap();
    cliffwatch_kafka::execute(config, clock, Output::new(lines.clone(), clock), false).unwrap();
    let empty = || Histogram::new_with_bounds(1_000, 3_600_000_000_000, 3).unwrap();
    let mut reported = Reported { publish: empty(), end_to_end: empty(), seconds: Vec::new() };
    let bytes = lines.0.lock().unwrap().clone();
    for line in String::from_utf8(bytes).unwrap().lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let publish = merge(&mut reported.publish, &line, "publish");
        let end_to_end = merge(&mut reported.end_to_end, &line, "end_to_end");
        reported.seconds.push([publish, end_to_end]);
    }
    reported
}
