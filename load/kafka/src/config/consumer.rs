//! What consumes, and the search for the highest rate.

use serde::Deserialize;

use super::{one, one_float};
use crate::error::Error;

/// What consumes.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsumerSettings {
    /// How many consumers, each with a thread and connections of its own; partitions are dealt out among them.
    #[serde(default = "one")]
    pub(crate) consumers: u32,
    /// Take part in this consumer group instead of reading all partitions.
    #[serde(default)]
    pub(crate) group: Option<String>,
    /// Where reading begins.
    #[serde(default)]
    pub(crate) from: StartFrom,
    /// The broker answers once it has this much.
    #[serde(default = "default_fetch_min")]
    pub(crate) fetch_min_bytes: i32,
    /// … or once this has passed.
    #[serde(default = "default_fetch_wait")]
    pub(crate) fetch_max_wait_seconds: f64,
    /// The most that an answer holds.
    #[serde(default = "default_fetch_max")]
    pub(crate) fetch_max_bytes: i32,
    /// The most of one partition that an answer holds.
    #[serde(default = "default_partition_max")]
    pub(crate) partition_max_bytes: i32,
    /// When to stop reading for a while, to build a backlog. In order of time.
    #[serde(default)]
    pub(crate) pauses: Vec<Pause>,
    /// What the producer's time is ahead of this process's, where it is known; without it, it is estimated.
    #[serde(default)]
    pub(crate) clock_offset_seconds: Option<f64>,
}

/// Where reading begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum StartFrom {
    /// At the first record that is kept.
    Earliest,
    /// At the end as it is when the engine starts, before it produces.
    #[default]
    Latest,
}

/// A time of not reading. It ends with whichever of `seconds` and `until_bytes` comes first.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Pause {
    /// Since the load's start.
    pub(crate) after_seconds: f64,
    /// How long.
    #[serde(default)]
    pub(crate) seconds: Option<f64>,
    /// Until this much has been acknowledged and not read.
    #[serde(default)]
    pub(crate) until_bytes: Option<u64>,
}

/// The search for the highest rate that can be sustained: bisection between rates that can and cannot.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Search {
    /// The first rate tried, doubled until one cannot be sustained.
    pub(crate) first_rate: f64,
    /// How long each rate is kept.
    pub(crate) trial_seconds: f64,
    /// A rate is sustained if `publish` and `end_to_end` at the 99th percentile are no longer than this…
    pub(crate) p99_seconds: f64,
    /// … and neither the schedule nor the consumers are further behind than this at the end.
    #[serde(default = "one_float")]
    pub(crate) behind_seconds: f64,
    /// The search ends when the two rates are within this ratio of each other.
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
