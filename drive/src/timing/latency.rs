//! Latency histograms of one interval, and their percentiles.

use hdrhistogram::Histogram;

/// Histogram bounds: 1 µs to 1 h. Latencies outside are counted at the bound.
const LOWEST_NANOSECONDS: u64 = 1_000;
const HIGHEST_NANOSECONDS: u64 = 3_600_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 2;

/// Bucket layout of a histogram with these bounds: widths are powers of two from 2^[`UNIT_BITS`] on, and every width is
/// used for [`HALF`] buckets (the first for twice as many), so that two digits are exact.
const UNIT_BITS: u32 = LOWEST_NANOSECONDS.ilog2();
const HALF_BITS: u32 = (10u64.pow(SIGNIFICANT_DIGITS as u32)).next_power_of_two().ilog2();
const HALF: usize = 1 << HALF_BITS;
const BUCKETS: usize = bucket(HIGHEST_NANOSECONDS) + 1;

/// Returns the index of the bucket that counts this latency.
#[inline(always)]
const fn bucket(nanoseconds: u64) -> usize {
    let units = nanoseconds >> UNIT_BITS;
    let doublings = (units | HALF as u64).ilog2() - HALF_BITS;
    ((doublings as usize) << HALF_BITS) + (units >> doublings) as usize
}

/// Returns the lowest latency of a bucket, in nanoseconds.
const fn least_of_bucket(bucket: usize) -> u64 {
    let doublings = (bucket >> HALF_BITS).saturating_sub(1);
    ((bucket - (doublings << HALF_BITS)) as u64) << doublings << UNIT_BITS
}

/// Latency counts of one kind of request, in the buckets of a histogram. On the hottest path, so it only counts.
#[derive(Clone)]
pub struct LatencyRecorder {
    counts: Box<[u64; BUCKETS]>,
}

impl Default for LatencyRecorder {
    fn default() -> Self {
        Self { counts: Box::new([0; BUCKETS]) }
    }
}

impl LatencyRecorder {
    /// Counts one latency, in nanoseconds.
    #[inline]
    pub fn record(&mut self, nanoseconds: u64) {
        self.counts[bucket(nanoseconds.min(HIGHEST_NANOSECONDS))] += 1;
    }

    /// Converts the counts to an HdrHistogram in nanoseconds.
    #[expect(clippy::expect_used, reason = "the bounds are constants that the histogram accepts")]
    #[must_use]
    pub fn into_histogram(self) -> Histogram<u64> {
        let mut histogram = Histogram::new_with_bounds(LOWEST_NANOSECONDS, HIGHEST_NANOSECONDS, SIGNIFICANT_DIGITS)
            .expect("bounds that a histogram can have");
        for (bucket, &count) in self.counts.iter().enumerate().filter(|&(_, &count)| count > 0) {
            histogram.saturating_record_n(least_of_bucket(bucket), count);
        }
        histogram
    }
}

/// Latency counts of one interval by kind of request.
#[derive(Clone, Default)]
pub struct LatencyCounts {
    /// Writes, from due time to acceptance in the write buffer.
    pub write: LatencyRecorder,
    /// Reads, from issue to completion.
    pub read: LatencyRecorder,
    /// Flushes, from issue to completion.
    pub flush: LatencyRecorder,
}

/// Latency percentiles of a histogram, in seconds.
#[derive(Clone, Debug, serde::Serialize)]
pub struct Percentiles {
    /// Number of requests measured.
    pub count: u64,
    /// 50th percentile of latency.
    pub p50_seconds: f64,
    /// 99th percentile of latency.
    pub p99_seconds: f64,
    /// 99.9th percentile of latency.
    pub p999_seconds: f64,
    /// 99.99th percentile of latency.
    pub p9999_seconds: f64,
    /// Longest latency.
    pub max_seconds: f64,
}

impl Percentiles {
    /// Returns the percentiles of a histogram in nanoseconds, `None` if it is empty.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_in_the_very_buckets_of_the_histogram() {
        let mut expected =
            Histogram::<u64>::new_with_bounds(LOWEST_NANOSECONDS, HIGHEST_NANOSECONDS, SIGNIFICANT_DIGITS).unwrap();
        let mut recorder = LatencyRecorder::default();
        let around = |power: u64| [power - 1, power, power + 1, power + power / 3];
        for nanoseconds in (0..42).flat_map(|bit| around(1 << bit)).chain([0, 999, 130_560, HIGHEST_NANOSECONDS]) {
            expected.saturating_record(nanoseconds);
            recorder.record(nanoseconds);
        }
        recorder.record(u64::MAX);
        expected.saturating_record(HIGHEST_NANOSECONDS);
        let histogram = recorder.into_histogram();
        assert_eq!((histogram.len(), histogram.max()), (expected.len(), expected.max()));
        let buckets = |histogram: &Histogram<u64>| -> Vec<(u64, u64)> {
            histogram.iter_recorded().map(|at| (at.value_iterated_to(), at.count_at_value())).collect()
        };
        assert_eq!(buckets(&histogram), buckets(&expected));
    }
}
