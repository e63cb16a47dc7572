//! One consumer: a thread that reads its partitions from their leaders and examines every record.
//!
//! It sends the next request before it examines the answer to the last, so that the broker works meanwhile.

pub mod broker;
mod fetch;
pub mod group;
pub mod partition;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::recorder::Recorder;
use serde_json::json;

use crate::admin::{Metadata, Which};
use crate::error::{Error, Result};
use crate::hot::errands::{Errands, News, Wanted};
use crate::hot::link::Link;
use crate::hot::poll::{Poller, Readiness};
use crate::hot::prompt::take_short_turns;
use crate::hot::tell::Teller;
use crate::names::{Counter, Gauge};
use crate::security::Stream;
use crate::session::Address;
use crate::shared::Shared;
use crate::track::Track;
use crate::wire::fetch::Terms;
use broker::{Broker, State};
use partition::{Contents, Expected, Partition};

const UPKEEP_NANOSECONDS: u64 = 20_000_000;
const METADATA_AGE_NANOSECONDS: u64 = 300 * NANOSECONDS;
const REQUEST_TIMEOUT_NANOSECONDS: u64 = 30 * NANOSECONDS;
/// So long what seems to be missing at the end is waited for.
const SETTLING_NANOSECONDS: u64 = 2 * NANOSECONDS;
const BACKOFF_NANOSECONDS: u64 = 100_000_000;
const BACKOFF_MAX_NANOSECONDS: u64 = NANOSECONDS;

/// How far a partition was read, and what its records turned out to be.
pub struct Read {
    /// Its place among all.
    pub place: usize,
    /// The offset of the next record.
    pub position: Option<i64>,
    /// The offset after the last record, as the broker said once nobody wrote any more.
    pub end: Option<i64>,
    /// What became of its records.
    pub track: Track,
}

/// What a consumer is given.
pub struct Order {
    /// Its place among the consumers.
    pub place: u32,
    /// What all see.
    pub shared: Arc<Shared>,
    /// What goes into requests.
    pub terms: Terms,
    /// Whether this process produces what is read.
    pub reads_own: bool,
    /// Its partitions, by place, with the offset to begin at.
    pub positions: BTreeMap<usize, i64>,
    /// Where it counts.
    pub recorder: Recorder,
    /// Where it tells.
    pub teller: Teller,
    /// Who leads what, to begin with.
    pub metadata: Metadata,
    /// What does its errands.
    pub errands: Errands,
    /// What they bring.
    pub news: Receiver<News>,
    /// What wakes it.
    pub poller: Poller,
}

/// Reads and examines records.
pub struct Consumer {
    place: u32,
    shared: Arc<Shared>,
    terms: Terms,
    reads_own: bool,
    /// What the time of each producing process is ahead of ours, in nanoseconds, as it was last looked up.
    ahead: Vec<(u32, i64)>,
    expected: Expected,
    recorder: Recorder,
    teller: Teller,
    errands: Errands,
    news: Receiver<News>,
    poller: Poller,
    partitions: Vec<Partition>,
    /// Where a partition, by its place among all, stands among ours.
    where_is: Vec<Option<usize>>,
    brokers: Vec<Broker>,
    metadata: Metadata,
    is_asking_metadata: bool,
    wants_metadata: bool,
    metadata_at: u64,
    metadata_failures: u32,
    is_asking_offsets: bool,
    offsets_at: u64,
    correlation: i32,
    upkeep_at: u64,
    /// Nobody writes any more since then.
    over_since: Option<u64>,
    was_paused: bool,
    readiness: Vec<Readiness>,
    /// Partitions of the answer that is examined, with the offsets from which on.
    advanced: Vec<(usize, i64)>,
    contents: Contents,
    room: Vec<u8>,
}

