//! Fetch requests of a consumer and the processing of their responses.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::{BACKOFF, Consumer};
use crate::batch::read::ReceivedBatch;
use crate::error::{Remedy, code, describe};
use crate::hot::thread::HotThread;
use crate::names::{Counter, Latency};
use crate::wire::fetch::{FetchPosition, FetchSession, FetchedPartition, parts, request};

impl Consumer {
    /// Sends a fetch request for the consumer's partitions on this broker, unless one is in flight, the broker is
    /// unavailable or throttled, or a new session would have no partition.
    pub(super) fn fetch(&mut self, broker: usize, now: u64) {
        let found = &mut self.client.brokers[broker];
        if found.exchange.under_way.is_some() || !found.is_open(now) {
            return;
        }
        let correlation = self.client.next_correlation();
        let exchange = &mut self.client.brokers[broker].exchange;
        let begins = exchange.must_begin || exchange.session == FetchSession::default();
        if begins {
            exchange.session = FetchSession::default();
        }
        let mut has_any = !begins;
        let wanted = self.partitions.iter_mut().filter_map(|partition| {
            let position = partition.position?;
            if partition.leader != Some(broker) || partition.held_until > now || !(begins || partition.is_moved) {
                return None;
            }
            (partition.is_moved, has_any) = (false, true);
            Some(FetchPosition {
                topic: &self.client.shared.topics[partition.topic],
                partition: partition.index,
                offset: position,
            })
        });
        request(&mut exchange.request, correlation, &self.terms, exchange.session, wanted);
        if !has_any {
            return;
        }
        exchange.must_begin = false;
        exchange.written_bytes = 0;
        exchange.under_way = Some((correlation, now));
        self.client.recorder.lock().add(Counter::FetchRequests as usize, 1);
        self.write(broker, now);
    }

    /// Processes a fetch response, and sends the next request before examining the records. False when the response is
    /// malformed or does not answer the request in flight.
    pub(super) fn take_answer(&mut self, broker: usize, answer: &[u8], now: u64) -> bool {
        let Some((correlation, rest)) = answer.split_first_chunk::<4>() else { return false };
        let exchange = &mut self.client.brokers[broker].exchange;
        if exchange.under_way.is_none_or(|(awaited, _)| awaited != i32::from_be_bytes(*correlation)) {
            return false;
        }
        exchange.under_way = None;
        self.advanced.clear();
        let Ok(head) = parts(rest, |part| self.advance(&part, broker, now)) else { return false };
        let found = &mut self.client.brokers[broker];
        if head.error != code::NONE {
            found.exchange.must_begin = true;
            if describe(head.error).1 != Remedy::Retry {
                let detail = json!({"broker": found.id, "error": describe(head.error).0, "code": head.error});
                self.client.events.report_recurring("fetch_error", &broker.to_string(), detail);
                found.muted_until = now + BACKOFF.first_nanoseconds;
            }
            return true;
        }
        found.exchange.session = found.exchange.session.next(head.session_id);
        if head.throttle_milliseconds > 0 {
            self.client.throttled(broker, head.throttle_milliseconds as u64, now);
        }
        if !self.is_paused() {
            self.fetch(broker, now);
        }
        let advanced = std::mem::take(&mut self.advanced);
        let mut next = advanced.iter();
        // It was parsed completely above, so it cannot fail.
        let _ = parts(rest, |part| {
            if let (false, Some(&(at, from))) =
                (part.records.is_empty() || part.error != code::NONE, next.as_slice().first())
                && self.is_at(at, &part)
            {
                next.next();
                self.examine(at, from, part.records);
            }
        });
        self.advanced = advanced;
        true
    }

    fn is_at(&self, at: usize, part: &FetchedPartition<'_>) -> bool {
        let partition = &self.partitions[at];
        partition.index == part.partition && self.client.shared.topics[partition.topic] == part.topic
    }

    fn find(&self, part: &FetchedPartition<'_>) -> Option<usize> {
        // Responses usually list partitions in our order, so the search begins after the partition found last.
        let begin = self.advanced.last().map_or(0, |(at, _)| at + 1);
        let count = self.partitions.len();
        (0..count).map(|step| (begin + step) % count).find(|&at| self.is_at(at, part))
    }

