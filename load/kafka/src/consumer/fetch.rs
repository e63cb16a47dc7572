//! Asks for records and takes the answers apart.

use std::sync::atomic::Ordering;

use serde_json::json;

use super::{BACKOFF_NANOSECONDS, Consumer, State};
use crate::batch::read::Batch;
use crate::error::{Remedy, code, describe};
use crate::hot::poll::Readiness;
use crate::names::{Counter, Latency};
use crate::wire::fetch::{Part, Place, Session, parts, request};

impl Consumer {
    /// Asks a broker for what its partitions have, unless an answer is awaited.
    pub(super) fn fetch(&mut self, place: usize, now: u64) {
        let broker = &mut self.brokers[place];
        if !broker.is_idle(now) {
            return;
        }
        let begins = broker.must_begin || broker.session == Session::default();
        if begins {
            broker.session = Session::default();
        }
        let mut has_any = !begins;
        let wanted = self.partitions.iter_mut().filter_map(|partition| {
            let position = partition.position?;
            if partition.leader != Some(place) || partition.held_until > now || !(begins || partition.is_moved) {
                return None;
            }
            (partition.is_moved, has_any) = (false, true);
            Some(Place { topic: &self.shared.topics[partition.topic], partition: partition.index, offset: position })
        });
        self.correlation = self.correlation.wrapping_add(1);
        request(&mut broker.request, self.correlation, &self.terms, broker.session, wanted);
        if !has_any {
            return;
        }
        broker.must_begin = false;
        broker.written_bytes = 0;
        broker.under_way = Some((self.correlation, now));
        self.recorder.lock().add(Counter::FetchRequests as usize, 1);
        self.write(place, now);
    }

