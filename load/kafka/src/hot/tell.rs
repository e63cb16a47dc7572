//! Events, told by a thread of their own so that no hot thread waits for whoever reads them.

use std::collections::BTreeMap;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use cliffwatch_measure::output::Output;
use serde_json::{Value, json};

/// Events of one name and subject come no more often; those in between are counted.
const APART: Duration = Duration::from_secs(1);

/// Takes events to where they are told.
pub struct Teller {
    sender: Sender<(&'static str, Value)>,
    recent: BTreeMap<(&'static str, String), (Instant, u64)>,
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

    /// Something happened to `subject` that may go on happening: told once a second at most, with how many came since.
    pub fn again(&mut self, name: &'static str, subject: &str, detail: Value) {
        let now = Instant::now();
        let entry = self.recent.entry((name, subject.to_owned()));
        let mut held_back = 0;
        match entry {
            std::collections::btree_map::Entry::Occupied(mut recent) => {
                let (told, count) = recent.get_mut();
                if now.duration_since(*told) < APART {
                    *count += 1;
                    return;
                }
                held_back = std::mem::take(count);
                *told = now;
            }
            std::collections::btree_map::Entry::Vacant(vacant) => {
                vacant.insert((now, 0));
            }
        }
        let mut detail = detail;
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
