//! Puts batches together to requests, and writes them.

use serde_json::json;

use super::broker::{Part, Sent};
use super::{Producer, State};
use crate::batch::write::{ANONYMOUS, Author};
use crate::config::Acks;
use crate::hot::poll::Readiness;
use crate::names::Counter;
use crate::wire::produce::Head;

/// A request that is answered without looking at anything.
const API_VERSIONS: i16 = 18;

impl Producer {
    /// Sends what may be sent to brokers that take it.
    pub(super) fn send(&mut self, now: u64) {
        if self.listed.is_empty() || self.is_resetting {
            return;
        }
        for place in 0..self.brokers.len() {
            while self.brokers[place].has_room(self.settings.max_in_flight, now) && self.send_request(place, now) {}
        }
        for _ in 0..self.listed.len() {
            let Some(place) = self.listed.pop_front() else { break };
            if self.queues[place].has_ready(now) {
                self.listed.push_back(place);
            } else {
                self.queues[place].is_listed = false;
            }
        }
    }

    /// Sends one request to a broker; false when there is nothing for it.
    fn send_request(&mut self, place: usize, now: u64) -> bool {
        let mut sent = self.brokers[place].spare.pop().unwrap_or_default();
        sent.parts.clear();
        let mut size = 0;
        for &listed in &self.listed {
            let queue = &self.queues[listed];
            if queue.leader != Some(place) || !queue.may_send(now) {
                continue;
            }
            let next = queue.next_size_bytes();
            if size > 0 && size + next > self.settings.request_size_bytes {
                continue;
            }
            size += next;
            sent.parts.push(Part { partition: listed, head_end: 0, pending: None });
        }
        if sent.parts.is_empty() {
            self.brokers[place].spare.push(sent);
            return false;
        }
        // Partitions of one topic stand together in a request.
        sent.parts.sort_unstable_by_key(|part| part.partition);
        self.fill(&mut sent, self.brokers[place].version, now);
        if sent.parts.is_empty() {
            return true;
        }
        let mut tally = self.recorder.lock();
        tally.add(Counter::ProduceRequests as usize, 1);
        tally.add(Counter::ProduceBatches as usize, sent.parts.len() as u64);
        drop(tally);
        self.brokers[place].enqueue(sent);
        self.write(place, now);
        true
    }

    /// Takes the batches, signs them, and writes the request's head around them.
    fn fill(&mut self, sent: &mut Sent, version: i16, now: u64) {
        self.correlation = self.correlation.wrapping_add(1);
        let acks = match self.settings.acks {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        };
        let timeout = (self.settings.request_timeout_seconds * 1e3) as i32;
        let client_id = self.errands.client_id();
        let mut head = Head::begin(&mut sent.head, version, self.correlation, client_id, acks, timeout);
        let mut topic = usize::MAX;
        for part in &mut sent.parts {
            let queue = &mut self.queues[part.partition];
            let Some(mut pending) = queue.take() else { continue };
            let count = crate::wire::length(pending.batch.count());
            let author = match (pending.author, self.producer_id) {
                (Some(author), _) => author,
                (None, Some((producer_id, epoch))) => {
                    let sequence = queue.next_signed;
                    // After the highest sequence comes 0.
                    queue.next_signed = sequence.wrapping_add(count) & i32::MAX;
                    Author { producer_id, epoch, sequence }
                }
                (None, None) => ANONYMOUS,
            };
            if pending.sent == 0 {
                pending.sent = now;
            }
            if pending.author != Some(author) || pending.failures == 0 {
                pending.author = Some(author);
                if let Err(error) =
                    pending.batch.finish(author, (now / 1_000_000).cast_signed(), self.settings.compression)
                {
                    self.teller.again("compression_failed", "", json!({"error": error.to_string()}));
                }
            }
            if queue.topic != topic {
                topic = queue.topic;
                head.topic(&self.shared.topics[topic]);
            }
            let wire_bytes = pending.batch.wire().len();
            self.in_flight_bytes += pending.batch.size_bytes();
            part.head_end = head.partition(queue.index, wire_bytes);
            part.pending = Some(pending);
        }
        sent.size_bytes = head.end();
        sent.parts.retain(|part| part.pending.is_some());
        sent.correlation = self.correlation;
        sent.at = now;
    }

    /// Writes what there is room for; what is left goes on when there is room again.
    pub(super) fn write(&mut self, place: usize, now: u64) {
        let broker = &mut self.brokers[place];
        match broker.write() {
            Ok(is_written) => {
                if broker.waits_for_room == is_written {
                    broker.waits_for_room = !is_written;
                    if let State::Up(link) = &broker.state {
                        // It fails only for a connection that is broken, which reading finds out.
                        let _ = self.poller.want_write(link.stream.socket(), place, !is_written);
                    }
                }
                if is_written && self.settings.acks == Acks::None {
                    self.acknowledge_written(place);
                }
            }
            Err(error) => self.disconnect(place, &error.to_string(), now),
        }
    }

    /// Where nobody acknowledges: asks each broker something that it answers once it has dealt with all that came before.
    pub(super) fn ask_last_words(&mut self, now: u64) {
        for place in 0..self.brokers.len() {
            if !matches!(self.brokers[place].state, State::Up(_)) {
                continue;
            }
            let mut sent = Sent::default();
            self.correlation = self.correlation.wrapping_add(1);
            crate::wire::begin(&mut sent.head, API_VERSIONS, 0, self.correlation, self.errands.client_id());
            let size = sent.head.len();
            crate::wire::set_length(&mut sent.head, size - 4);
            (sent.size_bytes, sent.correlation, sent.at) = (size, self.correlation, now);
            self.brokers[place].awaits_last_word = true;
            self.brokers[place].enqueue(sent);
            self.write(place, now);
        }
    }

    /// Nobody acknowledges: what is written counts as published.
    fn acknowledge_written(&mut self, place: usize) {
        let now = self.shared.clock.now();
        while let Some(mut sent) = self.brokers[place].in_flight.pop_front() {
            for at in 0..sent.parts.len() {
                let partition = sent.parts[at].partition;
                if let Some(pending) = sent.parts[at].pending.take() {
                    self.succeed(partition, pending, now);
                }
            }
            self.brokers[place].spare.push(sent);
        }
    }

    /// A connection can be read from or written to.
    pub(super) fn attend(&mut self, ready: Readiness) {
        let place = ready.token;
        if ready.writable {
            let now = self.shared.clock.now();
            self.write(place, now);
        }
        if ready.readable {
            self.read(place);
        }
    }

    fn read(&mut self, place: usize) {
        loop {
            let now = self.shared.clock.now();
            let broker = &mut self.brokers[place];
            let State::Up(link) = &mut broker.state else { return };
            let received = link.receive();
            loop {
                let State::Up(link) = &mut self.brokers[place].state else { return };
                match link.answer() {
                    Ok(Some(range)) => {
                        let input = std::mem::take(&mut link.input);
                        let is_understood = self.answered(place, &input[range], now);
                        let State::Up(link) = &mut self.brokers[place].state else { return };
                        link.input = input;
                        if !is_understood {
                            self.disconnect(place, "an answer that is not of the protocol", now);
                            return;
                        }
                    }
                    Ok(None) => break,
                    Err(error) => {
                        self.disconnect(place, &error.to_string(), now);
                        return;
                    }
                }
            }
            match received {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => {
                    self.disconnect(place, &error.to_string(), now);
                    return;
                }
            }
        }
    }
}