    fn write(&mut self, place: usize, now: u64) {
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
            }
            Err(error) => self.disconnect(place, &error.to_string(), now),
        }
    }

    pub(super) fn attend(&mut self, ready: Readiness) {
        if ready.writable {
            let now = self.shared.clock.now();
            self.write(ready.token, now);
        }
        if ready.readable {
            self.read(ready.token);
        }
    }

    fn read(&mut self, place: usize) {
        loop {
            let State::Up(link) = &mut self.brokers[place].state else { return };
            let received = link.receive();
            let answer = link.answer();
            let now = self.shared.clock.now();
            match answer {
                Ok(Some(range)) => {
                    let input = std::mem::take(&mut link.input);
                    let is_understood = self.answered(place, &input[range], now);
                    if let State::Up(link) = &mut self.brokers[place].state {
                        link.input = input;
                    }
                    if !is_understood {
                        self.disconnect(place, "an answer that is not of the protocol", now);
                        return;
                    }
                }
                Ok(None) => {}
                Err(error) => {
                    self.disconnect(place, &error.to_string(), now);
                    return;
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

    /// Takes an answer apart; false when it is none to the request under way.
    fn answered(&mut self, place: usize, answer: &[u8], now: u64) -> bool {
        let Some((correlation, rest)) = answer.split_first_chunk::<4>() else { return false };
        let broker = &mut self.brokers[place];
        if broker.under_way.is_none_or(|(awaited, _)| awaited != i32::from_be_bytes(*correlation)) {
            return false;
        }
        broker.under_way = None;
        self.advanced.clear();
        let Ok(head) = parts(rest, |part| self.advance(&part, place, now)) else { return false };
        let broker = &mut self.brokers[place];
        if head.error != code::NONE {
            broker.must_begin = true;
            if describe(head.error).1 != Remedy::Retry {
                let detail = json!({"broker": broker.id, "error": describe(head.error).0, "code": head.error});
                self.teller.again("fetch_error", &place.to_string(), detail);
                broker.muted_until = now + BACKOFF_NANOSECONDS;
            }
            return true;
        }
        broker.session = broker.session.next(head.session_id);
        if head.throttle_milliseconds > 0 {
            let milliseconds = head.throttle_milliseconds as u64;
            broker.muted_until = now + milliseconds * 1_000_000;
            self.recorder.lock().add(Counter::ThrottleMilliseconds as usize, milliseconds);
            let detail = json!({"broker": broker.id, "milliseconds": milliseconds});
            self.teller.again("throttled", &place.to_string(), detail);
        }
        if !self.is_paused() {
            self.fetch(place, now);
        }
        let advanced = std::mem::take(&mut self.advanced);
        let mut next = advanced.iter();
        // It was walked through before, so it is whole.
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

    fn is_at(&self, at: usize, part: &Part<'_>) -> bool {
        let partition = &self.partitions[at];
        partition.index == part.partition && self.shared.topics[partition.topic] == part.topic
    }

    fn find(&self, part: &Part<'_>) -> Option<usize> {
        // Answers follow the order of partitions, as a rule, so the search begins where the last one ended.
        let begin = self.advanced.last().map_or(0, |(at, _)| at + 1);
        let count = self.partitions.len();
        (0..count).map(|step| (begin + step) % count).find(|&at| self.is_at(at, part))
    }

    /// Moves a partition's position behind what an answer holds.
    fn advance(&mut self, part: &Part<'_>, place: usize, now: u64) {
        let Some(at) = self.find(part) else { return };
        if part.error != code::NONE {
            self.complain(at, part, place, now);
            return;
        }
        let partition = &mut self.partitions[at];
        partition.high_watermark = part.high_watermark;
        let Some(from) = partition.position else { return };
        let mut records = part.records;
        let mut position = from;
        loop {
            match Batch::take(&mut records) {
                Some(Ok(batch)) => position = position.max(batch.next_offset),
                Some(Err(_)) => {
                    self.recorder.lock().add(Counter::CorruptedBatches as usize, 1);
                    partition.held_until = now + BACKOFF_NANOSECONDS;
                    self.brokers[place].must_begin = true;
                    let detail = json!({"topic": part.topic, "partition": part.partition, "offset": position});
                    self.teller.again("batch_unreadable", part.topic, detail);
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

    fn complain(&mut self, at: usize, part: &Part<'_>, place: usize, now: u64) {
        let (name, remedy) = describe(part.error);
        let partition = &mut self.partitions[at];
        let mut tally = self.recorder.lock();
        tally.add(Counter::BrokerErrors as usize, 1);
        if part.error == code::OFFSET_OUT_OF_RANGE {
            // What was to be read next is not kept any more: what is missing shows as missing.
            tally.add(Counter::OffsetResets as usize, 1);
            partition.position = None;
        }
        drop(tally);
        partition.held_until = now + BACKOFF_NANOSECONDS;
        partition.is_moved = true;
        self.brokers[place].must_begin = true;
        self.wants_metadata |= remedy == Remedy::Refresh;
        let detail = json!({
            "broker": self.brokers[place].id, "error": name, "code": part.error,
            "topic": part.topic, "partition": part.partition,
        });
        self.teller.again("fetch_error", name, detail);
    }

    /// Examines the records of one partition in an answer.
    fn examine(&mut self, at: usize, from: i64, mut records: &[u8]) {
        let mut contents = std::mem::take(&mut self.contents);
        while let Some(Ok(batch)) = Batch::take(&mut records) {
            if batch.next_offset <= from {
                continue;
            }
            self.partitions[at].examine(&batch, from, self.expected, &mut self.room, &mut contents);
            let clock = self.shared.clock.now();
            let now = clock.saturating_add_signed(self.ahead_of_ours(contents.producer));
            let count = contents.due_microseconds.len() as u64;
            let mut negative = 0;
            let mut tally = self.recorder.lock();
            for due in &contents.due_microseconds {
                let due = due * 1_000;
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
            if let Some(mut trial) = self.shared.trial() {
                for due in &contents.due_microseconds {
                    trial.end_to_end.record(now.saturating_sub(due * 1_000), 1);
                }
            }
            self.shared.consumed.add(count, contents.value_bytes);
            if contents.corrupted > 0 || contents.is_damaged {
                let partition = &self.partitions[at];
                let topic = &self.shared.topics[partition.topic];
                let detail = json!({
                    "topic": topic, "partition": partition.index, "offset": batch.base_offset,
                    "records": if contents.is_damaged { u64::try_from(batch.count).unwrap_or(0) } else { contents.corrupted },
                });
                self.teller.again("records_corrupted", topic, detail);
            }
        }
        self.contents = contents;
        let partition = &self.partitions[at];
        if let Some(position) = partition.position {
            self.shared.positions[partition.place].store(position, Ordering::Release);
        }
    }
}
