//! Load control over time: consumer pauses, target rate, and the search for the maximum sustainable rate.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cliffwatch_measure::clock::{nanoseconds, seconds};
use cliffwatch_measure::recorder::Recorder;
use serde_json::json;

use crate::clocks::wall::{self, WallClockSteps};
use crate::config::{Config, Pause, Search};
use crate::hot::background::{BackgroundTasks, Update};
use crate::hot::events::EventReporter;
use crate::names::Gauge;
use crate::shared::Shared;

const TICK_NANOSECONDS: u64 = 20_000_000;
/// Longest sleep between polls while nothing is due soon: each wake-up takes processor time from the load.
const REST_NANOSECONDS: u64 = 100_000_000;
/// A backlog counts as drained when it is no more than the rate makes in this time, or 1,000 records.
const DRAINED_SECONDS: f64 = 0.1;
/// Longest wait for the backlog to drain after a rate that was not sustained.
const RECOVERY_SECONDS: f64 = 60.0;
/// Settling time before each trial, as a share of the trial's length.
const SETTLE_RATIO: f64 = 0.25;

/// Thread that pauses consumers, searches for the maximum sustainable rate, and reports target rate and clock steps.
pub(crate) struct LoadController {
    /// State shared by all threads of the run.
    pub(crate) shared: Arc<Shared>,
    /// Configuration of the load.
    pub(crate) config: Arc<Config>,
    /// Channels to the producers, for rate changes.
    pub(crate) producers: Vec<BackgroundTasks>,
    /// Recorder of its gauges.
    pub(crate) recorder: Recorder,
    /// Reporter of its events.
    pub(crate) events: EventReporter,
    /// Detector of wall clock steps.
    pub(crate) steps: RefCell<WallClockSteps>,
}

impl LoadController {
    /// Runs the search, or else the pauses, until the load is over; blocks the thread.
    pub(crate) fn run(self) {
        self.shared.clock.sleep_until(self.shared.load_start);
        if let Some(search) = self.config.search {
            self.search(search);
            return;
        }
        let pauses = self.config.consumer.as_ref().map_or(&[][..], |consumer| &consumer.pauses);
        for pause in pauses {
            if !self.wait_until(self.shared.load_start + nanoseconds(pause.after_seconds)) {
                return;
            }
            self.pause(*pause);
        }
        self.wait_until(self.shared.load_stop);
    }

    /// Sleeps until `moment` (nanoseconds since the epoch) and updates gauges; false when the load is over before.
    fn wait_until(&self, moment: u64) -> bool {
        loop {
            let now = self.shared.clock.now();
            if self.shared.is_over(now) {
                return false;
            }
            self.watch_wall_clock(now);
            if self.config.search.is_none() {
                self.show_rate(self.scheduled_rate(now));
            }
            if now >= moment {
                return true;
            }
            self.shared.clock.sleep_until(moment.min(now + REST_NANOSECONDS));
        }
    }

    /// Sets the gauge of the wall clock's offset from the run's clock; reports `clock_stepped` when it was set.
    fn watch_wall_clock(&self, now: u64) {
        let mut steps = self.steps.borrow_mut();
        if !steps.is_due(now) {
            return;
        }
        let Some(ahead) = wall::ahead_of(self.shared.clock) else { return };
        self.recorder.lock().set(Gauge::WallClockOffset as usize, ahead as f64 / 1e9);
        if let Some(moved) = steps.look(now, ahead) {
            let detail = json!({"seconds": moved as f64 / 1e9, "wall_clock_offset_seconds": ahead as f64 / 1e9});
            self.events.report("clock_stepped", detail);
        }
    }

    fn scheduled_rate(&self, now: u64) -> f64 {
        let Some(producer) = &self.config.producer else { return 0.0 };
        let passed = seconds(now.saturating_sub(self.shared.load_start));
        let step = producer.steps.iter().rev().find(|step| step.after_seconds <= passed);
        step.map(|step| step.rate).or(producer.rate).unwrap_or(0.0)
    }

    fn show_rate(&self, rate: f64) {
        self.recorder.lock().set(Gauge::TargetRate as usize, rate);
    }

