//! Reporting windows on the wall clock's grid: their bounds are multiples of their length since the epoch and never
//! drift.

use crate::clock::{Clock, seconds};
use crate::error::{Error, Result};
use crate::histogram::HistogramEncoder;
use crate::output::Output;
use crate::recorder::{Ages, Names, Recorder, Tally, blank_gauges};
use crate::stop::Stop;
use serde_json::{Map, Value, json};

/// Interval at which a wait checks for a stop, in nanoseconds: each check is a wake-up that costs the load.
const LOOK_NANOSECONDS: u64 = 100_000_000;
/// Largest distance of start and stop from the grid, as a share of a window's length, at which they are rounded to it.
const ALIGNMENT_TOLERANCE: f64 = 0.001;

/// Prints the windows of a load, one after the other until its end.
pub struct Windows {
    names: Names,
    clock: Clock,
    length: u64,
    start: u64,
    stop: u64,
    sequence: u64,
    recorders: Vec<Recorder>,
    blank: Tally,
    merged: Tally,
    blank_gauges: Vec<f64>,
    encoder: HistogramEncoder,
    output: Output,
}

impl Windows {
    /// Creates windows of `length` from `start` to `stop`, in nanoseconds since the epoch; both have to be on the grid.
    pub fn new(names: Names, clock: Clock, length: u64, start: u64, stop: u64, output: Output) -> Result<Self> {
        if length == 0 {
            return Err(Error::Setting {
                field: "window_seconds",
                advice: "a window has to last some time".to_owned(),
            });
        }
        for (field, moment) in [("start", start), ("stop", stop)] {
            let off = (moment + length / 2) % length;
            if off.abs_diff(length / 2) as f64 > length as f64 * ALIGNMENT_TOLERANCE {
                let advice = format!("{} is not a multiple of the window's length", seconds(moment));
                return Err(Error::Setting { field, advice });
            }
        }
        if stop <= start {
            return Err(Error::Setting { field: "stop", advice: "the load has to end after its start".to_owned() });
        }
        let (blank, merged) = (Tally::new(&names)?, Tally::new(&names)?);
        let (start, stop) = (nearest(start, length), nearest(stop, length));
        let (recorders, encoder, blank_gauges) = (Vec::new(), HistogramEncoder::default(), blank_gauges(&names));
        Ok(Self {
            names,
            clock,
            length,
            start,
            stop,
            sequence: 0,
            recorders,
            blank,
            merged,
            blank_gauges,
            encoder,
            output,
        })
    }

    /// Creates a recorder for one thread, whose counts are printed with the windows.
    pub fn recorder(&mut self) -> Result<Recorder> {
        let recorder = Recorder::new(&self.names)?;
        self.recorders.push(recorder.clone());
        Ok(recorder)
    }

    /// Prints each window at its end; blocks until the last. On a stop request, prints the window in progress once
    /// `quiet` returns, which has to wait until nothing is counted any more.
    ///
    /// A window that could not be printed in time (the process was suspended) becomes part of the next.
    pub fn run(&mut self, stop: &Stop, quiet: impl FnOnce()) -> Result<()> {
        let mut begun = self.start;
        loop {
            let end = begun + self.length;
            while self.clock.now() < end && !stop.is_requested() {
                self.clock.sleep_until(end.min(self.clock.now() + LOOK_NANOSECONDS));
            }
            let now = self.clock.now();
            if stop.is_requested() || now >= self.stop {
                let measured = now.min(self.stop);
                quiet();
                let last = end.max(nearest_after(measured, self.length)).min(self.stop);
                return self.print(begun, last, measured);
            }
            let end = now - now % self.length;
            self.print(begun, end, end)?;
            begun = end;
        }
    }

    fn print(&mut self, begun: u64, end: u64, measured: u64) -> Result<()> {
        self.merged.clear();
        self.merged.gauges.clone_from(&self.blank_gauges);
        let mut ages: Option<Ages> = None;
        for recorder in &self.recorders {
            self.blank.clear();
            recorder.swap(&mut self.blank);
            ages = match (ages, self.blank.ages_at(measured)) {
                (Some(one), Some(other)) => Some(one.max(other)),
                (one, other) => one.or(other),
            };
            self.merged.merge(&self.blank, &self.names);
        }
        let line = self.line(begun, end, measured, ages)?;
        self.sequence += 1;
        self.output.line(&line)
    }

