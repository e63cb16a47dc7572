//! Events, told by a thread of their own so that no hot thread waits for whoever reads them.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cliffwatch_measure::output::Output;
use serde_json::{Value, json};

/// Events of one name and subject are first so far apart, then twice as far with each that comes; those in between are
/// counted.
const APART: Duration = Duration::from_secs(1);
/// … up to this, so that an outage of a day takes no more than a few lines an hour.
const APART_MAX: Duration = Duration::from_secs(600);

/// Takes events to where they are told.
pub struct Teller {
    sender: Sender<(&'static str, Value)>,
    recent: BTreeMap<(&'static str, String), Recent>,
}

/// An event that was told lately.
struct Recent {
    told: Instant,
    apart: Duration,
    held_back: u64,
}

impl Clone for Teller {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), recent: BTreeMap::new() }
    }
}

impl Teller {
    /// Begins to tell on `output`; the thread ends once all tellers are gone.
    ///
    /// # Errors
    /// What the system said.
    pub fn start(output: Output) -> std::io::Result<(Self, JoinHandle<()>)> {
        let (sender, receiver) = channel();
        let thread = std::thread::Builder::new().name("events".to_owned()).spawn(move || tell(&receiver, &output))?;
        Ok((Self { sender, recent: BTreeMap::new() }, thread))
    }

    /// Something happened.
    pub fn event(&self, name: &'static str, detail: Value) {
        // Nobody reads any more when the run is over.
        let _ = self.sender.send((name, detail));
    }

    /// Something happened to `subject` that may go on happening: told ever less often while it does, with how many came
    /// since.
    pub fn again(&mut self, name: &'static str, subject: &str, detail: Value) {
        self.again_at(Instant::now(), name, subject, detail);
    }

    fn again_at(&mut self, now: Instant, name: &'static str, subject: &str, mut detail: Value) {
        let fresh = || Recent { told: now, apart: Duration::ZERO, held_back: 0 };
        let recent = self.recent.entry((name, subject.to_owned())).or_insert_with(fresh);
        let since = now.duration_since(recent.told);
        if since < recent.apart {
            recent.held_back += 1;
            return;
        }
        // After a pause it is something new.
        let goes_on = since < 2 * recent.apart;
        recent.apart = if goes_on { (2 * recent.apart).min(APART_MAX) } else { APART };
        recent.told = now;
        let held_back = std::mem::take(&mut recent.held_back);
        if let (Value::Object(fields), true) = (&mut detail, held_back > 0) {
            fields.insert("held_back".to_owned(), json!(held_back));
        }
        self.event(name, detail);
    }
}

fn tell(receiver: &Receiver<(&'static str, Value)>, output: &Output) {
    while let Ok((name, detail)) = receiver.recv() {
        // Whoever reads the windows has gone; the windows find that out too, and end the run.
        if output.event(name, detail).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_on_is_told_ever_less_often_and_nothing_of_it_is_uncounted() {
        let (sender, receiver) = channel();
        let mut teller = Teller { sender, recent: BTreeMap::new() };
        let begun = Instant::now();
        let mut again = |second: u64| {
            teller.again_at(begun + Duration::from_secs(second), "connection_failed", "1", json!({"second": second}));
        };
        (0..86_400).for_each(&mut again);
        let told: Vec<Value> = receiver.try_iter().map(|(_, detail)| detail).collect();
        assert_eq!([0, 1, 2, 3].map(|at: usize| told[at]["second"].as_u64()), [Some(0), Some(1), Some(3), Some(7)]);
        assert!(told.len() < 200, "{}", told.len());
        let held_back: u64 = told.iter().filter_map(|detail| detail["held_back"].as_u64()).sum();
        let last = told.last().unwrap()["second"].as_u64().unwrap();
        assert_eq!(told.len() as u64 + held_back, last + 1);
        // The next outage is told at once, and again soon.
        (200_000..200_002).for_each(&mut again);
        assert_eq!(receiver.try_iter().count(), 2);
    }
}
