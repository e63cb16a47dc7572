//! Assembles batches into produce requests and writes them.

use serde_json::json;

use super::Producer;
use super::requests::{ProduceRequest, RequestBatch};
use crate::batch::write::{ANONYMOUS, ProducerIdentity};
use crate::config::Acks;
use crate::hot::thread::HotThread;
use crate::names::Counter;
use crate::wire::produce::ProduceHead;

/// API key of `ApiVersions`, which a broker answers without further work.
const API_VERSIONS: i16 = 18;

impl Producer {
    /// Sends waiting batches to the brokers that have room for another request.
    pub(super) fn send(&mut self, now: u64) {
        if self.listed.is_empty() {
            return;
        }
        for broker in 0..self.client.brokers.len() {
            while self.client.brokers[broker].has_room(self.settings.max_in_flight, now)
                && self.send_request(broker, now)
            {}
        }
        for _ in 0..self.listed.len() {
            let Some(partition) = self.listed.pop_front() else { break };
            if self.queues[partition].has_ready(now) {
                self.listed.push_back(partition);
            } else {
                self.queues[partition].is_listed = false;
            }
        }
    }

    /// Sends one request to a broker; false when no batch for it may be sent.
    fn send_request(&mut self, broker: usize, now: u64) -> bool {
        let mut request = self.client.brokers[broker].exchange.spare.pop().unwrap_or_default();
        request.batches.clear();
        let mut size = 0;
        for &listed in &self.listed {
            let queue = &self.queues[listed];
            if queue.leader != Some(broker) || !queue.may_send(now) {
                continue;
            }
            let next = queue.next_size_bytes();
            if size > 0 && size + next > self.settings.request_size_bytes {
                continue;
            }
            size += next;
            request.batches.push(RequestBatch { partition: listed, head_end: 0, pending: None });
        }
        if request.batches.is_empty() {
            self.client.brokers[broker].exchange.spare.push(request);
            return false;
        }
        // A request lists the partitions of one topic together.
        request.batches.sort_unstable_by_key(|part| part.partition);
        self.fill(&mut request, self.client.brokers[broker].exchange.version, now);
        if request.batches.is_empty() {
            return true;
        }
        let mut tally = self.client.recorder.lock();
        tally.add(Counter::ProduceRequests as usize, 1);
        tally.add(Counter::ProduceBatches as usize, request.batches.len() as u64);
        drop(tally);
        self.client.brokers[broker].exchange.enqueue(request);
        self.write(broker, now);
        true
    }

    /// Takes the batches from their queues, signs them, and writes the request's head.
    fn fill(&mut self, request: &mut ProduceRequest, version: i16, now: u64) {
        let correlation = self.client.next_correlation();
        let acks = match self.settings.acks {
            Acks::None => 0,
            Acks::Leader => 1,
            Acks::All => -1,
        };
        let timeout = (self.settings.request_timeout_seconds * 1e3) as i32;
        let client_id = self.client.tasks.client_id();
        let mut head = ProduceHead::begin(&mut request.head, version, correlation, client_id, acks, timeout);
        let mut topic = usize::MAX;
        for part in &mut request.batches {
            let queue = &mut self.queues[part.partition];
            let Some(mut pending) = queue.take() else { continue };
            let count = crate::wire::length(pending.batch.count());
            let identity = match (pending.identity, queue.producer_id) {
                (Some(identity), _) => identity,
                (None, Some((producer_id, epoch))) => {
                    let sequence = queue.next_signed;
                    // The sequence number after the highest one is 0.
                    queue.next_signed = sequence.wrapping_add(count) & i32::MAX;
                    ProducerIdentity { producer_id, epoch, sequence }
                }
                (None, None) => ANONYMOUS,
            };
            if pending.sent == 0 {
                pending.sent = now;
            }
            if pending.identity != Some(identity) || pending.failures == 0 {
                pending.identity = Some(identity);
                if let Err(error) =
                    pending.batch.finish(identity, (now / 1_000_000).cast_signed(), self.settings.compression)
                {
                    self.client.events.report_recurring("compression_failed", "", json!({"error": error.to_string()}));
                }
            }
            if queue.topic != topic {
                topic = queue.topic;
                head.topic(&self.client.shared.topics[topic]);
            }
            let wire_bytes = pending.batch.wire().len();
            self.in_flight_bytes += pending.batch.size_bytes();
            part.head_end = head.partition(queue.index, wire_bytes);
            part.pending = Some(pending);
        }
        request.size_bytes = head.end();
        request.batches.retain(|part| part.pending.is_some());
        request.correlation = correlation;
        request.at = now;
    }

    /// With acks 0: sends each connected broker a final `ApiVersions` request; its response shows that all requests
    /// before it were processed.
    pub(super) fn ask_final_answer(&mut self, now: u64) {
        for broker in 0..self.client.brokers.len() {
            if !self.client.brokers[broker].is_up() {
                continue;
            }
            let mut request = ProduceRequest::default();
            let correlation = self.client.next_correlation();
            crate::wire::begin(&mut request.head, API_VERSIONS, 0, correlation, self.client.tasks.client_id());
            let size = request.head.len();
            crate::wire::set_length(&mut request.head, size - 4);
            (request.size_bytes, request.correlation, request.at) = (size, correlation, now);
            self.client.brokers[broker].exchange.awaits_final_answer = true;
            self.client.brokers[broker].exchange.enqueue(request);
            self.write(broker, now);
        }
    }

    /// With acks 0: counts the batches that are written to the connection as acknowledged.
    pub(super) fn acknowledge_written(&mut self, broker: usize) {
        let now = self.client.shared.clock.now();
        while let Some(mut request) = self.client.brokers[broker].exchange.in_flight.pop_front() {
            for at in 0..request.batches.len() {
                let partition = request.batches[at].partition;
                if let Some(pending) = request.batches[at].pending.take() {
                    self.succeed(partition, pending, now);
                }
            }
            self.client.brokers[broker].exchange.spare.push(request);
        }
    }
}
