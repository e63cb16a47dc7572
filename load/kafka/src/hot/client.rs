//! What every hot thread has: its brokers, and the means to count, to report, and to be woken.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use cliffwatch_measure::recorder::Recorder;
use serde_json::json;

use super::background::{BackgroundTasks, Update};
use super::backoff::Backoff;
use super::broker::{Broker, Exchange};
use super::events::EventReporter;
use super::leaders::{self, HasLeader, LeaderChange};
use super::link::Link;
use super::poll::{Poller, Readiness};
use super::refresh::Refresh;
use super::wake_up::WakeUp;
use crate::admin::Metadata;
use crate::error::{Error, Result};
use crate::names::Counter;
use crate::security::Transport;
use crate::shared::Shared;

/// What a hot thread is given, whatever it does.
pub(crate) struct ClientSetup {
    /// What all see.
    pub(crate) shared: Arc<Shared>,
    /// Where it counts.
    pub(crate) recorder: Recorder,
    /// Where it reports.
    pub(crate) events: EventReporter,
    /// Who leads what, to begin with.
    pub(crate) metadata: Metadata,
    /// What does for it what would make it wait.
    pub(crate) tasks: BackgroundTasks,
    /// What those bring.
    pub(crate) updates: Receiver<Update>,
    /// What wakes it.
    pub(crate) poller: Poller,
}

/// A hot thread's side of all its connections.
pub(crate) struct Client<E> {
    /// What all see.
    pub(crate) shared: Arc<Shared>,
    /// Where it counts.
    pub(crate) recorder: Recorder,
    /// Where it reports.
    pub(crate) events: EventReporter,
    /// What does for it what would make it wait.
    pub(crate) tasks: BackgroundTasks,
    /// Every broker that was ever heard of: an index stays what it is.
    pub(crate) brokers: Vec<Broker<E>>,
    /// When metadata is asked for.
    pub(crate) refresh: Refresh,
    /// How long to wait after failures.
    pub(crate) backoff: Backoff,
    /// When it wakes up.
    pub(crate) wake_up: WakeUp,
    pub(super) updates: Receiver<Update>,
    pub(super) poller: Poller,
    pub(super) readiness: Vec<Readiness>,
    correlation: i32,
}

impl<E: Exchange> Client<E> {
    /// Without brokers: those come with metadata.
    pub(crate) fn new(setup: ClientSetup, backoff: Backoff) -> Self {
        Self {
            shared: setup.shared,
            recorder: setup.recorder,
            events: setup.events,
            tasks: setup.tasks,
            brokers: Vec::new(),
            refresh: Refresh::default(),
            backoff,
            wake_up: WakeUp::default(),
            updates: setup.updates,
            poller: setup.poller,
            readiness: Vec::new(),
            correlation: 0,
        }
    }

    /// What the next request carries, and its answer.
    pub(crate) fn next_correlation(&mut self) -> i32 {
        self.correlation = self.correlation.wrapping_add(1);
        self.correlation
    }

    /// Takes over who leads what; what has changed of it.
    pub(crate) fn take_over(&mut self, metadata: &Metadata, partitions: &mut [impl HasLeader]) -> Vec<LeaderChange> {
        let changes = leaders::take_over(metadata, &mut self.brokers, partitions);
        if leaders::leaderless(partitions) > 0 {
            self.refresh.want();
        }
        changes
    }

    /// Writes to a broker what there is room for, and waits for room for the rest; true when all is written.
    pub(super) fn write(&mut self, broker: usize) -> std::io::Result<bool> {
        let found = &mut self.brokers[broker];
        let is_written = found.write()?;
        if found.waits_for_room == is_written {
            found.waits_for_room = !is_written;
            if let super::broker::Connection::Up(link) = &found.connection
                && let Some(socket) = link.stream.socket()
            {
                // It fails only for a connection that is broken, which reading finds out.
                let _ = self.poller.want_write(socket, broker, !is_written);
            }
        }
        Ok(is_written)
    }

    /// A connection was made, or could not be.
    pub(super) fn connected(&mut self, id: i32, outcome: Result<(Transport, i16)>, now: u64) {
        let Some(broker) = self.brokers.iter().position(|broker| broker.id == id) else { return };
        let linked = outcome.and_then(|(stream, version)| {
            let fault = |source| Error::Connection { doing: "connecting".to_owned(), source };
            let link = Link::new(stream).map_err(fault)?;
            if let Some(socket) = link.stream.socket() {
                self.poller.add(socket, broker).map_err(fault)?;
            }
            Ok((link, version))
        });
        let found = &mut self.brokers[broker];
        match linked {
            Ok((link, version)) => {
                if found.failures > 0 {
                    self.recorder.lock().add(Counter::Reconnects as usize, 1);
                    self.events.report("reconnected", json!({"broker": id}));
                }
                found.up(link, version);
            }
            Err(error) => {
                found.down(now, |failures| self.backoff.after(failures));
                self.refresh.want();
                let detail = json!({"broker": id, "error": error.to_string()});
                self.events.report_recurring("connection_failed", &id.to_string(), detail);
            }
        }
    }

    /// Gives a connection up, for a reason in words.
    pub(super) fn close(&mut self, broker: usize, reason: &str, now: u64) {
        let found = &mut self.brokers[broker];
        let detail = json!({
            "broker": found.id, "address": found.address.to_string(), "reason": reason,
            "requests": found.exchange.unanswered(),
        });
        found.down(now, |failures| self.backoff.after(failures));
        self.events.report_recurring("disconnected", &broker.to_string(), detail);
        self.recorder.lock().add(Counter::Disconnects as usize, 1);
        self.refresh.want();
    }

    /// A broker asks not to be sent anything for a while.
    pub(crate) fn throttled(&mut self, broker: usize, milliseconds: u64, now: u64) {
        let found = &mut self.brokers[broker];
        found.muted_until = now + milliseconds * 1_000_000;
        self.recorder.lock().add(Counter::ThrottleMilliseconds as usize, milliseconds);
        let detail = json!({"broker": found.id, "milliseconds": milliseconds});
        self.events.report_recurring("throttled", &broker.to_string(), detail);
    }
}
