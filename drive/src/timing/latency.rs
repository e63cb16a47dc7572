//! Latencies of one interval, and the percentiles that are read off them.

use hdrhistogram::Histogram;

/// Histogram bounds: a microsecond to an hour. What lies outside is counted at the bound.
const LOWEST_NANOSECONDS: u64 = 1_000;
const HIGHEST_NANOSECONDS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

/// Latencies of one kind of request. Equal latencies in a row, which are the rule while a drive keeps up, are counted
/// first and recorded together.
#[derive(Clone)]
pub struct Recorder {
    histogram: Histogram<u64>,
    repeated: u64,
    repeats: u64,
}

impl Default for Recorder {
    #[expect(clippy::expect_used, reason = "the bounds are constants that the histogram accepts")]
    fn default() -> Self {
        let histogram = Histogram::new_with_bounds(LOWEST_NANOSECONDS, HIGHEST_NANOSECONDS, SIGNIFICANT_DIGITS)
            .expect("bounds that a histogram can have");
        Self { histogram, repeated: 0, repeats: 0 }
    }
}

impl Recorder {
    /// Records one latency.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        if nanoseconds != self.repeated {
            self.settle();
            self.repeated = nanoseconds;
        }
        self.repeats += 1;
    }

    #[inline]
    fn settle(&mut self) {
        if self.repeats > 0 {
            self.histogram.saturating_record_n(self.repeated, self.repeats);
            self.repeats = 0;
        }
    }

    /// The histogram of everything recorded, in nanoseconds.
    #[must_use]
    pub fn into_histogram(mut self) -> Histogram<u64> {
        self.settle();
        self.histogram
    }
}

/// Latencies of one interval by kind of request.
#[derive(Clone, Default)]
pub struct Latencies {
    /// Writes, from when they were due to when the write buffer had taken them.
    pub write: Recorder,
    /// Reads, from when they were issued.
    pub read: Recorder,
    /// Flushes, from when they were due.
    pub flush: Recorder,
}

/// What is reported of a histogram, in seconds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Percentiles {
    /// Requests measured.
    pub count: u64,
    /// 50th percentile.
    pub p50_seconds: f64,
    /// 99th percentile.
    pub p99_seconds: f64,
    /// 99.9th percentile.
    pub p999_seconds: f64,
    /// 99.99th percentile.
    pub p9999_seconds: f64,
    /// The longest.
    pub max_seconds: f64,
}

impl Percentiles {
    /// The percentiles of a histogram of nanoseconds, `None` if it is empty.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Option<Self> {
        let at = |quantile| histogram.value_at_quantile(quantile) as f64 / 1e9;
        (!histogram.is_empty()).then(|| Self {
            count: histogram.len(),
            p50_seconds: at(0.5),
            p99_seconds: at(0.99),
            p999_seconds: at(0.999),
            p9999_seconds: at(0.9999),
            max_seconds: histogram.max() as f64 / 1e9,
        })
    }
}
