//! Client of a hot thread: its brokers, metadata refresh, metrics, events and poller.

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

/// Resources common to all hot threads, producing or consuming.
pub(crate) struct ClientSetup {
    /// State shared by all threads of the run.
    pub(crate) shared: Arc<Shared>,
    /// Recorder of its metrics.
    pub(crate) recorder: Recorder,
    /// Reporter of its events.
    pub(crate) events: EventReporter,
    /// Initial cluster metadata.
    pub(crate) metadata: Metadata,
    /// Starts background tasks for blocking calls.
    pub(crate) tasks: BackgroundTasks,
    /// Receiver of the results of background tasks and of other updates.
    pub(crate) updates: Receiver<Update>,
    /// Poller that the thread waits in.
    pub(crate) poller: Poller,
}

/// Client side of all connections of a hot thread.
pub(crate) struct Client<E> {
    /// State shared by all threads of the run.
    pub(crate) shared: Arc<Shared>,
    /// Recorder of its metrics.
    pub(crate) recorder: Recorder,
    /// Reporter of its events.
    pub(crate) events: EventReporter,
    /// Starts background tasks for blocking calls.
    pub(crate) tasks: BackgroundTasks,
    /// Every broker that metadata has named; none is removed, so that indexes stay valid.
    pub(crate) brokers: Vec<Broker<E>>,
    /// Schedule of metadata requests.
    pub(crate) refresh: Refresh,
    /// Backoff after failures.
    pub(crate) backoff: Backoff,
    /// Schedule of wake-ups and upkeep.
    pub(crate) wake_up: WakeUp,
    pub(super) updates: Receiver<Update>,
    pub(super) poller: Poller,
    pub(super) readiness: Vec<Readiness>,
    correlation: i32,
}

impl<E: Exchange> Client<E> {
    /// Creates a client without brokers; metadata adds them.
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

    /// Returns the correlation id of the next request.
    pub(crate) fn next_correlation(&mut self) -> i32 {
        self.correlation = self.correlation.wrapping_add(1);
        self.correlation
    }

    /// Applies new metadata to brokers and partitions and returns the leader changes; requests metadata again while a
    /// partition has no leader.
    pub(crate) fn take_over(&mut self, metadata: &Metadata, partitions: &mut [impl HasLeader]) -> Vec<LeaderChange> {
        let changes = leaders::take_over(metadata, &mut self.brokers, partitions);
        if leaders::leaderless(partitions) > 0 {
            self.refresh.want();
        }
        changes
    }

    /// Writes pending requests to a broker without blocking, and polls for write readiness while some are left; true
    /// when all is written.
    pub(super) fn write(&mut self, broker: usize) -> std::io::Result<bool> {
        let found = &mut self.brokers[broker];
        let is_written = found.write()?;
        if found.waits_for_room == is_written {
            found.waits_for_room = !is_written;
            if let super::broker::Connection::Up(link) = &found.connection
                && let Some(socket) = link.stream.socket()
            {
                // It fails only for a broken connection, which the next read reports.
                let _ = self.poller.want_write(socket, broker, !is_written);
            }
        }
        Ok(is_written)
    }

    /// Handles the result of a connection attempt: registers the connection, or schedules the next attempt.
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

    /// Closes a connection, schedules the next attempt, and reports the reason.
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

    /// Applies and reports a broker's throttle time: no requests are sent to it for this many milliseconds.
    pub(crate) fn throttled(&mut self, broker: usize, milliseconds: u64, now: u64) {
        let found = &mut self.brokers[broker];
        found.muted_until = now + milliseconds * 1_000_000;
        self.recorder.lock().add(Counter::ThrottleMilliseconds as usize, milliseconds);
        let detail = json!({"broker": found.id, "milliseconds": milliseconds});
        self.events.report_recurring("throttled", &broker.to_string(), detail);
    }
}
