//! What produces.

use serde::Deserialize;

use super::{one, one_float};
use crate::error::Error;

/// The broker remembers so many batches of a producer and partition.
pub(crate) const IDEMPOTENT_IN_FLIGHT: usize = 5;

/// The number of a producer goes into a byte of its records.
const PRODUCERS_MAX: u32 = 256;

/// What produces.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProducerSettings {
    /// How many producers, each with a thread, connections and a producer id of its own.
    #[serde(default = "one")]
    pub(crate) producers: u32,
    /// Records a second of all producers together; null for as many as the broker takes.
    #[serde(default)]
    pub(crate) rate: Option<f64>,
    /// Later rates, in order of time.
    #[serde(default)]
    pub(crate) steps: Vec<RateStep>,
    /// After a stall, overdue records are sent at up to this many times the rate; at least 1.
    #[serde(default = "default_catch_up")]
    pub(crate) catch_up_ratio: f64,
    /// Sizes of a record's value, chosen by weight.
    #[serde(default = "default_sizes")]
    pub(crate) record_sizes: Vec<RecordSize>,
    /// Share of a value that is random and so does not compress; the rest repeats.
    #[serde(default = "one_float")]
    pub(crate) random_ratio: f64,
    /// Keys, and so partitions.
    #[serde(default)]
    pub(crate) key: KeySettings,
    /// Who must have a record before it is acknowledged.
    #[serde(default)]
    pub(crate) acks: Acks,
    /// Have the broker reject what a retry would write twice. Needs `acks` all and `max_in_flight` 5 at most.
    #[serde(default)]
    pub(crate) idempotence: Option<bool>,
    /// How batches are compressed.
    #[serde(default)]
    pub(crate) compression: Compression,
    /// How long a record waits for others to share its batch.
    #[serde(default = "default_linger")]
    pub(crate) linger_seconds: f64,
    /// A batch is sent when it has grown to this.
    #[serde(default = "default_batch_size")]
    pub(crate) batch_size_bytes: usize,
    /// A request carries batches of many partitions, up to this.
    #[serde(default = "default_request_size")]
    pub(crate) request_size_bytes: usize,
    /// Requests under way on a connection.
    #[serde(default = "default_in_flight")]
    pub(crate) max_in_flight: usize,
    /// Batches of all producers together that are waiting or under way; when they have grown to this, nothing more is
    /// made and the schedule falls behind.
    #[serde(default = "default_buffer")]
    pub(crate) buffer_bytes: usize,
    /// A request that is not answered in this time has failed.
    #[serde(default = "default_request_timeout")]
    pub(crate) request_timeout_seconds: f64,
    /// A record that is not acknowledged in this time has failed and is an error.
    #[serde(default = "default_delivery_timeout")]
    pub(crate) delivery_timeout_seconds: f64,
    /// The first wait before something is tried again; each further one is twice as long.
    #[serde(default = "default_backoff")]
    pub(crate) retry_backoff_seconds: f64,
    /// The longest wait before something is tried again.
    #[serde(default = "default_backoff_max")]
    pub(crate) retry_backoff_max_seconds: f64,
}

impl ProducerSettings {
    /// Whether the broker rejects duplicates: as asked for, and otherwise whenever the other settings allow it.
    #[must_use]
    pub(crate) fn is_idempotent(&self) -> bool {
        self.idempotence.unwrap_or(self.acks == Acks::All && self.max_in_flight <= IDEMPOTENT_IN_FLIGHT)
    }
}

/// A later rate.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RateStep {
    /// Since the load's start.
    pub(crate) after_seconds: f64,
    /// Records a second of all producers together.
    pub(crate) rate: f64,
}

/// A size of a record's value and how often it comes, relative to the others.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecordSize {
    /// Of the value, without key and framing.
    pub(crate) size_bytes: usize,
    /// Relative to those of the other sizes.
    #[serde(default = "one_float")]
    pub(crate) weight: f64,
}

/// Which keys records have.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeySettings {
    /// How a record's key is chosen.
    #[serde(default)]
    pub(crate) distribution: KeyDistribution,
    /// How many keys there are.
    #[serde(default = "default_keys")]
    pub(crate) count: u32,
    /// Of the Zipf distribution: the k-th key comes with weight 1 / k to this power.
    #[serde(default = "default_exponent")]
    pub(crate) exponent: f64,
}

impl Default for KeySettings {
    fn default() -> Self {
        Self { distribution: KeyDistribution::None, count: default_keys(), exponent: default_exponent() }
    }
}

/// How a record's key is chosen. Keys are hashed to partitions as Kafka's own client does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum KeyDistribution {
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
pub(crate) enum Acks {
    /// No broker: a record counts as published once it is written to the connection.
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
pub(crate) enum Compression {
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
