//! What becomes of batches: acknowledged, sent again, or failed for good.

use cliffwatch_measure::clock::nanoseconds;
use serde_json::json;

use super::Producer;
use super::broker::{Sent, State};
use super::queue::Pending;
use crate::config::Acks;
use crate::error::{Remedy, code, describe};
use crate::names::{Counter, Latency};
use crate::wire::produce::{Outcome, outcomes};

/// What an answer said of a part of its request.
pub(super) struct Found {
    part: usize,
    error: i16,
}

impl Producer {
    /// Takes an answer; false when it is none to the oldest request.
    pub(super) fn answered(&mut self, place: usize, answer: &[u8], now: u64) -> bool {
        let broker = &mut self.brokers[place];
        if self.settings.acks == Acks::None {
            broker.awaits_last_word = false;
            return true;
        }
        let Some((correlation, rest)) = answer.split_first_chunk::<4>() else { return false };
        if broker.in_flight.front().is_none_or(|sent| sent.correlation != i32::from_be_bytes(*correlation)) {
            return false;
        }
        // Answered before it was written to its end: this cannot be.
        if broker.in_flight.len() == 1 && !broker.is_written() {
            return false;
        }
        let Some(mut sent) = broker.in_flight.pop_front() else { return false };
        let (mut found, mut cursor) = (std::mem::take(&mut self.outcomes), 0);
        found.clear();
        let result = outcomes(rest, broker.version, |outcome| {
            if let Some(part) = self.find_part(&sent, &mut cursor, &outcome) {
                found.push(Found { part, error: outcome.error });
            }
            if outcome.error != code::NONE {
                self.complain(place, &outcome);
            }
        });
        let Ok(throttle) = result else {
            // What became of it is not known; it is sent again with everything else on this connection.
            self.brokers[place].in_flight.push_front(sent);
            self.outcomes = found;
            return false;
        };
        if throttle > 0 {
            self.throttled(place, throttle as u64, now);
        }
        for one in &found {
            let partition = sent.parts[one.part].partition;
            if let Some(pending) = sent.parts[one.part].pending.take() {
                self.decide(partition, pending, one.error, now);
            }
        }
        self.outcomes = found;
        // What the answer does not mention has to be asked for again.
        self.take_back(&mut sent, now);
        self.brokers[place].spare.push(sent);
        true
    }

    /// The part of the request that an answer speaks of. Answers follow the order of their requests as a rule.
    fn find_part(&self, sent: &Sent, cursor: &mut usize, outcome: &Outcome<'_>) -> Option<usize> {
        let is_it = |at: usize| {
            let queue = &self.queues[sent.parts[at].partition];
            queue.index == outcome.partition && self.shared.topics[queue.topic] == outcome.topic
        };
        let count = sent.parts.len();
        let at = (0..count).map(|step| (*cursor + step) % count).find(|&at| is_it(at))?;
        *cursor = at + 1;
        Some(at)
    }

    fn complain(&mut self, place: usize, outcome: &Outcome<'_>) {
        self.recorder.lock().add(Counter::BrokerErrors as usize, 1);
        let (name, _) = describe(outcome.error);
        let detail = json!({
            "broker": self.brokers[place].id, "error": name, "code": outcome.error,
            "topic": outcome.topic, "partition": outcome.partition, "message": outcome.message,
        });
        self.teller.again("produce_error", name, detail);
    }

    fn throttled(&mut self, place: usize, milliseconds: u64, now: u64) {
        self.brokers[place].muted_until = now + milliseconds * 1_000_000;
        self.recorder.lock().add(Counter::ThrottleMilliseconds as usize, milliseconds);
        let detail = json!({"broker": self.brokers[place].id, "milliseconds": milliseconds});
        self.teller.again("throttled", &place.to_string(), detail);
    }

    fn decide(&mut self, partition: usize, pending: Pending, error: i16, now: u64) {
        match error {
            code::NONE => self.succeed(partition, pending, now),
            code::DUPLICATE_SEQUENCE_NUMBER => {
                self.recorder.lock().add(Counter::DuplicatesRejected as usize, 1);
                self.succeed(partition, pending, now);
            }
            code::OUT_OF_ORDER_SEQUENCE_NUMBER => {
                // Where one before it failed this is how the broker keeps the order; otherwise it has forgotten us.
                let queue = &self.queues[partition];
                if queue.in_flight == 1 && queue.is_first(pending.order) && queue.held_until().is_none() {
                    self.wants_reset("OUT_OF_ORDER_SEQUENCE_NUMBER");
                }
                self.send_again(partition, pending, now);
            }
            code::UNKNOWN_PRODUCER_ID | code::INVALID_PRODUCER_EPOCH => {
                self.wants_reset(describe(error).0);
                self.send_again(partition, pending, now);
            }
            _ => match describe(error).1 {
                Remedy::Give => self.give_up(partition, pending, describe(error).0),
                Remedy::Refresh => {
                    self.wants_metadata = true;
                    self.send_again(partition, pending, now);
                }
                Remedy::Retry => self.send_again(partition, pending, now),
            },
        }
    }

