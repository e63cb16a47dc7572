//! What the engine is told: one JSON document, given as `--config FILE`.
//!
//! Unknown keys are refused. Times are seconds (since the epoch where they say when), sizes are bytes, rates are records
//! a second. Only `start`, `window_seconds`, `bootstrap_servers` and `topics` must be given, and one of `producer` and
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
//!     "clock_offset_seconds": 0.0
//!   },
//!   "search": null,
//!   "drain_timeout_seconds": 30.0
//! }
//! ```
//!
//! The engine prints the lines of the engine contract on stdout. `docs/engines/kafka.md` lists its counters, gauges and
//! events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::error::Error;

/// The whole document.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Names the run in `client_id` and in what is told; not in any record.
    #[serde(default)]
    pub run_id: String,
    /// When the load begins, on the grid of windows.
    pub start: f64,
    /// When the load ends; without it, when SIGTERM or SIGINT comes.
    #[serde(default)]
    pub stop: Option<f64>,
    /// Length of a window. Window bounds are its multiples.
    pub window_seconds: f64,
    /// `host:port` each; one that answers is enough.
    pub bootstrap_servers: Vec<String>,
    /// What the broker knows this client by, in its logs and quotas.
    #[serde(default = "default_client_id")]
    pub client_id: String,
    /// Without it, plain TCP and no authentication.
    #[serde(default)]
    pub security: Security,
    /// Where records go and come from.
    pub topics: Topics,
    /// Without it nothing is produced.
    #[serde(default)]
    pub producer: Option<Producer>,
    /// Without it nothing is consumed.
    #[serde(default)]
    pub consumer: Option<Consumer>,
    /// Look for the highest rate that can be sustained, instead of keeping to `producer.rate`.
    #[serde(default)]
    pub search: Option<Search>,
    /// How long, after the load's end, acknowledgements and unread records are waited for.
    #[serde(default = "default_drain_timeout")]
    pub drain_timeout_seconds: f64,
}

/// How connections are protected.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Security {
    /// TLS, when present.
    #[serde(default)]
    pub tls: Option<Tls>,
    /// SASL, when present.
    #[serde(default)]
    pub sasl: Option<Sasl>,
}

/// TLS: PEM files.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    /// Certificates that the broker's is checked against.
    pub ca_file: PathBuf,
    /// The client's own certificate, for brokers that ask for one; with `key_file`.
    #[serde(default)]
    pub certificate_file: Option<PathBuf>,
    /// The key of `certificate_file`.
    #[serde(default)]
    pub key_file: Option<PathBuf>,
    /// The name that the broker's certificate must be for, where that is not the host that is connected to.
    #[serde(default)]
    pub server_name: Option<String>,
}

/// SASL: who the client is.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sasl {
    /// How the password is proven.
    pub mechanism: Mechanism,
    /// The user.
    pub username: String,
    /// A file that holds the password; a line end after it is ignored.
    pub password_file: PathBuf,
}

/// How a password is proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub enum Mechanism {
    /// The password itself is sent.
    #[serde(rename = "PLAIN")]
    Plain,
    /// RFC 5802 with SHA-256.
    #[serde(rename = "SCRAM-SHA-256")]
    ScramSha256,
    /// RFC 5802 with SHA-512.
    #[serde(rename = "SCRAM-SHA-512")]
    ScramSha512,
}

impl Mechanism {
    /// The name on the wire.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "PLAIN",
            Self::ScramSha256 => "SCRAM-SHA-256",
            Self::ScramSha512 => "SCRAM-SHA-512",
        }
    }
}

/// Which topics: either existing ones, which are left alone, or ones made with `prefix`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Topics {
    /// Topics that are there already. Never made, changed or deleted.
    #[serde(default)]
    pub existing: Vec<String>,
    /// Topics are made as `<prefix>-<number>`, five digits. Those that are there already must have `partitions`,
    /// `replication_factor` and `settings` as asked for.
    #[serde(default)]
    pub prefix: Option<String>,
    /// How many to make.
    #[serde(default = "one")]
    pub count: u32,
    /// Partitions of each.
    #[serde(default = "one")]
    pub partitions: u32,
    /// Replicas of each partition; without it the broker's default.
    #[serde(default)]
    pub replication_factor: Option<i16>,
    /// Settings of each topic, as the broker names them.
    #[serde(default)]
    pub settings: BTreeMap<String, String>,
    /// Delete the topics of `prefix` when the load has ended.
    #[serde(default = "yes")]
    pub delete_at_end: bool,
}

