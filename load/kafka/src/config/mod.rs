//! The engine's configuration: one JSON document, given as `--config FILE`.
//!
//! Unknown keys are refused. Times are in seconds (points in time since the epoch), sizes in bytes, rates in records a
//! second. Only `start`, `window_seconds`, `bootstrap_servers` and `topics` must be given, and one of `producer` and
//! `consumer`:
//!
//! ```json
//! {
//!   "run_id": "nightly-17",
//!   "start": 1790000000.0, "stop": 1790086400.0, "window_seconds": 10.0,
//!   "bootstrap_servers": ["127.0.0.1:9092"],
//!   "client_id": "cliffwatch",
//!   "security": {
//!     "tls": {"ca_file": "ca.pem", "certificate_file": null, "key_file": null, "server_name": null},
//!     "sasl": {"mechanism": "SCRAM-SHA-256", "username": "soak", "password_file": "password"}
//!   },
//!   "topics": {
//!     "existing": [],
//!     "prefix": "cliffwatch-nightly-17", "count": 1, "partitions": 288, "replication_factor": 3,
//!     "settings": {"min.insync.replicas": "2"}, "delete_at_end": true
//!   },
//!   "producer": {
//!     "producers": 4,
//!     "rate": 1024000.0,
//!     "steps": [{"after_seconds": 3600.0, "rate": 2048000.0}],
//!     "catch_up_ratio": 2.0,
//!     "record_sizes": [{"size_bytes": 1024, "weight": 1.0}],
//!     "random_ratio": 1.0,
//!     "key": {"distribution": "none", "count": 10000, "exponent": 0.99},
//!     "acks": "all", "idempotence": true, "compression": "none",
//!     "linger_seconds": 0.001, "batch_size_bytes": 131072, "request_size_bytes": 1048576,
//!     "max_in_flight": 5, "buffer_bytes": 33554432,
//!     "request_timeout_seconds": 30.0, "delivery_timeout_seconds": 120.0,
//!     "retry_backoff_seconds": 0.1, "retry_backoff_max_seconds": 1.0
//!   },
//!   "consumer": {
//!     "consumers": 4, "group": null, "from": "latest",
//!     "fetch_min_bytes": 1, "fetch_max_wait_seconds": 0.5, "fetch_max_bytes": 8388608,
//!     "partition_max_bytes": 1048576,
//!     "pauses": [{"after_seconds": 600.0, "seconds": 300.0, "until_bytes": null}],
//!     "clock_offset_seconds": null
//!   },
//!   "search": null,
//!   "drain_timeout_seconds": 30.0
//! }
//! ```
//!
//! The engine prints the lines of the engine contract on stdout. `docs/engines/kafka.md` lists its counters, gauges and
//! events.

mod consumer;
mod producer;
mod security;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;

use crate::error::Error;

pub(crate) use consumer::{ConsumerSettings, Pause, Search, StartFrom};
pub(crate) use producer::{Acks, Compression, KeyDistribution, KeySettings, ProducerSettings};
pub(crate) use security::{Mechanism, Sasl, SecuritySettings, Tls};

