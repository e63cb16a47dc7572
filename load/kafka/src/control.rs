//! Changes of the load at their times: pauses of the consumers, steps of the rate, and the search for the highest rate.

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
/// Looks while nothing is to happen soon: each is a wake-up that the load pays for.
const REST_NANOSECONDS: u64 = 100_000_000;
/// A backlog is drained when no more is left than was made in this.
const DRAINED_SECONDS: f64 = 0.1;
/// After a rate that could not be sustained, the next waits so long for the backlog at most.
const RECOVERY_SECONDS: f64 = 60.0;
/// Between rates the load settles for this share of a trial.
const SETTLE_RATIO: f64 = 0.25;

/// Changes the load at its times.
pub(crate) struct LoadController {
    /// What all see.
    pub(crate) shared: Arc<Shared>,
    /// What was asked for.
    pub(crate) config: Arc<Config>,
    /// What reaches each producer.
    pub(crate) producers: Vec<BackgroundTasks>,
    /// Where it counts.
    pub(crate) recorder: Recorder,
    /// Where it reports.
    pub(crate) events: EventReporter,
    /// What the wall clock did.
    pub(crate) steps: RefCell<WallClockSteps>,
}

impl LoadController {
    /// Works until the load is over.
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

    /// False when the load is over before this moment.
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

    /// Reports, once, that the wall clock was set: the run's time goes on as before.
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

    /// Has the consumers not read for a while, and reports when they have caught up.
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
            // A millionth of the first rate that was tried is as good as nothing.
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

    /// Whether a rate can be sustained; None when the load is over before that is known.
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

    /// Lets what is left of a rate that was too high drain away; false when the load is over.
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