    /// Pauses the consumers, resumes them, and waits until the backlog is drained; reports each as an event.
    fn pause(&self, pause: Pause) {
        let started = self.shared.clock.now();
        self.shared.paused.store(true, Ordering::Release);
        self.events.report("consumers_paused", json!({}));
        let until = pause.seconds.map_or(u64::MAX, |length| started + nanoseconds(length));
        let limit = pause.until_bytes.unwrap_or(u64::MAX);
        while self.shared.clock.now() < until && self.shared.backlog().1 < limit {
            if !self.wait_until(until.min(self.shared.clock.now() + TICK_NANOSECONDS)) {
                break;
            }
        }
        self.shared.paused.store(false, Ordering::Release);
        let resumed = self.shared.clock.now();
        let (records, bytes) = self.shared.backlog();
        let detail =
            json!({"paused_seconds": seconds(resumed - started), "backlog_records": records, "backlog_bytes": bytes});
        self.events.report("consumers_resumed", detail);
        loop {
            let now = self.shared.clock.now();
            if self.is_drained(self.scheduled_rate(now)) {
                self.events.report("backlog_drained", json!({"seconds": seconds(now - resumed)}));
                return;
            }
            if !self.wait_until(now + TICK_NANOSECONDS) {
                return;
            }
        }
    }

    fn is_drained(&self, rate: f64) -> bool {
        (self.shared.backlog().0 as f64) <= (rate * DRAINED_SECONDS).max(1_000.0)
    }

    fn set_rate(&self, rate: f64) {
        for producer in &self.producers {
            producer.send(Update::Rate(rate));
        }
        self.show_rate(rate);
    }

    fn search(&self, search: Search) {
        let (mut sustained, mut unsustained, mut rate) = (0.0, f64::INFINITY, search.first_rate);
        loop {
            let Some(is_sustained) = self.trial(search, rate) else { return };
            if is_sustained {
                sustained = rate;
            } else {
                unsustained = rate;
            }
            let is_found = sustained > 0.0 && unsustained / sustained <= 1.0 + search.resolution_ratio;
            // No rate counts as sustainable once a millionth of the first one has failed.
            if is_found || (sustained == 0.0 && rate < search.first_rate * 1e-6) {
                break;
            }
            rate = match (sustained > 0.0, unsustained.is_finite()) {
                (_, false) => rate * 2.0,
                (false, true) => rate / 2.0,
                (true, true) => (sustained * unsustained).sqrt(),
            };
        }
        let resolution = if sustained > 0.0 { unsustained / sustained - 1.0 } else { f64::INFINITY };
        let detail = json!({
            "sustained": sustained, "not_sustained": unsustained, "resolution_ratio": resolution,
            "trial_seconds": search.trial_seconds, "p99_seconds": search.p99_seconds,
        });
        self.events.report("maximum_sustainable_rate", detail);
        self.shared.stop.request();
    }

    /// Tries a rate for one trial: whether it was sustained; None when the load is over before that is known.
    fn trial(&self, search: Search, rate: f64) -> Option<bool> {
        self.set_rate(rate);
        let started = self.shared.clock.now();
        let settled = started + nanoseconds(search.trial_seconds * SETTLE_RATIO);
        if !self.wait_until(settled) {
            return None;
        }
        if let Some(mut trial) = self.shared.trial() {
            trial.publish.clear();
            trial.end_to_end.clear();
        }
        if !self.wait_until(settled + nanoseconds(search.trial_seconds)) {
            return None;
        }
        let (publish, end_to_end, count) = {
            let trial = self.shared.trial()?;
            (trial.publish.quantile(0.99), trial.end_to_end.quantile(0.99), trial.publish.count())
        };
        let behind = self.shared.backlog().0 as f64 / rate;
        let debt = self.shared.debts.iter().map(|debt| debt.load(Ordering::Relaxed)).max().unwrap_or(0);
        let limit = search.p99_seconds;
        let is_sustained = count > 0
            && seconds(publish) <= limit
            && seconds(end_to_end) <= limit
            && behind <= search.behind_seconds
            && seconds(debt) <= search.behind_seconds;
        let detail = json!({
            "rate": rate, "sustained": is_sustained, "acknowledged": count, "publish_p99_seconds": seconds(publish),
            "end_to_end_p99_seconds": seconds(end_to_end), "consumers_behind_seconds": behind,
            "schedule_debt_seconds": seconds(debt),
        });
        self.events.report("rate_tried", detail);
        if !is_sustained && !self.recover() {
            return None;
        }
        Some(is_sustained)
    }

    /// Stops producing until the backlog is drained, `RECOVERY_SECONDS` at most; false when the load is over before.
    fn recover(&self) -> bool {
        self.set_rate(0.0);
        let until = self.shared.clock.now() + nanoseconds(RECOVERY_SECONDS);
        loop {
            let now = self.shared.clock.now();
            if now >= until || self.is_drained(0.0) {
                return true;
            }
            if !self.wait_until(now + TICK_NANOSECONDS) {
                return false;
            }
        }
    }
}
