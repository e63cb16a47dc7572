//! Settings of the producers: rate, record sizes, keys, acks, batching, retries.

use serde::Deserialize;

use super::{one, one_float};
use crate::error::Error;

/// Most requests in flight with idempotence: the broker recognizes a producer's last five batches per partition.
pub(crate) const IDEMPOTENT_IN_FLIGHT: usize = 5;

/// Most producers: the producer's number is one byte in its records.
const PRODUCERS_MAX: u32 = 256;

/// Settings of the producers: rate, record sizes, keys, batch size, linger, compression, acks, retries.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProducerSettings {
    /// Number of producers (1 to 256), each with its own thread, connections and producer id.
    #[serde(default = "one")]
    pub(crate) producers: u32,
    /// Target rate in records a second, all producers together; null for as fast as the broker accepts.
    #[serde(default)]
    pub(crate) rate: Option<f64>,
    /// Later changes of the target rate, in order of time.
    #[serde(default)]
    pub(crate) steps: Vec<RateStep>,
    /// Catch-up limit (1 or more, default 2): after a stall, overdue records are sent at up to this many times the
    /// rate.
    #[serde(default = "default_catch_up")]
    pub(crate) catch_up_ratio: f64,
    /// Record value sizes, chosen at random by weight.
    #[serde(default = "default_sizes")]
    pub(crate) record_sizes: Vec<RecordSize>,
    /// Incompressible share of a value, 0 to 1; the rest is one repeated byte.
    #[serde(default = "one_float")]
    pub(crate) random_ratio: f64,
    /// Record keys, which determine the partitions.
    #[serde(default)]
    pub(crate) key: KeySettings,
    /// Required acknowledgements (`acks`).
    #[serde(default)]
    pub(crate) acks: Acks,
    /// Idempotent producer (`enable.idempotence`): the broker rejects duplicates from retries. Needs `acks` all and
    /// `max_in_flight` of 5 at most; without it, enabled when these allow it.
    #[serde(default)]
    pub(crate) idempotence: Option<bool>,
    /// Compression codec of batches.
    #[serde(default)]
    pub(crate) compression: Compression,
    /// `linger.ms` in seconds: how long a batch waits for further records; default 0.001.
    #[serde(default = "default_linger")]
    pub(crate) linger_seconds: f64,
    /// `batch.size`: bytes at which a batch is sent; default 128 KiB.
    #[serde(default = "default_batch_size")]
    pub(crate) batch_size_bytes: usize,
    /// `max.request.size`: most bytes of batches in a request of several partitions; default 1 MiB.
    #[serde(default = "default_request_size")]
    pub(crate) request_size_bytes: usize,
    /// `max.in.flight.requests.per.connection`: unanswered requests per connection, at least 1; default 5.
    #[serde(default = "default_in_flight")]
    pub(crate) max_in_flight: usize,
    /// `buffer.memory` of all producers together, in bytes: batches waiting or in flight. When it is full, no more
    /// records are made and the schedule falls behind.
    #[serde(default = "default_buffer")]
    pub(crate) buffer_bytes: usize,
    /// `request.timeout.ms` in seconds: a request without an answer fails after this; default 30.
    #[serde(default = "default_request_timeout")]
    pub(crate) request_timeout_seconds: f64,
    /// `delivery.timeout.ms` in seconds: a record not acknowledged in this time fails, which is an error; default 120.
    #[serde(default = "default_delivery_timeout")]
    pub(crate) delivery_timeout_seconds: f64,
    /// `retry.backoff.ms` in seconds: wait before the first retry, doubled for each further one; default 0.1.
    #[serde(default = "default_backoff")]
    pub(crate) retry_backoff_seconds: f64,
    /// `retry.backoff.max.ms` in seconds: longest wait before a retry; default 1.
    #[serde(default = "default_backoff_max")]
    pub(crate) retry_backoff_max_seconds: f64,
}

impl ProducerSettings {
    /// Whether the producers are idempotent: as set, or else if `acks` and `max_in_flight` allow it.
    #[must_use]
    pub(crate) fn is_idempotent(&self) -> bool {
        self.idempotence.unwrap_or(self.acks == Acks::All && self.max_in_flight <= IDEMPOTENT_IN_FLIGHT)
    }
}

/// Change of the target rate during the load.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateStep {
    /// Time of the change, in seconds after the start of the load.
    pub(crate) after_seconds: f64,
    /// New target rate in records a second, all producers together.
    pub(crate) rate: f64,
}

/// Size of record values and its relative frequency.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordSize {
    /// Value size in bytes, without key and framing; at least the 32 bytes of the record's header.
    pub(crate) size_bytes: usize,
    /// Frequency relative to the other sizes' weights; more than 0, default 1.
    #[serde(default = "one_float")]
    pub(crate) weight: f64,
}

/// Settings of record keys: distribution and number of distinct keys.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeySettings {
    /// Distribution of keys.
    #[serde(default)]
    pub(crate) distribution: KeyDistribution,
    /// Number of distinct keys, at least 1; default 10,000.
    #[serde(default = "default_keys")]
    pub(crate) count: u32,
    /// Zipf exponent: the k-th key has weight 1 / k^exponent; default 0.99.
    #[serde(default = "default_exponent")]
    pub(crate) exponent: f64,
}

impl Default for KeySettings {
    fn default() -> Self {
        Self { distribution: KeyDistribution::None, count: default_keys(), exponent: default_exponent() }
    }
}

/// Distribution of record keys. Keys are hashed to partitions as by Kafka's default partitioner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyDistribution {
    /// No key: each batch goes to one partition, the next to the following available partition (sticky partitioning).
    #[default]
    None,
    /// Each key in turn.
    RoundRobin,
    /// Uniform: every key is equally likely.
    Random,
    /// Zipf: a few keys occur most of the time.
    Zipf,
}

/// Required acknowledgements (`acks`): 0, 1 or all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
pub(crate) enum Acks {
    /// `acks=0`: no acknowledgement; a record counts as published once it is written to the connection.
    #[serde(rename = "0")]
    None,
    /// `acks=1`: acknowledged by the partition's leader.
    #[serde(rename = "1")]
    Leader,
    /// `acks=all`: acknowledged by all in-sync replicas.
    #[default]
    #[serde(rename = "all")]
    All,
}

/// Compression codec of batches.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Compression {
    /// No compression.
    #[default]
    None,
    /// Gzip (RFC 1952).
    Gzip,
    /// Snappy in xerial's framing, as Kafka's Java client writes it.
    Snappy,
    /// LZ4 frame format.
    Lz4,
    /// Zstandard.
    Zstd,
}

impl ProducerSettings {
    pub(super) fn check(&self) -> Result<(), Error> {
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
            return wrong("producer.steps: need producer.rate as the rate before the first step".to_owned());
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
