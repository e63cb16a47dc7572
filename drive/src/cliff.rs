//! Cliff detection: onset of lasting high write latency, or of more write demand than the flash can program.

use crate::interval::Interval;
use crate::plan::DrivePlan;
use serde::Serialize;

/// Onset of the cliff, and the criterion by which it was found.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Cliff {
    /// Onset in seconds from the start of the run, `None` if there was no cliff or the run has no time.
    pub onset_seconds: Option<f64>,
    /// Bytes written by the host before the onset.
    pub onset_host_bytes: Option<u64>,
    /// Criterion of a cliff in this run, in words.
    pub definition: String,
    /// Baseline 99th percentile of write latency, in seconds.
    pub baseline_p99_seconds: Option<f64>,
    /// Start, in seconds, of the first interval that ended with no more clean superblocks than the reserve.
    pub out_of_clean_blocks_seconds: Option<f64>,
    /// Bytes written by the host before that interval.
    pub out_of_clean_blocks_host_bytes: Option<u64>,
}

/// Consecutive slow intervals that make an onset: one slow interval is a spike.
const IN_A_ROW: usize = 3;

/// Finds the onset of the cliff in a run.
#[must_use]
pub(crate) fn find(plan: &DrivePlan, intervals: &[Interval]) -> Cliff {
    let mut cliff = if plan.timed { by_latency(plan, intervals) } else { by_demand(plan, intervals) };
    if let Some(first) = intervals.iter().find(|interval| interval.out_of_clean_blocks) {
        cliff.out_of_clean_blocks_seconds = first.start_seconds;
        cliff.out_of_clean_blocks_host_bytes = Some(first.end_host_bytes - first.host_bytes);
    }
    cliff
}

fn by_latency(plan: &DrivePlan, intervals: &[Interval]) -> Cliff {
    let baseline_intervals = (intervals.len() / 10).max(IN_A_ROW);
    let p99 = |interval: &Interval| interval.write_latency.as_ref().map(|latency| latency.p99_seconds);
    let mut baseline: Vec<f64> = intervals.iter().take(baseline_intervals).filter_map(p99).collect();
    baseline.sort_by(f64::total_cmp);
    let factor = plan.cliff_factor;
    let definition = format!(
        "the first of {IN_A_ROW} intervals in a row, after the baseline, whose 99th percentile of write latency is at least \
         {factor} times the baseline, the median over the first {baseline_intervals} intervals"
    );
    let Some(&baseline_p99) = baseline.get(baseline.len() / 2) else { return Cliff { definition, ..Cliff::default() } };
    let is_slow = |interval: &Interval| p99(interval).is_some_and(|p99| p99 >= factor * baseline_p99);
    let onset = onset(intervals, baseline_intervals, is_slow);
    Cliff { baseline_p99_seconds: Some(baseline_p99), ..located(onset, definition) }
}

/// Finds the cliff without a timing model: write amplification times the host's rate exceeds the program bandwidth.
fn by_demand(plan: &DrivePlan, intervals: &[Interval]) -> Cliff {
    let Some(rate) = plan.bytes_per_second else {
        let definition = "undetermined: the run had neither a timing model (--timing on) nor a --rate";
        return Cliff { definition: definition.into(), ..Cliff::default() };
    };
    let bandwidth = plan.program_bytes_per_second();
    let definition = format!(
        "the first of {IN_A_ROW} intervals in a row whose write amplification times the host's rate exceeds what the flash \
         can program, {:.0} bytes per second; times up to there are exact, later ones assume that the host kept its rate",
        bandwidth
    );
    located(onset(intervals, 0, |interval| interval.write_amplification * rate > bandwidth), definition)
}

fn onset(intervals: &[Interval], from: usize, is_over: impl Fn(&Interval) -> bool) -> Option<&Interval> {
    let later = intervals.get(from..)?;
    later.windows(IN_A_ROW).find(|window| window.iter().all(&is_over)).and_then(<[Interval]>::first)
}

fn located(onset: Option<&Interval>, definition: String) -> Cliff {
    Cliff {
        onset_seconds: onset.and_then(|interval| interval.start_seconds),
        onset_host_bytes: onset.map(|interval| interval.end_host_bytes - interval.host_bytes),
        definition,
        ..Cliff::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_slow_interval_is_a_spike_and_three_are_a_cliff() {
        let intervals = |slow: &[usize]| -> Vec<Interval> {
            let one = |i| Interval {
                start_seconds: Some(i as f64),
                write_amplification: if slow.contains(&i) { 5.0 } else { 1.0 },
                ..Interval::default()
            };
            (0..20).map(one).collect()
        };
        let found = |slow: &[usize]| {
            let intervals = intervals(slow);
            let onset = onset(&intervals, 2, |interval| interval.write_amplification > 2.0);
            onset.and_then(|interval| interval.start_seconds)
        };
        assert_eq!(found(&[5, 7, 8]), None);
        assert_eq!(found(&[5, 7, 8, 9, 11]), Some(7.0));
        assert_eq!(found(&[0, 1, 2]), None, "the baseline is not searched");
    }
}
