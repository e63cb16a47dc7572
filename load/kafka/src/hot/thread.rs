//! Event loop of a hot thread: take updates, act, wait in the poller, read responses.

use super::background::{Task, Update};
use super::broker::{Connection, Exchange};
use super::client::Client;
use super::leaders::known_addresses;
use super::poll::Readiness;
use super::prompt::take_short_turns;
use crate::admin::Metadata;
use crate::error::{Error, Result};
use serde_json::json;

/// Event loop of a thread that blocks only in its poller. Producers and consumers implement the required methods; the
/// rest is common. Brokers are given by index, times in nanoseconds since the epoch.
pub(crate) trait HotThread {
    /// Type of the requests and responses on its connections.
    type Exchange: Exchange;

    /// Client side of all its connections.
    fn client(&mut self) -> &mut Client<Self::Exchange>;

    /// Does the work that is due, and returns the nanoseconds to wait before the next turn; None once all is done.
    fn turn(&mut self, now: u64) -> Option<u64>;

    /// Processes a response; false when it is malformed or does not answer the oldest in-flight request.
    fn answered(&mut self, broker: usize, answer: &[u8], now: u64) -> bool;

    /// Applies new metadata.
    fn learn(&mut self, metadata: Metadata);

    /// Processes an update other than of connections or metadata.
    fn update(&mut self, update: Update, now: u64);

    /// True when a connection to this broker is needed.
    fn needs(&self, broker: usize) -> bool;

    /// Called when all requests to this broker are written completely.
    fn written(&mut self, broker: usize);

    /// Called when a connection is lost, to retry or fail its in-flight requests.
    fn disconnected(&mut self, broker: usize, now: u64);

    /// Request timeout in nanoseconds.
    fn request_timeout(&self) -> u64;

    /// Runs the event loop until `turn` returns None. Blocks.
    ///
    /// # Errors
    /// I/O error of the poller.
    fn take_turns(&mut self) -> Result<()> {
        let fault = |source| Error::Connection { doing: "waiting for connections".to_owned(), source };
        take_short_turns();
        loop {
            let now = self.client().shared.clock.now();
            self.receive_updates(now);
            let Some(wait) = self.turn(now) else { return Ok(()) };
            let client = self.client();
            let readiness = &mut client.readiness;
            readiness.clear();
            client.poller.wait(wait, |ready| readiness.push(ready)).map_err(fault)?;
            for at in 0..self.client().readiness.len() {
                let ready = self.client().readiness[at];
                self.attend(ready);
            }
        }
    }

    /// Processes all pending updates from background tasks and other threads.
    fn receive_updates(&mut self, now: u64) {
        while let Ok(update) = self.client().updates.try_recv() {
            match update {
                Update::Connected(id, outcome) => self.client().connected(id, outcome, now),
                Update::Metadata(Ok(metadata)) => {
                    self.client().refresh.succeeded(now);
                    self.learn(metadata);
                }
                Update::Metadata(Err(error)) => {
                    let client = self.client();
                    client.refresh.failed(now, |failures| client.backoff.after(failures));
                    client.events.report_recurring("metadata_unavailable", "", json!({"error": error.to_string()}));
                }
                other => self.update(other, now),
            }
        }
    }

    /// Starts the connections that are needed, closes those with a timed-out request, and requests metadata when due.
    fn keep_connections(&mut self, now: u64) {
        let timeout = self.request_timeout();
        for broker in 0..self.client().brokers.len() {
            let found = &self.client().brokers[broker];
            let may_connect = matches!(found.connection, Connection::Down(at) if at <= now);
            let is_late = found.is_up() && found.exchange.oldest_sent_at().is_some_and(|sent| sent + timeout < now);
            if may_connect && self.needs(broker) {
                let client = self.client();
                let found = &mut client.brokers[broker];
                found.connection = Connection::Connecting;
                client.tasks.start(Task::Connect(found.id, found.address.clone()));
            } else if is_late {
                self.disconnect(broker, "a request was not answered in time", now);
            }
        }
        let client = self.client();
        if client.refresh.starts(now) {
            client.tasks.start(Task::Metadata(known_addresses(&client.brokers)));
        }
    }

    /// Writes pending requests to a broker without blocking; the rest follows when the socket is writable again.
    fn write(&mut self, broker: usize, now: u64) {
        match self.client().write(broker) {
            Ok(true) => self.written(broker),
            Ok(false) => {}
            Err(error) => self.disconnect(broker, &error.to_string(), now),
        }
    }

    /// Handles a ready connection: writes, then reads.
    fn attend(&mut self, ready: Readiness) {
        if ready.writable {
            let now = self.client().shared.clock.now();
            self.write(ready.token, now);
        }
        if ready.readable {
            self.read(ready.token);
        }
    }

    /// Reads all available input of a broker and processes each complete response; closes the connection on an error.
    fn read(&mut self, broker: usize) {
        loop {
            let Connection::Up(link) = &mut self.client().brokers[broker].connection else { return };
            let received = link.receive();
            // After the read, not before: otherwise a delay in between would date a response earlier than it arrived.
            let now = self.client().shared.clock.now();
            loop {
                let Connection::Up(link) = &mut self.client().brokers[broker].connection else { return };
                match link.answer() {
                    Ok(Some(range)) => {
                        let input = std::mem::take(&mut link.input);
                        let is_understood = self.answered(broker, &input[range], now);
                        let Connection::Up(link) = &mut self.client().brokers[broker].connection else { return };
                        link.input = input;
                        if !is_understood {
                            self.disconnect(broker, "an answer that is not of the protocol", now);
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.disconnect(broker, &error.to_string(), now);
                        return;
                    }
                }
            }
            match received {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.disconnect(broker, &error.to_string(), now);
                    return;
                }
            }
        }
    }

    /// Closes a connection, reports the reason, and handles its in-flight requests.
    fn disconnect(&mut self, broker: usize, reason: &str, now: u64) {
        self.client().close(broker, reason, now);
        self.disconnected(broker, now);
    }
}
