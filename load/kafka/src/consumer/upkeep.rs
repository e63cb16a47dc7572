//! Periodic upkeep of a consumer: partitions held back, end of load, clock offsets, gauges.

use std::sync::atomic::Ordering;

use super::{Consumer, Partition};
use crate::hot::thread::HotThread;
use crate::names::Gauge;

impl Consumer {
    pub(super) fn keep_up(&mut self, now: u64) {
        self.keep_connections(now);
        for partition in &mut self.partitions {
            if partition.held_until != 0 && partition.held_until <= now {
                partition.held_until = 0;
                if let Some(leader) = partition.leader {
                    self.client.brokers[leader].exchange.must_begin = true;
                }
            }
        }
        let shared = &self.client.shared;
        let has_writing_ended =
            if self.reads_own { shared.producing.load(Ordering::Acquire) == 0 } else { shared.is_over(now) };
        if has_writing_ended && self.over_since.is_none() {
            self.over_since = Some(now);
        }
        for (incarnation, ahead) in &mut self.ahead {
            *ahead = shared.peers.ahead(*incarnation);
        }
        self.ask_offsets(now);
        self.show();
    }

    /// Nanoseconds that the producing process's clock is ahead of this one's; 0 when it is this process or not yet
    /// known.
    pub(super) fn ahead_of_ours(&mut self, producer: Option<u32>) -> i64 {
        let (false, Some(producer)) = (self.reads_own, producer) else { return 0 };
        let incarnation = producer >> 8;
        if let Some((_, ahead)) = self.ahead.iter().find(|(known, _)| *known == incarnation) {
            return *ahead;
        }
        let ahead = self.client.shared.peers.ahead(incarnation);
        self.ahead.push((incarnation, ahead));
        ahead
    }

    fn show(&self) {
        let missing: u64 = self.partitions.iter().map(|partition| partition.track.missing()).sum();
        let is_paused = self.is_paused();
        let mut tally = self.client.recorder.lock();
        tally.set(Gauge::MissingRecords as usize, missing as f64);
        tally.set(Gauge::ConsumersPaused as usize, f64::from(u8::from(is_paused)));
        if self.reads_own && self.number == 0 {
            let (records, bytes) = self.client.shared.backlog();
            tally.set(Gauge::BacklogRecords as usize, records as f64);
            tally.set(Gauge::BacklogBytes as usize, bytes as f64);
        } else if !self.reads_own {
            let behind = |part: &Partition| part.position.map_or(0, |position| (part.high_watermark - position).max(0));
            let records: i64 = self.partitions.iter().map(behind).sum();
            tally.set(Gauge::BacklogRecords as usize, records as f64);
        }
        drop(tally);
    }
}
