//! The turns of a hot thread: it acts, waits in its poller, and reads what has arrived.

use super::background::{Task, Update};
use super::broker::{Connection, Exchange};
use super::client::Client;
use super::leaders::known_addresses;
use super::poll::Readiness;
use super::prompt::take_short_turns;
use crate::admin::Metadata;
use crate::error::{Error, Result};
use serde_json::json;

/// A thread that never waits but in its poller. What differs between producing and consuming is asked for; the rest is
/// done here, once. Brokers are given by index, moments in nanoseconds since the epoch.
pub(crate) trait HotThread {
    /// What is sent and answered on its connections.
    type Exchange: Exchange;

    /// Its side of all connections.
    fn client(&mut self) -> &mut Client<Self::Exchange>;

    /// Does what is to be done now. How long nothing is to be done after that, in nanoseconds; None at its end.
    fn turn(&mut self, now: u64) -> Option<u64>;

    /// Takes an answer; false when it is none to the oldest request.
    fn answered(&mut self, broker: usize, answer: &[u8], now: u64) -> bool;

    /// Takes over who leads what.
    fn learn(&mut self, metadata: Metadata);

    /// Takes an update that is not of connections or metadata.
    fn update(&mut self, update: Update, now: u64);

    /// True when a connection to this broker is needed.
    fn needs(&self, broker: usize) -> bool;

    /// Requests to this broker are written to their end.
    fn written(&mut self, broker: usize);

    /// A connection has ended: takes back what was not answered.
    fn disconnected(&mut self, broker: usize, now: u64);

    /// How long a request may go without an answer, in nanoseconds.
    fn request_timeout(&self) -> u64;

    /// Takes turns until there are none left.
    ///
    /// # Errors
    /// What the system said of waiting.
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

    /// Takes what background tasks brought.
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

    /// Makes the connections that are needed, gives up those that do not answer, and asks for metadata when that is due.
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

    /// Writes what there is room for; what is left goes on when there is room again.
    fn write(&mut self, broker: usize, now: u64) {
        match self.client().write(broker) {
            Ok(true) => self.written(broker),
            Ok(false) => {}
            Err(error) => self.disconnect(broker, &error.to_string(), now),
        }
    }

    /// A connection can be read from or written to.
    fn attend(&mut self, ready: Readiness) {
        if ready.writable {
            let now = self.client().shared.clock.now();
            self.write(ready.token, now);
        }
        if ready.readable {
            self.read(ready.token);
        }
    }

    /// Reads all that has arrived from a broker, answer by answer.
    fn read(&mut self, broker: usize) {
        loop {
            let Connection::Up(link) = &mut self.client().brokers[broker].connection else { return };
            let received = link.receive();
            // Not before: a thread that is held up in between would report an answer as earlier than it came.
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

    /// Gives a connection up, for a reason in words.
    fn disconnect(&mut self, broker: usize, reason: &str, now: u64) {
        self.client().close(broker, reason, now);
        self.disconnected(broker, now);
    }
}