/// Configuration of the engine: the whole JSON document.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Name of the run that the load belongs to; informational.
    #[serde(default)]
    #[expect(dead_code, reason = "documents name the run, and the engine needs no name of it")]
    pub(crate) run_id: String,
    /// Start of the load, in seconds since the epoch, at a window bound.
    pub(crate) start: f64,
    /// End of the load, in seconds since the epoch; without it, SIGTERM or SIGINT ends the load.
    #[serde(default)]
    pub(crate) stop: Option<f64>,
    /// Start of the run's first load, in seconds since the epoch, when this one continues it. Without it this is the
    /// first: if not ready at `start`, it begins at a later window bound and ends as much later.
    #[serde(default)]
    pub(crate) begun: Option<f64>,
    /// Length of a window in seconds, at least 0.01; window bounds are its multiples.
    pub(crate) window_seconds: f64,
    /// Bootstrap servers, `host:port` each; one that answers is enough.
    pub(crate) bootstrap_servers: Vec<String>,
    /// Kafka client id, by which the broker's logs and quotas identify this client.
    #[serde(default = "default_client_id")]
    pub(crate) client_id: String,
    /// TLS and SASL; without it, plain TCP without authentication.
    #[serde(default)]
    pub(crate) security: SecuritySettings,
    /// Topics to produce to and consume from.
    pub(crate) topics: Topics,
    /// Settings of the producers; without it, nothing is produced.
    #[serde(default)]
    pub(crate) producer: Option<ProducerSettings>,
    /// Settings of the consumers; without it, nothing is consumed.
    #[serde(default)]
    pub(crate) consumer: Option<ConsumerSettings>,
    /// Search for the maximum sustainable rate, instead of `producer.rate`; needs producer and consumer.
    #[serde(default)]
    pub(crate) search: Option<Search>,
    /// Longest wait for acknowledgements and unread records after the load's end, in seconds; default 30.
    #[serde(default = "default_drain_timeout")]
    pub(crate) drain_timeout_seconds: f64,
}

/// Topics of the load: either existing ones, which are never changed, or ones created with `prefix`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Topics {
    /// Names of existing topics, which are never created, changed or deleted.
    #[serde(default)]
    pub(crate) existing: Vec<String>,
    /// Prefix of topics to create, named `<prefix>-<number>` with five digits. Those that exist already must have the
    /// `partitions`, `replication_factor` and `settings` given here.
    #[serde(default)]
    pub(crate) prefix: Option<String>,
    /// Number of topics to create.
    #[serde(default = "one")]
    pub(crate) count: u32,
    /// Partitions of each created topic.
    #[serde(default = "one")]
    pub(crate) partitions: u32,
    /// Replicas of each partition of created topics; without it, the broker's default.
    #[serde(default)]
    pub(crate) replication_factor: Option<i16>,
    /// Topic-level settings of created topics, by Kafka's names, such as `min.insync.replicas`.
    #[serde(default)]
    pub(crate) settings: BTreeMap<String, String>,
    /// Delete the topics of `prefix` when the load has ended; default true.
    #[serde(default = "yes")]
    pub(crate) delete_at_end: bool,
}

impl Topics {
    /// Names of all topics, existing or to be created.
    #[must_use]
    pub(crate) fn names(&self) -> Vec<String> {
        match &self.prefix {
            Some(prefix) => (0..self.count).map(|number| format!("{prefix}-{number:05}")).collect(),
            None => self.existing.clone(),
        }
    }
}

impl Config {
    /// Reads, parses and checks the document at `path`.
    ///
    /// # Errors
    /// `Error::Config` when the file cannot be read, or naming the field at fault and what would be right.
    pub(crate) fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Config(format!("{} cannot be read: {error}", path.display())))?;
        Self::parse(&text)
    }

    /// Parses and checks a JSON document.
    ///
    /// # Errors
    /// `Error::Config` naming the field at fault and what would be right.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let config: Self = serde_json::from_str(text).map_err(|error| Error::Config(error.to_string()))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Config(text.to_owned()));
        if !(self.window_seconds.is_finite() && self.window_seconds >= 0.01) {
            return wrong("window_seconds: give 0.01 or more");
        }
        if !(self.start.is_finite() && self.start > 0.0) || self.stop.is_some_and(|stop| stop <= self.start) {
            return wrong("start, stop: give seconds since the epoch, start before stop");
        }
        if self.bootstrap_servers.is_empty() {
            return wrong("bootstrap_servers: give at least one host:port");
        }
        if self.topics.existing.is_empty() == self.topics.prefix.is_none() {
            return wrong("topics: give either existing topics or a prefix of topics to make");
        }
        if self.topics.count == 0 || self.topics.partitions == 0 {
            return wrong("topics: count and partitions are at least 1");
        }
        if self.producer.is_none() && self.consumer.is_none() {
            return wrong("give a producer, a consumer or both");
        }
        if self.search.is_some() && (self.producer.is_none() || self.consumer.is_none()) {
            return wrong("search: needs a producer and a consumer");
        }
        if let Some(producer) = &self.producer {
            producer.check()?;
        }
        if let Some(consumer) = &self.consumer {
            consumer.check()?;
        }
        Ok(())
    }
}