impl Topics {
    /// The names of all topics, existing or to be made.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        match &self.prefix {
            Some(prefix) => (0..self.count).map(|number| format!("{prefix}-{number:05}")).collect(),
            None => self.existing.clone(),
        }
    }
}

/// What produces.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Producer {
    /// How many producers, each with a thread, connections and a producer id of its own.
    #[serde(default = "one")]
    pub producers: u32,
    /// Records a second of all producers together; null for as many as the broker takes.
    #[serde(default)]
    pub rate: Option<f64>,
    /// Later rates, in order of time.
    #[serde(default)]
    pub steps: Vec<Step>,
    /// After a stall, overdue records are sent at up to this many times the rate; at least 1.
    #[serde(default = "default_catch_up")]
    pub catch_up_ratio: f64,
    /// Sizes of a record's value, chosen by weight.
    #[serde(default = "default_sizes")]
    pub record_sizes: Vec<RecordSize>,
    /// Share of a value that is random and so does not compress; the rest repeats.
    #[serde(default = "one_float")]
    pub random_ratio: f64,
    /// Keys, and so partitions.
    #[serde(default)]
    pub key: Key,
    /// Who must have a record before it is acknowledged.
    #[serde(default)]
    pub acks: Acks,
    /// Have the broker reject what a retry would write twice. Needs `acks` all and `max_in_flight` 5 at most.
    #[serde(default)]
    pub idempotence: Option<bool>,
    /// How batches are compressed.
    #[serde(default)]
    pub compression: Compression,
    /// How long a record waits for others to share its batch.
    #[serde(default = "default_linger")]
    pub linger_seconds: f64,
    /// A batch is sent when it has grown to this.
    #[serde(default = "default_batch_size")]
    pub batch_size_bytes: usize,
    /// A request carries batches of many partitions, up to this.
    #[serde(default = "default_request_size")]
    pub request_size_bytes: usize,
    /// Requests under way on a connection.
    #[serde(default = "default_in_flight")]
    pub max_in_flight: usize,
    /// Batches of all producers together that are waiting or under way; when they have grown to this, nothing more is
    /// made and the schedule falls behind.
    #[serde(default = "default_buffer")]
    pub buffer_bytes: usize,
    /// A request that is not answered in this time has failed.
    #[serde(default = "default_request_timeout")]
    pub request_timeout_seconds: f64,
    /// A record that is not acknowledged in this time has failed and is an error.
    #[serde(default = "default_delivery_timeout")]
    pub delivery_timeout_seconds: f64,
    /// The first wait before something is tried again; each further one is twice as long.
    #[serde(default = "default_backoff")]
    pub retry_backoff_seconds: f64,
    /// The longest wait before something is tried again.
    #[serde(default = "default_backoff_max")]
    pub retry_backoff_max_seconds: f64,
}

impl Producer {
    /// Whether the broker rejects duplicates: as asked for, and otherwise whenever the other settings allow it.
    #[must_use]
    pub fn is_idempotent(&self) -> bool {
        self.idempotence.unwrap_or(self.acks == Acks::All && self.max_in_flight <= IDEMPOTENT_IN_FLIGHT)
    }
}

/// A later rate.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Step {
    /// Since the load's start.
    pub after_seconds: f64,
    /// Records a second of all producers together.
    pub rate: f64,
}

/// A size of a record's value and how often it comes, relative to the others.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecordSize {
    /// Of the value, without key and framing.
    pub size_bytes: usize,
    /// Relative to those of the other sizes.
    #[serde(default = "one_float")]
    pub weight: f64,
}

/// Which keys records have.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// How a record's key is chosen.
    #[serde(default)]
    pub distribution: KeyDistribution,
    /// How many keys there are.
    #[serde(default = "default_keys")]
    pub count: u32,
    /// Of the Zipf distribution: the k-th key comes with weight 1 / k to this power.
    #[serde(default = "default_exponent")]
    pub exponent: f64,
}

impl Default for Key {
    fn default() -> Self {
        Self { distribution: KeyDistribution::None, count: default_keys(), exponent: default_exponent() }
    }
}