impl Consumer {
    /// Makes one; `run` makes it work.
    #[must_use]
    pub fn new(order: Order) -> Self {
        let shared = order.shared;
        let mut consumer = Self {
            place: order.place,
            terms: order.terms,
            ahead: Vec::new(),
            reads_own: order.reads_own,
            expected: Expected { incarnation: order.reads_own.then_some(shared.incarnation) },
            recorder: order.recorder,
            teller: order.teller,
            errands: order.errands,
            news: order.news,
            poller: order.poller,
            partitions: Vec::new(),
            where_is: vec![None; shared.partitions.len()],
            brokers: Vec::new(),
            metadata: Metadata::default(),
            is_asking_metadata: false,
            wants_metadata: false,
            metadata_at: 0,
            metadata_failures: 0,
            is_asking_offsets: false,
            offsets_at: 0,
            correlation: 0,
            upkeep_at: 0,
            over_since: None,
            was_paused: false,
            readiness: Vec::new(),
            advanced: Vec::new(),
            contents: Contents::default(),
            room: Vec::new(),
            shared,
        };
        consumer.metadata = order.metadata;
        consumer.assign(&order.positions);
        consumer
    }

    /// Works until the load is over and everything is read.
    ///
    /// # Errors
    /// What the system said of waiting.
    pub fn run(mut self) -> Result<Vec<Read>> {
        let fault = |source| Error::Connection { doing: "waiting for connections".to_owned(), source };
        take_short_turns();
        loop {
            let now = self.shared.clock.now();
            self.hear(now);
            if now >= self.upkeep_at {
                self.keep_up(now);
            }
            if !self.is_paused() {
                for place in 0..self.brokers.len() {
                    self.fetch(place, now);
                }
            }
            if self.is_done(now) {
                break;
            }
            let wait = self.upkeep_at.saturating_sub(now);
            let readiness = &mut self.readiness;
            readiness.clear();
            self.poller.wait(wait, |ready| readiness.push(ready)).map_err(fault)?;
            for at in 0..self.readiness.len() {
                self.attend(self.readiness[at]);
            }
        }
        let read = |partition: Partition| Read {
            place: partition.place,
            position: partition.position,
            end: partition.end,
            track: partition.track,
        };
        Ok(self.partitions.into_iter().map(read).collect())
    }

    fn is_paused(&self) -> bool {
        self.shared.paused.load(Ordering::Acquire) && self.over_since.is_none()
    }

    fn is_done(&self, now: u64) -> bool {
        let Some(since) = self.over_since else { return false };
        if now > since + self.shared.drain_nanoseconds {
            return true;
        }
        // Where not all replicas have to acknowledge, what was published may come to be readable a little later.
        let is_all_read = !self.reads_own || self.shared.backlog().0 == 0;
        self.partitions.iter().all(Partition::is_drained) && (is_all_read || now > since + SETTLING_NANOSECONDS)
    }

    /// What the time of the process that this producer is part of is ahead of ours: nothing where it is this process.
    fn ahead_of_ours(&mut self, producer: Option<u32>) -> i64 {
        let (false, Some(producer)) = (self.reads_own, producer) else { return 0 };
        let incarnation = producer >> 8;
        if let Some((_, ahead)) = self.ahead.iter().find(|(known, _)| *known == incarnation) {
            return *ahead;
        }
        let ahead = self.shared.peers.ahead(incarnation);
        self.ahead.push((incarnation, ahead));
        ahead
    }

    /// These partitions, and no others, are ours from now on.
    fn assign(&mut self, positions: &BTreeMap<usize, i64>) {
        let mut parked = self.shared.parked();
        let (kept, gone) = std::mem::take(&mut self.partitions)
            .into_iter()
            .partition(|partition: &Partition| positions.contains_key(&partition.place));
        self.partitions = kept;
        for partition in gone {
            parked.insert(partition.place, partition.track);
        }
        self.where_is.fill(None);
        for (at, partition) in self.partitions.iter().enumerate() {
            self.where_is[partition.place] = Some(at);
        }
        for (&place, &position) in positions {
            if self.where_is[place].is_some() {
                continue;
            }
            let found = &self.shared.partitions[place];
            let mut partition = Partition::new(place, found.topic, found.index);
            partition.position = Some(position);
            partition.track = parked.remove(&place).unwrap_or_default();
            self.where_is[place] = Some(self.partitions.len());
            self.partitions.push(partition);
        }
        drop(parked);
        for broker in &mut self.brokers {
            broker.must_begin = true;
        }
        let metadata = std::mem::take(&mut self.metadata);
        self.learn(&metadata);
        self.metadata = metadata;
    }