    /// Moves a partition's position past the batches in a response; reports its error code or an unreadable batch.
    fn advance(&mut self, part: &FetchedPartition<'_>, broker: usize, now: u64) {
        let Some(at) = self.find(part) else { return };
        if part.error != code::NONE {
            self.complain(at, part, broker, now);
            return;
        }
        let partition = &mut self.partitions[at];
        partition.high_watermark = part.high_watermark;
        let Some(from) = partition.position else { return };
        let mut records = part.records;
        let mut position = from;
        loop {
            match ReceivedBatch::take(&mut records) {
                Some(Ok(batch)) => position = position.max(batch.next_offset),
                Some(Err(_)) => {
                    self.client.recorder.lock().add(Counter::CorruptedBatches as usize, 1);
                    partition.held_until = now + BACKOFF.first_nanoseconds;
                    self.client.brokers[broker].exchange.must_begin = true;
                    let detail = json!({"topic": part.topic, "partition": part.partition, "offset": position});
                    self.client.events.report_recurring("batch_unreadable", part.topic, detail);
                    break;
                }
                None => break,
            }
        }
        if !part.records.is_empty() {
            partition.position = Some(position);
            partition.is_moved = true;
            self.advanced.push((at, from));
        }
    }

    fn complain(&mut self, at: usize, part: &FetchedPartition<'_>, broker: usize, now: u64) {
        let (name, remedy) = describe(part.error);
        let partition = &mut self.partitions[at];
        let mut tally = self.client.recorder.lock();
        tally.add(Counter::BrokerErrors as usize, 1);
        if part.error == code::OFFSET_OUT_OF_RANGE {
            tally.add(Counter::OffsetResets as usize, 1);
            partition.refused = partition.position.take();
        }
        drop(tally);
        partition.held_until = now + BACKOFF.first_nanoseconds;
        partition.is_moved = true;
        self.client.brokers[broker].exchange.must_begin = true;
        if remedy == Remedy::Refresh {
            self.client.refresh.want();
        }
        let detail = json!({
            "broker": self.client.brokers[broker].id, "error": name, "code": part.error,
            "topic": part.topic, "partition": part.partition,
        });
        self.client.events.report_recurring("fetch_error", name, detail);
    }

    /// Examines one partition's records from offset `from` on: records latencies, counters and corruption events, then
    /// publishes the position that was read.
    fn examine(&mut self, at: usize, from: i64, mut records: &[u8]) {
        let mut contents = std::mem::take(&mut self.contents);
        while let Some(Ok(batch)) = ReceivedBatch::take(&mut records) {
            if batch.next_offset <= from {
                continue;
            }
            self.partitions[at].examine(&batch, from, self.expected, &mut self.room, &mut contents);
            let clock = self.client.shared.clock.now();
            let now = clock.saturating_add_signed(self.ahead_of_ours(contents.producer));
            let count = contents.due_microseconds.len() as u64;
            let mut negative = 0;
            let mut tally = self.client.recorder.lock();
            for due in &contents.due_microseconds {
                let due = due.saturating_mul(1_000);
                negative += u64::from(due > now);
                tally.latency(Latency::EndToEnd as usize, now.saturating_sub(due), 1);
            }
            tally.add(Counter::ConsumedRecords as usize, count);
            tally.add(Counter::ConsumedBytes as usize, contents.value_bytes);
            if !self.reads_own {
                tally.add(Counter::Operations as usize, count);
                tally.add(Counter::Bytes as usize, contents.value_bytes);
            }
            for (counter, count) in [
                (Counter::NegativeLatencies, negative),
                (Counter::ReorderedRecords, contents.reordered),
                (Counter::DuplicatedRecords, contents.duplicated),
                (Counter::CorruptedRecords, contents.corrupted),
                (Counter::ForeignRecords, contents.foreign),
                (Counter::CorruptedBatches, u64::from(contents.is_damaged)),
            ] {
                tally.add(counter as usize, count);
            }
            drop(tally);
            if let Some(mut trial) = self.client.shared.trial() {
                for due in &contents.due_microseconds {
                    trial.end_to_end.record(now.saturating_sub(due.saturating_mul(1_000)), 1);
                }
            }
            self.client.shared.consumed.add(count, contents.value_bytes);
            if contents.corrupted > 0 || contents.is_damaged {
                let partition = &self.partitions[at];
                let topic = &self.client.shared.topics[partition.topic];
                let detail = json!({
                    "topic": topic, "partition": partition.index, "offset": batch.base_offset,
                    "records": if contents.is_damaged { u64::try_from(batch.count).unwrap_or(0) } else { contents.corrupted },
                });
                self.client.events.report_recurring("records_corrupted", topic, detail);
            }
        }
        self.contents = contents;
        let partition = &self.partitions[at];
        if let Some(position) = partition.position {
            self.client.shared.positions[partition.id].store(position, Ordering::Release);
        }
    }
}