/// How a record's key is chosen. Keys are hashed to partitions as Kafka's own client does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyDistribution {
    /// No key: a batch of records goes to one partition, the next batch to the next that has a leader.
    #[default]
    None,
    /// Each key in turn.
    RoundRobin,
    /// Each key as often as any other.
    Random,
    /// A few keys most of the time.
    Zipf,
}

/// Who must have a record before it is acknowledged.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub enum Acks {
    /// Nobody: a record counts as published once it is written to the connection.
    #[serde(rename = "0")]
    None,
    /// The partition's leader.
    #[serde(rename = "1")]
    Leader,
    /// All replicas in sync.
    #[default]
    #[serde(rename = "all")]
    All,
}

/// How batches are compressed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compression {
    /// They are not.
    #[default]
    None,
    /// RFC 1952.
    Gzip,
    /// Snappy, in the framing of xerial's library.
    Snappy,
    /// LZ4 frames.
    Lz4,
    /// Zstandard.
    Zstd,
}

/// What consumes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumer {
    /// How many consumers, each with a thread and connections of its own; partitions are dealt out among them.
    #[serde(default = "one")]
    pub consumers: u32,
    /// Take part in this consumer group instead of reading all partitions.
    #[serde(default)]
    pub group: Option<String>,
    /// Where reading begins.
    #[serde(default)]
    pub from: From,
    /// The broker answers once it has this much.
    #[serde(default = "default_fetch_min")]
    pub fetch_min_bytes: i32,
    /// … or once this has passed.
    #[serde(default = "default_fetch_wait")]
    pub fetch_max_wait_seconds: f64,
    /// The most that an answer holds.
    #[serde(default = "default_fetch_max")]
    pub fetch_max_bytes: i32,
    /// The most of one partition that an answer holds.
    #[serde(default = "default_partition_max")]
    pub partition_max_bytes: i32,
    /// When to stop reading for a while, to build a backlog. In order of time.
    #[serde(default)]
    pub pauses: Vec<Pause>,
    /// Added to this host's clock to get the producer's, when another host produces.
    #[serde(default)]
    pub clock_offset_seconds: f64,
}

/// Where reading begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum From {
    /// At the first record that is kept.
    Earliest,
    /// At the end as it is when the engine starts, before it produces.
    #[default]
    Latest,
}

/// A time of not reading. It ends with whichever of `seconds` and `until_bytes` comes first.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    /// Since the load's start.
    pub after_seconds: f64,
    /// How long.
    #[serde(default)]
    pub seconds: Option<f64>,
    /// Until this much has been acknowledged and not read.
    #[serde(default)]
    pub until_bytes: Option<u64>,
}

/// The search for the highest rate that can be sustained: bisection between rates that can and cannot.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Search {
    /// The first rate tried, doubled until one cannot be sustained.
    pub first_rate: f64,
    /// How long each rate is kept.
    pub trial_seconds: f64,
    /// A rate is sustained if `publish` and `end_to_end` at the 99th percentile are no longer than this…
    pub p99_seconds: f64,
    /// … and neither the schedule nor the consumers are further behind than this at the end.
    #[serde(default = "one_float")]
    pub behind_seconds: f64,
    /// The search ends when the two rates are within this ratio of each other.
    #[serde(default = "default_resolution")]
    pub resolution_ratio: f64,
}

/// The broker remembers so many batches of a producer and partition.
pub const IDEMPOTENT_IN_FLIGHT: usize = 5;

/// The place of a producer goes into a byte of its records.
const PRODUCERS_MAX: u32 = 256;

impl Config {
    /// Reads and checks the document at `path`.
    ///
    /// # Errors
    /// `Error::Config`, naming the field at fault and what would be right.
    pub fn load(path: &Path) -> Result<Self, Error> {
        let text = std::fs::read_to_string(path)
            .map_err(|error| Error::Config(format!("{} cannot be read: {error}", path.display())))?;
        Self::parse(&text)
    }