    fn line(&mut self, begun: u64, end: u64, measured: u64, ages: Option<Ages>) -> Result<Value> {
        let mut latency = Map::new();
        for (name, latencies) in self.names.latencies.iter().zip(&self.merged.latencies) {
            if latencies.count() > 0 {
                latency.insert((*name).to_owned(), latencies.encode(name, &mut self.encoder)?.into());
            }
        }
        let mut counters: Map<String, Value> = self
            .names
            .counters
            .iter()
            .zip(&self.merged.counters)
            .map(|(name, &count)| ((*name).to_owned(), count.into()))
            .collect();
        let overflows: u64 = self.merged.latencies.iter().map(|latencies| latencies.overflows()).sum();
        if overflows > 0 {
            counters.insert("overflows".to_owned(), overflows.into());
        }
        let mut gauges: Map<String, Value> = self
            .names
            .gauges
            .iter()
            .zip(&self.merged.gauges)
            .filter(|(_, value)| value.is_finite())
            .map(|((name, _), &value)| ((*name).to_owned(), json!(value)))
            .collect();
        if let Some(ages) = ages {
            gauges.insert("oldest_outstanding_seconds".to_owned(), json!(seconds(ages.outstanding)));
            gauges.insert("schedule_debt_seconds".to_owned(), json!(seconds(ages.unbegun)));
        }
        gauges.insert("measured_seconds".to_owned(), json!(seconds(measured.saturating_sub(begun))));
        Ok(json!({
            "type": "window", "seq": self.sequence, "start": seconds(begun), "end": seconds(end),
            "counters": counters, "gauges": gauges, "latency": latency,
        }))
    }
}

/// Returns the start and end of a load that was to last from `start` to `stop`, in nanoseconds since the epoch; to be
/// called when it is ready. A first load (`is_first`) that is late starts on the next line of the grid, keeps its
/// duration and emits the event `begun`: counted from `start`, its own slow preparation would be latency of the target.
/// Other loads keep their times.
pub fn begin(output: &Output, clock: &Clock, length: u64, times: (u64, u64), is_first: bool) -> Result<(u64, u64)> {
    let (start, stop) = times;
    let late = clock.now().saturating_sub(start);
    if late == 0 || !is_first || length == 0 {
        return Ok(times);
    }
    let moved = nearest_after(late, length);
    output.event("begun", json!({"start": seconds(start + moved), "late_seconds": seconds(late)}))?;
    Ok((start + moved, stop + moved))
}

fn nearest(moment: u64, length: u64) -> u64 {
    (moment + length / 2) / length * length
}