    fn hear(&mut self, now: u64) {
        while let Ok(news) = self.news.try_recv() {
            match news {
                News::Connected(id, outcome) => self.connected(id, outcome, now),
                News::Metadata(answer) => {
                    self.is_asking_metadata = false;
                    match answer {
                        Ok(metadata) => {
                            self.learn(&metadata);
                            self.metadata = metadata;
                            self.metadata_failures = 0;
                            self.metadata_at = now + METADATA_AGE_NANOSECONDS;
                        }
                        Err(error) => {
                            self.metadata_failures += 1;
                            self.metadata_at = now + backoff(self.metadata_failures);
                            self.wants_metadata = true;
                            let detail = json!({"error": error.to_string()});
                            self.teller.again("metadata_unavailable", "", detail);
                        }
                    }
                }
                News::Offsets(which, offsets) => self.found_offsets(which, &offsets),
                News::Assigned(positions, taken_over) => {
                    self.assign(&positions);
                    // Whoever told it may have stopped waiting.
                    let _ = taken_over.send(());
                }
                News::ProducerId(_) | News::Rate(_) => {}
            }
        }
    }

    fn found_offsets(&mut self, which: Which, offsets: &BTreeMap<usize, i64>) {
        self.is_asking_offsets = false;
        for (place, &offset) in offsets {
            let Some(at) = self.where_is[*place] else { continue };
            let partition = &mut self.partitions[at];
            match which {
                Which::Latest => partition.end = Some(offset),
                Which::Earliest => {
                    partition.position = Some(offset);
                    partition.is_moved = true;
                    if let Some(leader) = partition.leader {
                        self.brokers[leader].must_begin = true;
                    }
                }
            }
        }
    }

    fn learn(&mut self, metadata: &Metadata) {
        for (&id, address) in &metadata.brokers {
            match self.brokers.iter_mut().find(|broker| broker.id == id) {
                Some(broker) => broker.address = address.clone(),
                None => self.brokers.push(Broker::new(id, address.clone())),
            }
        }
        let mut is_incomplete = false;
        for partition in &mut self.partitions {
            let topic = &metadata.topics[partition.topic];
            let leader = topic.partitions.get(&partition.index).map(|(leader, _)| *leader);
            let leader = leader.and_then(|id| self.brokers.iter().position(|broker| broker.id == id));
            is_incomplete |= leader.is_none();
            if leader != partition.leader {
                for changed in [leader, partition.leader].into_iter().flatten() {
                    self.brokers[changed].must_begin = true;
                }
                partition.leader = leader;
                partition.held_until = 0;
            }
        }
        self.wants_metadata = is_incomplete;
    }

    fn keep_up(&mut self, now: u64) {
        self.upkeep_at = now + UPKEEP_NANOSECONDS;
        for place in 0..self.brokers.len() {
            let broker = &mut self.brokers[place];
            match broker.state {
                State::Down(at) if at <= now && self.partitions.iter().any(|part| part.leader == Some(place)) => {
                    broker.state = State::Connecting;
                    self.errands.connect(broker.id, broker.address.clone());
                }
                State::Up(_) => {
                    let wait = self.terms.max_wait_milliseconds.max(0) as u64 * 1_000_000;
                    if broker.under_way.is_some_and(|(_, at)| at + wait + REQUEST_TIMEOUT_NANOSECONDS < now) {
                        self.disconnect(place, "a request was not answered in time", now);
                    }
                }
                _ => {}
            }
        }
        for partition in &mut self.partitions {
            if partition.held_until != 0 && partition.held_until <= now {
                partition.held_until = 0;
                if let Some(leader) = partition.leader {
                    self.brokers[leader].must_begin = true;
                }
            }
        }
        let is_due = if self.wants_metadata {
            self.metadata_failures == 0 || self.metadata_at <= now
        } else {
            self.metadata_at <= now
        };
        if is_due && !self.is_asking_metadata {
            self.is_asking_metadata = true;
            self.wants_metadata = false;
            self.metadata_at = now + METADATA_AGE_NANOSECONDS;
            self.errands.metadata(self.known_addresses());
        }
        let nobody_writes =
            if self.reads_own { self.shared.producing.load(Ordering::Acquire) == 0 } else { self.shared.is_over(now) };
        if nobody_writes && self.over_since.is_none() {
            self.over_since = Some(now);
        }
        for (incarnation, ahead) in &mut self.ahead {
            *ahead = self.shared.peers.ahead(*incarnation);
        }
        self.ask_offsets(now);
        self.show();
    }

