//! Steady-state test of the end of a run, and its write amplification.

use crate::interval::{Interval, amplification};
use serde::Serialize;

/// Steady-state result of the second half of a run.
#[derive(Debug, Serialize)]
pub struct SteadyState {
    /// Write amplification of the second half of the run.
    pub write_amplification: f64,
    /// Whether that half was steady by `definition`.
    pub is_steady: bool,
    /// Criterion of a steady state, in words.
    pub definition: &'static str,
}

const DEFINITION: &str = "second half of the run (by what the host wrote), in five equal parts: their write amplification spans at \
                          most 20 % of its mean and the fitted line rises or falls by at most 10 % of it (after the SNIA \
                          Performance Test Specification)";
const PARTS: usize = 5;

/// Tests whether the second half of a run was steady.
#[must_use]
pub(crate) fn at_the_end(intervals: &[Interval], page_bytes: u64) -> SteadyState {
    let host_bytes = intervals.last().map_or(0, |interval| interval.end_host_bytes);
    let second_half: Vec<&Interval> =
        intervals.iter().filter(|interval| interval.end_host_bytes > host_bytes / 2).collect();
    let over = |intervals: &[&Interval]| {
        let media_pages: u64 = intervals.iter().map(|interval| interval.counters.media_pages()).sum();
        amplification(media_pages * page_bytes, intervals.iter().map(|interval| interval.host_bytes).sum())
    };
    let length = (second_half.len() / PARTS).max(1);
    let parts: Vec<f64> = second_half.chunks_exact(length).take(PARTS).map(over).collect();
    let is_steady = parts.len() == PARTS && is_level(&parts);
    SteadyState { write_amplification: over(&second_half), is_steady, definition: DEFINITION }
}

fn is_level(values: &[f64]) -> bool {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let spread = values.iter().copied().fold(f64::MIN, f64::max) - values.iter().copied().fold(f64::MAX, f64::min);
    let middle = (count - 1.0) / 2.0;
    let (covariance, variance) = values.iter().zip(0u32..).fold((0.0, 0.0), |(covariance, variance), (value, i)| {
        let distance = f64::from(i) - middle;
        (covariance + distance * (value - mean), variance + distance * distance)
    });
    let rise = covariance / variance * (count - 1.0);
    spread <= 0.2 * mean && rise.abs() <= 0.1 * mean
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_line_is_steady_and_a_rising_or_jumping_one_is_not() {
        assert!(is_level(&[2.0, 2.05, 1.95, 2.0, 2.02]));
        assert!(!is_level(&[2.0, 2.1, 2.2, 2.3, 2.4]));
        assert!(!is_level(&[2.0, 3.0, 2.0, 3.0, 2.0]));
    }
}