fn nearest_after(moment: u64, length: u64) -> u64 {
    moment.div_ceil(length) * length
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::nanoseconds;
    use crate::recorder::{Merge, OldestDue};
    use std::io::Write;
    use std::sync::{Arc, Mutex};

    const NAMES: Names =
        Names { latencies: &["append"], counters: &["operations"], gauges: &[("round_trip_seconds", Merge::Largest)] };
    const LENGTH: u64 = 50_000_000;

    #[derive(Clone, Default)]
    struct SharedBuffer(Arc<Mutex<Vec<u8>>>);

    impl Write for SharedBuffer {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_first_load_that_is_late_begins_on_the_next_line_and_lasts_as_long() {
        let (clock, kept) = (Clock::anchored(), SharedBuffer::default());
        let output = Output::new(kept.clone(), clock);
        let start = nearest(clock.now(), LENGTH) - LENGTH * 3;
        let times = (start, start + LENGTH * 10);
        assert_eq!(begin(&output, &clock, LENGTH, times, false).unwrap(), times);
        let ahead = (start + LENGTH * 1000, start + LENGTH * 2000);
        assert_eq!(begin(&output, &clock, LENGTH, ahead, true).unwrap(), ahead);
        assert!(kept.lines().is_empty());
        let (begun, over) = begin(&output, &clock, LENGTH, times, true).unwrap();
        assert!(begun >= start + LENGTH * 3);
        assert_eq!((over - begun, (begun - start) % LENGTH), (LENGTH * 10, 0));
        let said = &kept.lines()[0];
        assert_eq!(said["name"], "begun");
        // serde_json reads a number to within its last digit.
        assert_eq!(nanoseconds(said["detail"]["start"].as_f64().unwrap()).abs_diff(begun) / 1_000, 0);
    }

    impl SharedBuffer {
        fn lines(&self) -> Vec<Value> {
            let bytes = self.0.lock().unwrap();
            bytes
                .split(|&byte| byte == b'\n')
                .filter(|line| !line.is_empty())
                .map(|line| serde_json::from_slice(line).unwrap())
                .collect()
        }
    }

    fn windows(count: u64) -> (Windows, SharedBuffer, u64) {
        windows_of(LENGTH, count)
    }

    fn windows_of(length: u64, count: u64) -> (Windows, SharedBuffer, u64) {
        let (kept, clock) = (SharedBuffer::default(), Clock::anchored());
        let start = nearest_after(clock.now(), length);
        let output = Output::new(kept.clone(), clock);
        (Windows::new(NAMES, clock, length, start, start + count * length, output).unwrap(), kept, start)
    }

    #[test]
    fn windows_follow_each_other_on_the_grid_and_hold_their_own_counts() {
        let (mut windows, kept, start) = windows(3);
        let recorder = windows.recorder().unwrap();
        recorder.lock().add(0, 5);
        recorder.lock().set(0, 1.5);
        recorder.lock().latency(0, 2_000_000, 5);
        windows.run(&Stop::default(), || recorder.lock().add(0, 7)).unwrap();
        let lines = kept.lines();
        let counts: Vec<u64> = lines.iter().map(|line| line["counters"]["operations"].as_u64().unwrap()).collect();
        assert_eq!(counts.iter().sum::<u64>(), 12);
        assert_eq!((counts[0], *counts.last().unwrap()), (5, 7));
        let mut at = start;
        for (sequence, line) in lines.iter().enumerate() {
            assert_eq!(line["seq"], sequence);
            assert_eq!(nanoseconds(line["start"].as_f64().unwrap()).abs_diff(at) / 1_000, 0);
            at = nearest(nanoseconds(line["end"].as_f64().unwrap()), LENGTH);
            assert_eq!(line["gauges"]["round_trip_seconds"], 1.5);
        }
        assert_eq!(at, start + 3 * LENGTH);
        assert!(lines[0]["latency"]["append"].as_str().unwrap().starts_with("HIST"));
        assert!(lines[1]["latency"].get("append").is_none());
    }

    #[test]
    fn a_stop_prints_the_window_in_progress_and_how_much_of_it_was_measured() {
        // Long enough that the stop is in the first window, however late this thread is.
        let length = 1_000 * LENGTH;
        let (mut windows, kept, start) = windows_of(length, 1_000);
        let stop = Stop::default();
        stop.request();
        windows.run(&stop, || ()).unwrap();
        let lines = kept.lines();
        assert_eq!(lines.len(), 1);
        assert_eq!(nearest(nanoseconds(lines[0]["end"].as_f64().unwrap()), length), start + length);
        assert!(lines[0]["gauges"]["measured_seconds"].as_f64().unwrap() < seconds(length));
    }

    #[test]
    fn threads_are_added_and_gauges_merged_by_their_rule() {
        let (mut windows, kept, _) = windows(1);
        let (one, other) = (windows.recorder().unwrap(), windows.recorder().unwrap());
        one.lock().add(0, 2);
        other.lock().add(0, 3);
        one.lock().set(0, 4.0);
        other.lock().set(0, 2.0);
        one.lock().latency(0, u64::MAX, 1);
        windows.run(&Stop::default(), || ()).unwrap();
        let line = &kept.lines()[0];
        assert_eq!(line["counters"]["operations"], 5);
        assert_eq!(line["counters"]["overflows"], 1);
        assert_eq!(line["gauges"]["round_trip_seconds"], 4.0);
    }

    #[test]
    fn what_a_thread_waits_for_grows_older_until_the_windows_end() {
        let (mut windows, kept, start) = windows(8);
        let (stuck, healthy) = (windows.recorder().unwrap(), windows.recorder().unwrap());
        healthy.lock().look(start, OldestDue::default());
        stuck.lock().look(start, OldestDue { outstanding: Some(start - LENGTH), unbegun: Some(start - LENGTH / 2) });
        windows.run(&Stop::default(), || healthy.lock().look(start + 8 * LENGTH, OldestDue::default())).unwrap();
        let ages: Vec<f64> =
            kept.lines().iter().map(|line| line["gauges"]["oldest_outstanding_seconds"].as_f64().unwrap()).collect();
        // At least the observed age, which grows once the thread counts as blocked.
        assert!(ages[0] > 0.05 - 1e-6 && ages.is_sorted(), "{ages:?}");
        assert!((ages[ages.len() - 1] - 0.45).abs() < 1e-6, "{ages:?}");
        let debts = [0, 7].map(|at| kept.lines()[at]["gauges"]["schedule_debt_seconds"].as_f64().unwrap());
        assert!(debts[0] > 0.025 - 1e-6 && (debts[1] - 0.425).abs() < 1e-6, "{debts:?}");
    }

    #[test]
    fn an_operation_that_holds_up_a_thread_before_it_was_seen_is_as_old_as_the_last_look() {
        let (mut windows, kept, start) = windows(8);
        windows.recorder().unwrap().lock().look(start, OldestDue::default());
        windows.run(&Stop::default(), || ()).unwrap();
        let lines = kept.lines();
        assert_eq!(lines[0]["gauges"]["oldest_outstanding_seconds"], 0.0);
        for name in ["oldest_outstanding_seconds", "schedule_debt_seconds"] {
            assert!(lines[lines.len() - 1]["gauges"][name].as_f64().unwrap() > 0.39, "{name}");
        }
    }

    #[test]
    fn ages_that_no_thread_observes_are_absent() {
        let (mut windows, kept, _) = windows(1);
        windows.recorder().unwrap();
        windows.run(&Stop::default(), || ()).unwrap();
        for name in ["oldest_outstanding_seconds", "schedule_debt_seconds"] {
            assert!(kept.lines()[0]["gauges"].get(name).is_none(), "{name}");
        }
    }

    #[test]
    fn bounds_off_the_grid_are_refused() {
        let clock = Clock::anchored();
        let output = Output::new(Vec::new(), clock);
        for (start, stop) in [(LENGTH + 1_000_000, 2 * LENGTH), (LENGTH, LENGTH), (LENGTH, 2 * LENGTH - 1_000_000)] {
            assert!(Windows::new(NAMES, clock, LENGTH, start, stop, output.clone()).is_err());
        }
    }
}