fn default_client_id() -> String {
    "cliffwatch".to_owned()
}

fn default_drain_timeout() -> f64 {
    30.0
}

fn yes() -> bool {
    true
}

fn one() -> u32 {
    1
}

fn one_float() -> f64 {
    1.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Default of a field as documented in `docs/workloads.md`.
    fn stated(field: &str) -> String {
        let page = include_str!("../../../../docs/workloads.md");
        let row = page.lines().find_map(|line| line.strip_prefix(&format!("| `{field}` | ")));
        row.unwrap().split(" | ").next().unwrap().replace('`', "")
    }

    fn size(text: &str) -> usize {
        let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("B", 1)];
        let (unit, bytes) = units.iter().find(|(unit, _)| text.ends_with(unit)).unwrap();
        text.trim_end_matches(unit).parse::<usize>().unwrap() * bytes
    }

    fn seconds(text: &str) -> f64 {
        match text.strip_suffix("ms") {
            Some(milliseconds) => milliseconds.parse::<f64>().unwrap() / 1e3,
            None => text.strip_suffix('s').unwrap().parse().unwrap(),
        }
    }

    #[test]
    fn defaults_are_those_that_the_page_of_workloads_states() {
        let text = r#"{"start": 1.0, "window_seconds": 1.0, "bootstrap_servers": ["a:1"], "topics": {"prefix": "a"},
            "producer": {}, "consumer": {}, "search": {"first_rate": 1.0, "trial_seconds": 5.0, "p99_seconds": 1.0}}"#;
        let config = Config::parse(text).unwrap();
        let (producer, consumer) = (config.producer.unwrap(), config.consumer.unwrap());
        for (field, value) in [
            ("producer.record_size", producer.record_sizes[0].size_bytes),
            ("producer.batch_size", producer.batch_size_bytes),
            ("producer.request_size", producer.request_size_bytes),
            ("producer.buffer", producer.buffer_bytes),
            ("consumer.fetch_min", consumer.fetch_min_bytes as usize),
            ("consumer.fetch_max", consumer.fetch_max_bytes as usize),
            ("consumer.partition_max", consumer.partition_max_bytes as usize),
        ] {
            assert_eq!(size(&stated(field)), value, "{field}");
        }
        let search = config.search.unwrap();
        for (field, value) in [
            ("producer.linger", producer.linger_seconds),
            ("producer.request_timeout", producer.request_timeout_seconds),
            ("producer.delivery_timeout", producer.delivery_timeout_seconds),
            ("producer.retry_backoff", producer.retry_backoff_seconds),
            ("producer.retry_backoff_max", producer.retry_backoff_max_seconds),
            ("consumer.fetch_max_wait", consumer.fetch_max_wait_seconds),
            ("search.behind", search.behind_seconds),
            ("drain_timeout", config.drain_timeout_seconds),
        ] {
            assert_eq!(seconds(&stated(field)), value, "{field}");
        }
        for (field, value) in [
            ("topics.count", f64::from(config.topics.count)),
            ("topics.partitions", f64::from(config.topics.partitions)),
            ("producer.producers", f64::from(producer.producers)),
            ("producer.catch_up_ratio", producer.catch_up_ratio),
            ("producer.random_ratio", producer.random_ratio),
            ("producer.key.count", f64::from(producer.key.count)),
            ("producer.key.exponent", producer.key.exponent),
            ("producer.max_in_flight", producer.max_in_flight as f64),
            ("consumer.consumers", f64::from(consumer.consumers)),
            ("search.resolution_ratio", search.resolution_ratio),
        ] {
            assert_eq!(stated(field).parse::<f64>().unwrap(), value, "{field}");
        }
        assert_eq!(stated("client_id"), config.client_id);
    }
}
