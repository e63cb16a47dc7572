//! Outcomes of batches: acknowledged, retried, or failed.

use cliffwatch_measure::clock::nanoseconds;
use serde_json::json;

use super::Producer;
use super::queue::{PartitionQueue, PendingBatch};
use super::requests::ProduceRequest;
use crate::config::Acks;
use crate::error::{Remedy, code, describe};
use crate::hot::background::Task;
use crate::hot::leaders::known_addresses;
use crate::names::{Counter, Latency};
use crate::wire::produce::{PartitionOutcome, outcomes};

/// Result of one batch, from the produce response.
pub(super) struct BatchOutcome {
    /// Index in the request.
    batch: usize,
    error: i16,
}

impl Producer {
    /// Handles a produce response; false when it is malformed or does not answer the oldest request. With acks 0, any
    /// response is that to the final request.
    pub(super) fn take_answer(&mut self, broker: usize, answer: &[u8], now: u64) -> bool {
        let found = &mut self.client.brokers[broker];
        if self.settings.acks == Acks::None {
            found.exchange.awaits_final_answer = false;
            return true;
        }
        let Some((correlation, rest)) = answer.split_first_chunk::<4>() else { return false };
        let in_flight = &found.exchange.in_flight;
        if in_flight.front().is_none_or(|request| request.correlation != i32::from_be_bytes(*correlation)) {
            return false;
        }
        // A response to a request that is not fully written yet cannot be right.
        if in_flight.len() == 1 && !found.is_written() {
            return false;
        }
        let version = found.exchange.version;
        let Some(mut request) = found.exchange.in_flight.pop_front() else { return false };
        let (mut found, mut cursor) = (std::mem::take(&mut self.outcomes), 0);
        found.clear();
        let result = outcomes(rest, version, |outcome| {
            if let Some(batch) = self.find_batch(&request, &mut cursor, &outcome) {
                found.push(BatchOutcome { batch, error: outcome.error });
            }
            if outcome.error != code::NONE {
                self.complain(broker, &outcome);
            }
        });
        let Ok(throttle) = result else {
            // The outcome is unknown: the request is retried with all others of this connection.
            self.client.brokers[broker].exchange.in_flight.push_front(request);
            self.outcomes = found;
            return false;
        };
        if throttle > 0 {
            self.client.throttled(broker, throttle as u64, now);
        }
        for one in &found {
            let partition = request.batches[one.batch].partition;
            if let Some(pending) = request.batches[one.batch].pending.take() {
                self.decide(partition, pending, one.error, now);
            }
        }
        self.outcomes = found;
        // Batches that the response does not mention are retried.
        self.take_back(&mut request, now);
        self.client.brokers[broker].exchange.spare.push(request);
        true
    }

    /// Index of the batch in the request that an outcome is about. Responses usually keep the order of the request.
    fn find_batch(
        &self,
        request: &ProduceRequest,
        cursor: &mut usize,
        outcome: &PartitionOutcome<'_>,
    ) -> Option<usize> {
        let is_it = |at: usize| {
            let queue = &self.queues[request.batches[at].partition];
            queue.index == outcome.partition && self.client.shared.topics[queue.topic] == outcome.topic
        };
        let count = request.batches.len();
        let at = (0..count).map(|step| (*cursor + step) % count).find(|&at| is_it(at))?;
        *cursor = at + 1;
        Some(at)
    }

    fn complain(&mut self, broker: usize, outcome: &PartitionOutcome<'_>) {
        self.client.recorder.lock().add(Counter::BrokerErrors as usize, 1);
        let (name, _) = describe(outcome.error);
        let detail = json!({
            "broker": self.client.brokers[broker].id, "error": name, "code": outcome.error,
            "topic": outcome.topic, "partition": outcome.partition, "message": outcome.message,
        });
        self.client.events.report_recurring("produce_error", name, detail);
    }

    fn decide(&mut self, partition: usize, pending: PendingBatch, error: i16, now: u64) {
        match error {
            code::NONE => self.succeed(partition, pending, now),
            code::DUPLICATE_SEQUENCE_NUMBER => {
                self.client.recorder.lock().add(Counter::DuplicatesRejected as usize, 1);
                self.succeed(partition, pending, now);
            }
            code::OUT_OF_ORDER_SEQUENCE_NUMBER => {
                // If an earlier batch failed, this is how the broker keeps the order; otherwise it has lost the
                // producer's state.
                let queue = &self.queues[partition];
                if queue.in_flight == 1 && queue.is_first(pending.number) && queue.held_until().is_none() {
                    self.reset(partition, "OUT_OF_ORDER_SEQUENCE_NUMBER");
                }
                // The batch is not in the log: the broker would have recognized a duplicate.
                self.send_again(partition, PendingBatch { in_doubt: false, ..pending }, now);
            }
            code::UNKNOWN_PRODUCER_ID | code::INVALID_PRODUCER_EPOCH => {
                self.reset(partition, describe(error).0);
                if pending.in_doubt {
                    // It was sent before, and whether the broker wrote it then is no longer known.
                    self.give_up(partition, pending, describe(error).0);
                } else {
                    self.send_again(partition, pending, now);
                }
            }
            code::CORRUPT_MESSAGE | code::NOT_ENOUGH_REPLICAS | code::THROTTLING_QUOTA_EXCEEDED => {
                self.send_again(partition, pending, now);
            }
            _ => match describe(error).1 {
                Remedy::Give => self.give_up(partition, pending, describe(error).0),
                Remedy::Refresh => {
                    self.client.refresh.want();
                    self.send_again(partition, PendingBatch { in_doubt: true, ..pending }, now);
                }
                Remedy::Retry => self.send_again(partition, PendingBatch { in_doubt: true, ..pending }, now),
            },
        }
    }

