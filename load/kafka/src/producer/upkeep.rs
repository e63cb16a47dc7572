//! Periodic work of a producer: delivery timeouts, leaders, producer id, gauges.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use cliffwatch_measure::recorder::OldestDue;
use serde_json::json;

use super::Producer;
use crate::hot::background::Update;
use crate::hot::leaders::{LeaderChange, leaderless};
use crate::hot::thread::HotThread;
use crate::names::{Counter, Gauge};

impl Producer {
    pub(super) fn keep_up(&mut self, now: u64) {
        self.keep_connections(now);
        self.expire(now);
        self.ask_producer_id();
        self.show(now);
    }

    pub(super) fn take_update(&mut self, update: Update, now: u64) {
        match update {
            Update::ProducerId(answer) => {
                self.is_asking_id = false;
                match answer {
                    Ok(id) => self.go_on_as(id),
                    Err(error) => {
                        let detail = json!({"error": error.to_string()});
                        self.client.events.report_recurring("producer_id_unavailable", "", detail);
                    }
                }
            }
            Update::Rate(per_second) => {
                if let Err(error) = self.pace.restart(now, per_second) {
                    self.client.events.report("rate_refused", json!({"error": error.to_string()}));
                }
            }
            Update::Connected(..) | Update::Metadata(_) | Update::Offsets(..) | Update::Assigned(..) => {}
        }
    }

    /// Counts and reports leader changes; reports partitions without a leader.
    pub(super) fn report_leaders(&mut self, changes: &[LeaderChange]) {
        let mut moved: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for change in changes {
            if let (Some(before), Some(after)) = *change {
                *moved.entry((before, after)).or_default() += 1;
            }
        }
        for ((before, after), partitions) in moved {
            self.client.recorder.lock().add(Counter::LeaderChanges as usize, partitions);
            let (from, to) = (self.client.brokers[before].id, self.client.brokers[after].id);
            self.client.events.report("leader_changed", json!({"from": from, "to": to, "partitions": partitions}));
        }
        let count = leaderless(&self.queues);
        if count > 0 {
            self.client.events.report_recurring("partitions_without_leader", "", json!({"partitions": count}));
        }
    }

    pub(super) fn show(&self, now: u64) {
        let debt = if self.over_since.is_some() { 0 } else { self.pace.debt(now) };
        let leaderless = leaderless(&self.queues);
        if let Some(shown) = self.client.shared.debts.get((self.identity & 0xff) as usize) {
            shown.store(debt, Ordering::Relaxed);
        }
        let unbegun = self.over_since.is_none().then(|| self.pace.due(now));
        let oldest = OldestDue { outstanding: self.oldest_outstanding(now), unbegun };
        let mut tally = self.client.recorder.lock();
        tally.look(now, oldest);
        tally.set(Gauge::BufferedBytes as usize, self.live_bytes as f64);
        tally.set(Gauge::LeaderlessPartitions as usize, leaderless as f64);
    }

    /// Due time of the oldest unacknowledged record (in flight, in a batch or not made yet), in nanoseconds.
    fn oldest_outstanding(&self, now: u64) -> Option<u64> {
        let under_way = self
            .client
            .brokers
            .iter()
            .flat_map(|broker| &broker.exchange.in_flight)
            .flat_map(|request| &request.batches);
        let sent = under_way.filter_map(|part| part.pending.as_ref()?.batch.due.first());
        let kept = self.queues.iter().filter_map(|queue| queue.oldest()?.batch.due.first());
        let unmade = (self.has_due() && !self.pace.is_unbounded()).then(|| self.pace.due(now));
        sent.chain(kept).copied().chain(unmade).min()
    }
}
