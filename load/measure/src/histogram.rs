//! Latency histograms: HdrHistogram, nanoseconds, 3 significant digits, 1 µs to 1 h.

use crate::error::{Error, Result};
use base64::Engine;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};

/// Resolution and lower bound of the histogram: 1 µs.
pub const LOWEST_NANOSECONDS: u64 = 1_000;
/// Upper bound of the histogram: 1 h. A longer latency is counted at the bound, and as an overflow.
pub const HIGHEST_NANOSECONDS: u64 = 3_600 * crate::NANOSECONDS;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Latency histogram. All its memory is allocated when it is created.
#[derive(Clone, Debug)]
pub struct Latencies {
    counts: hdrhistogram::Histogram<u64>,
    overflows: u64,
}

impl Latencies {
    /// Creates an empty histogram of about 190 KB.
    pub fn new() -> Result<Self> {
        hdrhistogram::Histogram::new_with_bounds(LOWEST_NANOSECONDS, HIGHEST_NANOSECONDS, SIGNIFICANT_DIGITS)
            .map(|counts| Self { counts, overflows: 0 })
            .map_err(|error| Error::Histogram { name: "latency", reason: error.to_string() })
    }

    /// Counts a latency `count` times.
    pub fn record(&mut self, nanoseconds: u64, count: u64) {
        if nanoseconds > HIGHEST_NANOSECONDS {
            self.overflows += count;
        }
        self.counts.saturating_record_n(nanoseconds.min(HIGHEST_NANOSECONDS), count);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        self.overflows += other.overflows;
        // Both have the same bounds, so nothing in one is out of the other's range.
        let merged = self.counts.add(&other.counts);
        debug_assert!(merged.is_ok());
    }

    /// Resets all counts; keeps the memory.
    pub fn clear(&mut self) {
        self.counts.reset();
        self.overflows = 0;
    }

    /// Returns the number of latencies counted.
    pub fn count(&self) -> u64 {
        self.counts.len()
    }

    /// Returns the number of latencies longer than an hour.
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Returns the latency at a quantile (0 to 1), in nanoseconds; 0 when nothing was counted.
    pub fn quantile(&self, quantile: f64) -> u64 {
        self.counts.value_at_quantile(quantile)
    }

    /// Encodes the histogram as HdrHistogram V2, compressed, in base64.
    pub fn encode(&self, name: &'static str, encoder: &mut HistogramEncoder) -> Result<String> {
        encoder.bytes.clear();
        encoder
            .serializer
            .serialize(&self.counts, &mut encoder.bytes)
            .map_err(|error| Error::Histogram { name, reason: error.to_string() })?;
        Ok(base64::engine::general_purpose::STANDARD.encode(&encoder.bytes))
    }
}

/// Buffers for encoding histograms, reused from one to the next.
#[derive(Default)]
pub struct HistogramEncoder {
    serializer: V2DeflateSerializer,
    bytes: Vec<u8>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_out_of_range_is_counted_at_the_end_of_the_range() {
        let mut latencies = Latencies::new().unwrap();
        latencies.record(0, 1);
        latencies.record(2 * HIGHEST_NANOSECONDS, 3);
        assert_eq!((latencies.count(), latencies.overflows()), (4, 3));
        assert!(latencies.quantile(1.0).abs_diff(HIGHEST_NANOSECONDS) < HIGHEST_NANOSECONDS / 1000);
    }

    #[test]
    fn merging_adds_counts_and_clearing_forgets_them() {
        let mut one = Latencies::new().unwrap();
        let mut other = one.clone();
        one.record(1_000_000, 2);
        other.record(5_000_000, 2);
        other.record(u64::MAX, 1);
        one.merge(&other);
        assert_eq!((one.count(), one.overflows()), (5, 1));
        assert!(one.quantile(0.8).abs_diff(5_000_000) <= 5_000);
        one.clear();
        assert_eq!((one.count(), one.overflows()), (0, 0));
    }

    #[test]
    fn text_is_what_the_golden_file_holds() {
        let mut latencies = Latencies::new().unwrap();
        for (nanoseconds, count) in [(500, 1), (12_345, 10), (3_500_000_000, 2), (HIGHEST_NANOSECONDS, 1)] {
            latencies.record(nanoseconds, count);
        }
        let text = latencies.encode("append", &mut HistogramEncoder::default()).unwrap();
        assert_eq!(text, include_str!("../tests/data/histogram.txt").trim_end());
    }
}