    /// Reads and checks a document.
    ///
    /// # Errors
    /// `Error::Config`, naming the field at fault and what would be right.
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

impl Producer {
    fn check(&self) -> Result<(), Error> {
        let wrong = |text: String| Err(Error::Config(text));
        let smallest = cliffwatch_measure::record::HEADER_BYTES;
        if !(1..=PRODUCERS_MAX).contains(&self.producers) {
            return wrong(format!("producer.producers: from 1 to {PRODUCERS_MAX}"));
        }
        if self.rate.is_some_and(|rate| !(rate.is_finite() && rate > 0.0)) {
            return wrong("producer.rate: more than 0, or null for as many as the broker takes".to_owned());
        }
        if self.steps.iter().any(|step| !(step.rate.is_finite() && step.rate > 0.0)) {
            return wrong("producer.steps: each rate is more than 0".to_owned());
        }
        if self.rate.is_none() && !self.steps.is_empty() {
            return wrong("producer.steps: need a rate to begin with".to_owned());
        }
        if !self.steps.is_sorted_by(|a, b| a.after_seconds < b.after_seconds) {
            return wrong("producer.steps: after_seconds must rise".to_owned());
        }
        if self.record_sizes.is_empty() || self.record_sizes.iter().any(|size| size.size_bytes < smallest) {
            return wrong(format!("producer.record_sizes: each is at least {smallest} bytes, which prove the record"));
        }
        if self.record_sizes.iter().any(|size| !(size.weight.is_finite() && size.weight > 0.0)) {
            return wrong("producer.record_sizes: each weight is more than 0".to_owned());
        }
        if !(0.0..=1.0).contains(&self.random_ratio) {
            return wrong("producer.random_ratio: between 0 and 1".to_owned());
        }
        if self.is_idempotent() && (self.acks != Acks::All || self.max_in_flight > IDEMPOTENT_IN_FLIGHT) {
            return wrong(format!(
                "producer.idempotence: needs acks \"all\" and max_in_flight of {IDEMPOTENT_IN_FLIGHT} at most"
            ));
        }
        if self.max_in_flight == 0 || self.key.count == 0 {
            return wrong("producer: max_in_flight and key.count are at least 1".to_owned());
        }
        if self.batch_size_bytes > self.buffer_bytes / self.producers as usize {
            return wrong("producer.buffer_bytes: at least batch_size_bytes for each producer".to_owned());
        }
        if !(self.catch_up_ratio.is_finite() && self.catch_up_ratio >= 1.0) {
            return wrong("producer.catch_up_ratio: at least 1".to_owned());
        }
        Ok(())
    }
}

impl Consumer {
    fn check(&self) -> Result<(), Error> {
        let wrong = |text: &str| Err(Error::Config(text.to_owned()));
        if self.consumers == 0 {
            return wrong("consumer.consumers: at least 1");
        }
        if self.fetch_min_bytes < 1 || self.fetch_max_bytes < 1 || self.partition_max_bytes < 1 {
            return wrong("consumer: fetch_min_bytes, fetch_max_bytes and partition_max_bytes are at least 1");
        }
        if self.pauses.iter().any(|pause| pause.seconds.is_none() && pause.until_bytes.is_none()) {
            return wrong("consumer.pauses: give seconds, until_bytes or both");
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
fn one() -> u32 {
    1
}
fn yes() -> bool {
    true
}
fn one_float() -> f64 {
    1.0
}
fn default_catch_up() -> f64 {
    2.0
}
fn default_sizes() -> Vec<RecordSize> {
    vec![RecordSize { size_bytes: 1024, weight: 1.0 }]
}
fn default_linger() -> f64 {
    0.001
}
fn default_batch_size() -> usize {
    128 * 1024
}
fn default_request_size() -> usize {
    1024 * 1024
}
fn default_in_flight() -> usize {
    5
}
fn default_buffer() -> usize {
    32 * 1024 * 1024
}
fn default_request_timeout() -> f64 {
    30.0
}
fn default_delivery_timeout() -> f64 {
    120.0
}
fn default_backoff() -> f64 {
    0.1
}
fn default_backoff_max() -> f64 {
    1.0
}
fn default_keys() -> u32 {
    10_000
}
fn default_exponent() -> f64 {
    0.99
}
fn default_fetch_min() -> i32 {
    1
}
fn default_fetch_wait() -> f64 {
    0.5
}
fn default_fetch_max() -> i32 {
    8 * 1024 * 1024
}
fn default_partition_max() -> i32 {
    1024 * 1024
}
fn default_resolution() -> f64 {
    0.05
}