    /// A batch is acknowledged.
    pub(super) fn succeed(&mut self, partition: usize, pending: Pending, now: u64) {
        let queue = &mut self.queues[partition];
        queue.in_flight -= 1;
        let (count, bytes) = (pending.batch.count() as u64, pending.batch.value_bytes);
        let mut tally = self.recorder.lock();
        for due in &pending.batch.due {
            tally.latency(Latency::Publish as usize, now.saturating_sub(*due), 1);
        }
        tally.latency(Latency::PublishService as usize, now.saturating_sub(pending.sent), count);
        tally.add(Counter::Operations as usize, count);
        tally.add(Counter::Bytes as usize, bytes);
        tally.add(Counter::ProducedRecords as usize, count);
        tally.add(Counter::ProducedBytes as usize, bytes);
        drop(tally);
        if let Some(mut trial) = self.shared.trial() {
            for due in &pending.batch.due {
                trial.publish.record(now.saturating_sub(*due), 1);
            }
        }
        self.shared.acknowledged.add(count, bytes);
        self.in_flight_bytes -= pending.batch.size_bytes();
        self.live_bytes -= pending.batch.size_bytes();
        self.put_away(pending.batch);
        if self.queues[partition].held_until().is_some() {
            self.list(partition);
        }
    }

    fn send_again(&mut self, partition: usize, mut pending: Pending, now: u64) {
        pending.failures += 1;
        self.in_flight_bytes -= pending.batch.size_bytes();
        self.recorder.lock().add(Counter::Retries as usize, 1);
        let until = now + self.backoff(pending.failures);
        self.queues[partition].give_back(pending, until);
        self.list(partition);
    }

    fn give_up(&mut self, partition: usize, pending: Pending, reason: &'static str) {
        let queue = &mut self.queues[partition];
        queue.in_flight -= 1;
        self.in_flight_bytes -= pending.batch.size_bytes();
        self.lose(partition, pending, reason);
    }

    /// The records of a batch that is no longer under way will never be acknowledged.
    fn lose(&mut self, partition: usize, pending: Pending, reason: &str) {
        let count = pending.batch.count() as u64;
        self.recorder.lock().add(Counter::Errors as usize, count);
        let queue = &mut self.queues[partition];
        queue.fail(&pending);
        let detail = json!({
            "topic": self.shared.topics[queue.topic], "partition": queue.index, "records": count, "reason": reason,
        });
        self.teller.again("records_failed", reason, detail);
        if pending.author.is_some() && self.producer_id.is_some() {
            // The broker waits for the sequences that it will not get.
            self.wants_reset("records were given up");
        }
        self.live_bytes -= pending.batch.size_bytes();
        self.put_away(pending.batch);
    }

    fn wants_reset(&mut self, reason: &str) {
        if self.producer_id.is_some() && !self.is_resetting {
            self.is_resetting = true;
            self.recorder.lock().add(Counter::ProducerIdResets as usize, 1);
            self.teller.event("producer_id_reset", json!({"reason": reason}));
        }
    }

    /// Asks for a new producer id once nothing is under way under the old one.
    pub(super) fn reset_when_quiet(&mut self) {
        if !self.is_resetting || self.is_asking_id || self.queues.iter().any(|queue| queue.in_flight > 0) {
            return;
        }
        self.queues.iter_mut().for_each(super::queue::Queue::unsign);
        self.is_asking_id = true;
        self.errands.producer_id(self.known_addresses());
    }

    /// Gives up what has waited for too long.
    pub(super) fn expire(&mut self, now: u64) {
        let limit = now.saturating_sub(nanoseconds(self.settings.delivery_timeout_seconds));
        for place in 0..self.queues.len() {
            while let Some(pending) = self.queues[place].expire(limit) {
                self.lose(place, pending, "not delivered in time");
            }
        }
    }

    /// The run is over: what is not acknowledged by now will not be waited for.
    pub(super) fn fail_rest(&mut self, now: u64) {
        for place in 0..self.brokers.len() {
            while let Some(mut sent) = self.brokers[place].in_flight.pop_front() {
                self.take_back(&mut sent, now);
            }
        }
        for place in 0..self.queues.len() {
            while let Some(pending) = self.queues[place].expire(u64::MAX) {
                self.lose(place, pending, "not delivered before the end of the run");
            }
        }
    }

    fn take_back(&mut self, sent: &mut Sent, now: u64) {
        for at in 0..sent.parts.len() {
            let partition = sent.parts[at].partition;
            if let Some(pending) = sent.parts[at].pending.take() {
                self.send_again(partition, pending, now);
            }
        }
    }

    /// Gives a connection up: what was under way on it is sent again on the next.
    pub(super) fn disconnect(&mut self, place: usize, reason: &str, now: u64) {
        let failures = self.brokers[place].failures + 1;
        let wait = self.backoff(failures);
        let broker = &mut self.brokers[place];
        broker.failures = failures;
        broker.state = State::Down(now + wait);
        (broker.written_bytes, broker.waits_for_room, broker.awaits_last_word) = (0, false, false);
        let detail = json!({
            "broker": broker.id, "address": broker.address.to_string(), "reason": reason,
            "requests": broker.in_flight.len(),
        });
        let in_flight = std::mem::take(&mut broker.in_flight);
        self.teller.again("disconnected", &place.to_string(), detail);
        self.recorder.lock().add(Counter::Disconnects as usize, 1);
        self.wants_metadata = true;
        for mut sent in in_flight {
            self.take_back(&mut sent, now);
        }
    }
}
