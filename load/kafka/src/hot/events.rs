//! Event reporting: a thread of its own prints events, so that no hot thread blocks on output.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cliffwatch_measure::output::Output;
use serde_json::{Value, json};

/// Minimum interval between recurring events of one name and subject; it doubles with each that is reported, and those
/// in between are counted.
const APART: Duration = Duration::from_secs(1);
/// Upper limit of that interval, so that a day's outage takes only a few lines an hour.
const APART_MAX: Duration = Duration::from_secs(600);

/// Sends events to the thread that prints them, and limits how often recurring ones are reported.
pub(crate) struct EventReporter {
    sender: Sender<(&'static str, Value)>,
    recent: BTreeMap<(&'static str, String), Recent>,
}

/// Rate limit of one recurring event: last report, current interval, suppressed count.
struct Recent {
    reported: Instant,
    apart: Duration,
    held_back: u64,
}

impl Clone for EventReporter {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), recent: BTreeMap::new() }
    }
}

impl EventReporter {
    /// Starts the thread that prints events on `output`; it ends once all reporters are dropped, or printing fails.
    ///
    /// # Errors
    /// I/O error of starting the thread.
    pub(crate) fn start(output: Output) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("events".to_owned()).spawn(move || print(&receiver, &output))?;
        Ok((Self { sender, recent: BTreeMap::new() }, thread))
    }

    /// Reporter that discards events.
    #[cfg(test)]
    pub(crate) fn silent() -> Self {
        Self { sender: channel().0, recent: BTreeMap::new() }
    }

    /// Reports an event at once.
    pub(crate) fn report(&self, name: &'static str, detail: Value) {
        // Sending fails once the printing thread has ended, after the run.
        let _ = self.sender.send((name, detail));
    }

    /// Reports an event about `subject` that may recur: at intervals that grow from 1 s to 10 min while it does, with
    /// the number suppressed since the last report as `held_back`.
    pub(crate) fn report_recurring(&mut self, name: &'static str, subject: &str, detail: Value) {
        self.report_at(Instant::now(), name, subject, detail);
    }

    fn report_at(&mut self, now: Instant, name: &'static str, subject: &str, mut detail: Value) {
        let fresh = || Recent { reported: now, apart: Duration::ZERO, held_back: 0 };
        let recent = self.recent.entry((name, subject.to_owned())).or_insert_with(fresh);
        let since = now.duration_since(recent.reported);
        if since < recent.apart {
            recent.held_back += 1;
            return;
        }
        // After a pause of twice the interval it counts as a new event.
        let goes_on = since < 2 * recent.apart;
        recent.apart = if goes_on { (2 * recent.apart).min(APART_MAX) } else { APART };
        recent.reported = now;
        let held_back = std::mem::take(&mut recent.held_back);
        if let (Value::Object(fields), true) = (&mut detail, held_back > 0) {
            fields.insert("held_back".to_owned(), json!(held_back));
        }
        self.report(name, detail);
    }
}

fn print(receiver: &Receiver<(&'static str, Value)>, output: &Output) {
    while let Ok((name, detail)) = receiver.recv() {
        // The output is closed: printing the next window fails too, and that ends the run.
        if output.event(name, detail).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_reported_ever_less_often_and_nothing_of_it_is_uncounted() {
        let (sender, receiver) = channel();
        let mut events = EventReporter { sender, recent: BTreeMap::new() };
        let started = Instant::now();
        let mut fail_at = |second: u64| {
            events.report_at(
                started + Duration::from_secs(second),
                "connection_failed",
                "1",
                json!({"second": second}),
            );
        };
        (0..86_400).for_each(&mut fail_at);
        let reported: Vec<Value> = receiver.try_iter().map(|(_, detail)| detail).collect();
        assert_eq!([0, 1, 2, 3].map(|at: usize| reported[at]["second"].as_u64()), [Some(0), Some(1), Some(3), Some(7)]);
        assert!(reported.len() < 200, "{}", reported.len());
        let held_back: u64 = reported.iter().filter_map(|detail| detail["held_back"].as_u64()).sum();
        let last = reported.last().unwrap()["second"].as_u64().unwrap();
        assert_eq!(reported.len() as u64 + held_back, last + 1);
        // The next outage is reported at once, and again soon.
        (200_000..200_002).for_each(&mut fail_at);
        assert_eq!(receiver.try_iter().count(), 2);
    }
}