    fn known_addresses(&self) -> Vec<Address> {
        let up = self.brokers.iter().filter(|broker| matches!(broker.state, State::Up(_)));
        up.map(|broker| broker.address.clone()).collect()
    }

    /// Asks for ends once nobody writes any more, and for beginnings where the position was lost.
    fn ask_offsets(&mut self, now: u64) {
        if self.is_asking_offsets || self.offsets_at > now {
            return;
        }
        let which = if self.partitions.iter().any(|partition| partition.position.is_none()) {
            Which::Earliest
        } else if self.over_since.is_some() {
            Which::Latest
        } else {
            return;
        };
        let mut wanted: BTreeMap<usize, Vec<Wanted>> = BTreeMap::new();
        for partition in &self.partitions {
            let is_wanted = match which {
                Which::Earliest => partition.position.is_none(),
                Which::Latest => partition.end.is_none(),
            };
            if let (true, Some(leader)) = (is_wanted, partition.leader) {
                let topic = self.shared.topics[partition.topic].clone();
                wanted.entry(leader).or_default().push((partition.place, topic, partition.index));
            }
        }
        if wanted.is_empty() {
            return;
        }
        self.is_asking_offsets = true;
        self.offsets_at = now + BACKOFF_NANOSECONDS;
        let wanted = wanted.into_iter().map(|(leader, list)| (self.brokers[leader].address.clone(), list)).collect();
        self.errands.offsets(which, wanted);
    }

    fn show(&mut self) {
        let missing: u64 = self.partitions.iter().map(|partition| partition.track.missing()).sum();
        let is_paused = self.is_paused();
        let mut tally = self.recorder.lock();
        tally.set(Gauge::MissingRecords as usize, missing as f64);
        tally.set(Gauge::ConsumersPaused as usize, f64::from(u8::from(is_paused)));
        if self.reads_own && self.place == 0 {
            let (records, bytes) = self.shared.backlog();
            tally.set(Gauge::BacklogRecords as usize, records as f64);
            tally.set(Gauge::BacklogBytes as usize, bytes as f64);
        } else if !self.reads_own {
            let behind = |part: &Partition| part.position.map_or(0, |position| (part.high_watermark - position).max(0));
            let records: i64 = self.partitions.iter().map(behind).sum();
            tally.set(Gauge::BacklogRecords as usize, records as f64);
        }
        drop(tally);
        if is_paused != self.was_paused {
            self.was_paused = is_paused;
        }
    }

    fn connected(&mut self, id: i32, outcome: Result<(Stream, i16)>, now: u64) {
        let Some(place) = self.brokers.iter().position(|broker| broker.id == id) else { return };
        let linked = outcome.and_then(|(stream, _)| {
            let fault = |source| Error::Connection { doing: "connecting".to_owned(), source };
            let link = Link::new(stream).map_err(fault)?;
            self.poller.add(link.stream.socket(), place).map_err(fault)?;
            Ok(link)
        });
        match linked {
            Ok(link) => {
                let broker = &mut self.brokers[place];
                if broker.failures > 0 {
                    self.recorder.lock().add(Counter::Reconnects as usize, 1);
                }
                broker.down(0);
                broker.state = State::Up(link);
                (broker.failures, broker.muted_until) = (0, 0);
            }
            Err(error) => {
                let broker = &mut self.brokers[place];
                broker.failures += 1;
                broker.down(now + backoff(broker.failures));
                self.wants_metadata = true;
                let detail = json!({"broker": id, "error": error.to_string()});
                self.teller.again("connection_failed", &id.to_string(), detail);
            }
        }
    }

    fn disconnect(&mut self, place: usize, reason: &str, now: u64) {
        let broker = &mut self.brokers[place];
        broker.failures += 1;
        broker.down(now + backoff(broker.failures));
        let detail = json!({"broker": broker.id, "address": broker.address.to_string(), "reason": reason});
        self.teller.again("disconnected", &place.to_string(), detail);
        self.recorder.lock().add(Counter::Disconnects as usize, 1);
        self.wants_metadata = true;
    }
}

fn backoff(failures: u32) -> u64 {
    BACKOFF_NANOSECONDS.saturating_mul(2_u64.saturating_pow(failures.saturating_sub(1))).min(BACKOFF_MAX_NANOSECONDS)
}
