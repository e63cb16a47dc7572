//! Settings of the consumers, and of the search for the maximum sustainable rate.

use serde::Deserialize;

use super::{one, one_float};
use crate::error::Error;

/// Settings of the consumers: number, consumer group, start position, fetch limits and pauses.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsumerSettings {
    /// Number of consumers, each with its own thread and connections; partitions are distributed among them.
    #[serde(default = "one")]
    pub(crate) consumers: u32,
    /// Consumer group to join; without it, all partitions are read.
    #[serde(default)]
    pub(crate) group: Option<String>,
    /// Start position of reading.
    #[serde(default)]
    pub(crate) from: StartFrom,
    /// `fetch.min.bytes`: the broker answers a fetch once it has this much, at least 1; default 1.
    #[serde(default = "default_fetch_min")]
    pub(crate) fetch_min_bytes: i32,
    /// `fetch.max.wait.ms` in seconds: the broker answers a fetch after this at the latest; default 0.5.
    #[serde(default = "default_fetch_wait")]
    pub(crate) fetch_max_wait_seconds: f64,
    /// `fetch.max.bytes`: most bytes in a fetch response, at least 1; default 8 MiB.
    #[serde(default = "default_fetch_max")]
    pub(crate) fetch_max_bytes: i32,
    /// `max.partition.fetch.bytes`: most bytes of one partition in a fetch response, at least 1; default 1 MiB.
    #[serde(default = "default_partition_max")]
    pub(crate) partition_max_bytes: i32,
    /// Pauses of all consumers, to build up a backlog; in order of time.
    #[serde(default)]
    pub(crate) pauses: Vec<Pause>,
    /// How far the producers' clock is ahead of this process's, in seconds; without it, it is estimated.
    #[serde(default)]
    pub(crate) clock_offset_seconds: Option<f64>,
}

/// Start position of reading.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StartFrom {
    /// Log start: the first retained record.
    Earliest,
    /// Log end as of the engine's start, before it produces.
    #[default]
    Latest,
}

/// Pause of the consumers. Ends with `seconds` or `until_bytes`, whichever is reached first; one is required.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pause {
    /// Start of the pause, in seconds after the start of the load.
    pub(crate) after_seconds: f64,
    /// Longest duration, in seconds.
    #[serde(default)]
    pub(crate) seconds: Option<f64>,
    /// Consumer backlog that ends the pause, in bytes acknowledged but not read.
    #[serde(default)]
    pub(crate) until_bytes: Option<u64>,
}

/// Settings of the search for the maximum sustainable rate: doubling or halving, then bisection.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    /// First rate tried, in records a second.
    pub(crate) first_rate: f64,
    /// Duration of each trial, in seconds, after the load has settled.
    pub(crate) trial_seconds: f64,
    /// Latency limit in seconds: a rate is sustained if the 99th percentiles of `publish` and `end_to_end` are within
    /// it.
    pub(crate) p99_seconds: f64,
    /// Lag limit: a rate is sustained if schedule and consumers are at most this far behind at the end, in seconds;
    /// default 1.
    #[serde(default = "one_float")]
    pub(crate) behind_seconds: f64,
    /// Resolution: the search ends when the lowest rate not sustained is this ratio above the highest sustained, or
    /// less.
    #[serde(default = "default_resolution")]
    pub(crate) resolution_ratio: f64,
}

impl ConsumerSettings {
    pub(super) fn check(&self) -> Result<(), Error> {
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