    /// Records a batch as acknowledged: latencies, counters, buffer.
    pub(super) fn succeed(&mut self, partition: usize, pending: PendingBatch, now: u64) {
        let queue = &mut self.queues[partition];
        queue.in_flight -= 1;
        let (count, bytes) = (pending.batch.count() as u64, pending.batch.value_bytes);
        let mut tally = self.client.recorder.lock();
        for due in &pending.batch.due {
            tally.latency(Latency::Publish as usize, now.saturating_sub(*due), 1);
        }
        tally.latency(Latency::PublishService as usize, now.saturating_sub(pending.sent), count);
        tally.add(Counter::Operations as usize, count);
        tally.add(Counter::Bytes as usize, bytes);
        tally.add(Counter::ProducedRecords as usize, count);
        tally.add(Counter::ProducedBytes as usize, bytes);
        drop(tally);
        if let Some(mut trial) = self.client.shared.trial() {
            for due in &pending.batch.due {
                trial.publish.record(now.saturating_sub(*due), 1);
            }
        }
        self.client.shared.acknowledged.add(count, bytes);
        self.in_flight_bytes -= pending.batch.size_bytes();
        self.live_bytes -= pending.batch.size_bytes();
        self.keep_buffer(pending.batch);
        if self.queues[partition].held_until().is_some() {
            self.list(partition);
        }
    }

    fn send_again(&mut self, partition: usize, mut pending: PendingBatch, now: u64) {
        pending.failures += 1;
        self.in_flight_bytes -= pending.batch.size_bytes();
        self.client.recorder.lock().add(Counter::Retries as usize, 1);
        let until = now + self.client.backoff.after(pending.failures);
        self.queues[partition].give_back(pending, until);
        self.list(partition);
    }

    fn give_up(&mut self, partition: usize, pending: PendingBatch, reason: &'static str) {
        let queue = &mut self.queues[partition];
        queue.in_flight -= 1;
        self.in_flight_bytes -= pending.batch.size_bytes();
        self.lose(partition, pending, reason);
    }

    /// Fails the records of a batch that is no longer in flight: they will never be acknowledged.
    fn lose(&mut self, partition: usize, pending: PendingBatch, reason: &str) {
        let count = pending.batch.count() as u64;
        self.client.recorder.lock().add(Counter::Errors as usize, count);
        let queue = &mut self.queues[partition];
        queue.fail(&pending);
        let detail = json!({
            "topic": self.client.shared.topics[queue.topic], "partition": queue.index, "records": count, "reason": reason,
        });
        self.client.events.report_recurring("records_failed", reason, detail);
        if pending.identity.is_some() {
            // The broker expects the sequence numbers of this batch, which it will not get.
            self.reset(partition, "records were given up");
        }
        self.live_bytes -= pending.batch.size_bytes();
        self.keep_buffer(pending.batch);
    }

    fn reset(&mut self, partition: usize, reason: &'static str) {
        if !self.queues[partition].is_resetting() {
            self.queues[partition].reset();
            self.reset_reason = reason;
        }
    }

    /// Requests one new producer id if partitions need it and no such request is pending; does not block.
    pub(super) fn ask_producer_id(&mut self) {
        if !self.is_asking_id && self.queues.iter().any(PartitionQueue::needs_producer_id) {
            self.is_asking_id = true;
            self.client.tasks.start(Task::ProducerId(known_addresses(&self.client.brokers)));
        }
    }

    /// Assigns a new producer id to the partitions that wait for one, and reports `producer_id_reset`.
    pub(super) fn go_on_as(&mut self, producer_id: (i64, i16)) {
        let mut partitions = 0;
        for partition in 0..self.queues.len() {
            if self.queues[partition].needs_producer_id() {
                self.queues[partition].go_on_as(producer_id);
                self.list(partition);
                partitions += 1;
            }
        }
        self.client.recorder.lock().add(Counter::ProducerIdResets as usize, 1);
        let detail = json!({"reason": self.reset_reason, "partitions": partitions});
        self.client.events.report("producer_id_reset", detail);
    }

    /// Fails batches that have waited longer than the delivery timeout.
    pub(super) fn expire(&mut self, now: u64) {
        let limit = now.saturating_sub(nanoseconds(self.settings.delivery_timeout_seconds));
        for partition in 0..self.queues.len() {
            while let Some(pending) = self.queues[partition].expire(limit) {
                self.lose(partition, pending, "not delivered in time");
            }
        }
    }

    /// Fails all batches not acknowledged at the end of the run.
    pub(super) fn fail_rest(&mut self, now: u64) {
        for broker in 0..self.client.brokers.len() {
            while let Some(mut request) = self.client.brokers[broker].exchange.in_flight.pop_front() {
                self.take_back(&mut request, now);
            }
        }
        for partition in 0..self.queues.len() {
            while let Some(pending) = self.queues[partition].expire(u64::MAX) {
                self.lose(partition, pending, "not delivered before the end of the run");
            }
        }
    }

    /// Retries the batches of a request that were not answered; the broker may have written them.
    pub(super) fn take_back(&mut self, request: &mut ProduceRequest, now: u64) {
        for at in 0..request.batches.len() {
            let partition = request.batches[at].partition;
            if let Some(pending) = request.batches[at].pending.take() {
                self.send_again(partition, PendingBatch { in_doubt: true, ..pending }, now);
            }
        }
    }
}
