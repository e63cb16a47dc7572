//! One producer: a thread that makes records when they are due and sends them in batches.
//!
//! It never waits but for its poller. Records that are due while there is no room stay on the schedule, which needs no
//! memory, and keep their due time.

pub mod broker;
pub mod keys;
mod outcome;
pub mod pace;
pub mod queue;
mod send;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Receiver;

use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::clock::nanoseconds;
use cliffwatch_measure::record::Identity;
use cliffwatch_measure::recorder::Recorder;
use serde_json::json;

use crate::admin::Metadata;
use crate::batch::write::{Batch, Shapes};
use crate::config::{self, Acks};
use crate::error::Result;
use crate::hot::errands::{Errands, News};
use crate::hot::link::Link;
use crate::hot::poll::{Poller, Readiness};
use crate::hot::prompt::take_short_turns;
use crate::hot::tell::Teller;
use crate::names::{Counter, Gauge};
use crate::session::Address;
use crate::shared::Shared;
use crate::track::Sequences;
use broker::{Broker, State};
use keys::{Keys, Random, Weighted};
use pace::Pace;
use queue::Queue;

/// Looked after this often: expiry, time-outs, gauges.
const UPKEEP_NANOSECONDS: u64 = 20_000_000;
/// Records that fall due within this are made together, where they come so fast: more requests than that fill a processor,
/// and then wait for each other.
const GRAIN_NANOSECONDS: u64 = 80_000;
/// A wake-up comes so late as a rule: the last of a long wait is spent awake.
const AWAKE_NANOSECONDS: u64 = 60_000;
/// Shorter waits come so often that being awake at the end of each would cost a processor.
const LONG_WAIT_NANOSECONDS: u64 = 25 * AWAKE_NANOSECONDS;
/// Records made before connections are looked after again.
const RECORDS_AT_ONCE: usize = 2_048;
/// Metadata is asked for this often although nothing seems wrong.
const METADATA_AGE_NANOSECONDS: u64 = 300 * NANOSECONDS;

/// What became of a producer's records, by place of the partition: how many it made, and which of them will never be
/// acknowledged.
pub struct Report {
    /// What its records carry.
    pub identity: u32,
    /// One for each partition.
    pub partitions: Vec<(u64, Vec<Sequences>)>,
    /// Records that were due before the load's end and were never made, because there was no room for them.
    pub unsent: u64,
}

/// What a producer is given.
pub struct Order {
    /// Its place among the producers.
    pub place: u32,
    /// What all see.
    pub shared: Arc<Shared>,
    /// What was asked for.
    pub settings: Arc<config::Producer>,
    /// When its records are due.
    pub pace: Pace,
    /// Where it counts.
    pub recorder: Recorder,
    /// Where it tells.
    pub teller: Teller,
    /// Who leads what, to begin with.
    pub metadata: Metadata,
    /// Given by the broker, for idempotence.
    pub producer_id: Option<(i64, i16)>,
    /// What does its errands.
    pub errands: Errands,
    /// What they bring.
    pub news: Receiver<News>,
    /// What wakes it.
    pub poller: Poller,
}

/// Makes and sends records.
pub struct Producer {
    identity: u32,
    shared: Arc<Shared>,
    settings: Arc<config::Producer>,
    pace: Pace,
    recorder: Recorder,
    teller: Teller,
    errands: Errands,
    news: Receiver<News>,
    poller: Poller,
    shapes: Shapes,
    sizes: Weighted,
    keys: Keys,
    random: Random,
    /// Records that were made.
    made: u64,
    queues: Vec<Queue>,
    /// The first partition of each topic, and the place after its last.
    topic_ranges: Vec<(usize, usize)>,
    brokers: Vec<Broker>,
    /// Partitions with something to send.
    listed: VecDeque<usize>,
    /// Partitions with an open batch and the moment until which it is, in order of it.
    opened: VecDeque<(usize, u64)>,
    /// The partition that records without keys go to at present.
    current: usize,
    spare: Vec<Batch>,
    spare_bytes: usize,
    buffer_bytes: usize,
    live_bytes: usize,
    in_flight_bytes: usize,
    linger: u64,
    producer_id: Option<(i64, i16)>,
    /// A new producer id is wanted; nothing is sent until it is there.
    is_resetting: bool,
    is_asking_id: bool,
    is_asking_metadata: bool,
    wants_metadata: bool,
    metadata_at: u64,
    metadata_failures: u32,
    correlation: i32,
    upkeep_at: u64,
    /// Until then it does not sleep.
    awake_until: u64,
    over_since: Option<u64>,
    has_asked_last_words: bool,
    readiness: Vec<Readiness>,
    outcomes: Vec<outcome::Found>,
}

impl Producer {
    /// Makes one; `run` makes it work. None when record sizes are too small, which checked settings rule out.
    #[must_use]
    pub fn new(order: Order) -> Option<Self> {
        let settings = order.settings;
        let keys = Keys::new(settings.key);
        let sizes: Vec<usize> = settings.record_sizes.iter().map(|size| size.size_bytes).collect();
        let shared = order.shared;
        let queues: Vec<Queue> = shared.partitions.iter().map(|place| Queue::new(place.topic, place.index)).collect();
        let topic_ranges = (0..shared.topics.len())
            .map(|topic| {
                let from = queues.partition_point(|queue| queue.topic < topic);
                (from, queues.partition_point(|queue| queue.topic <= topic))
            })
            .collect();
        let identity = shared.incarnation << 8 | (order.place & 0xff);
        let count = queues.len().max(1);
        let mut producer = Self {
            identity,
            pace: order.pace,
            recorder: order.recorder,
            teller: order.teller,
            errands: order.errands,
            news: order.news,
            poller: order.poller,
            shapes: Shapes::new(&sizes, keys.are_given(), settings.random_ratio)?,
            sizes: Weighted::new(settings.record_sizes.iter().map(|size| size.weight)),
            keys,
            random: Random::new(u64::from(identity)),
            made: u64::from(order.place),
            topic_ranges,
            brokers: Vec::new(),
            listed: VecDeque::with_capacity(count),
            opened: VecDeque::with_capacity(count),
            // Producers begin at different partitions.
            current: order.place as usize * count / settings.producers as usize % count,
            queues,
            spare: Vec::new(),
            spare_bytes: 0,
            buffer_bytes: settings.buffer_bytes / settings.producers as usize,
            live_bytes: 0,
            in_flight_bytes: 0,
            linger: nanoseconds(settings.linger_seconds),
            producer_id: order.producer_id,
            is_resetting: false,
            is_asking_id: false,
            is_asking_metadata: false,
            wants_metadata: false,
            metadata_at: 0,
            metadata_failures: 0,
            correlation: 0,
            upkeep_at: 0,
            awake_until: 0,
            over_since: None,
            has_asked_last_words: false,
            readiness: Vec::new(),
            outcomes: Vec::new(),
            shared,
            settings,
        };
        producer.learn(&order.metadata);
        Some(producer)
    }

    /// Works until the load is over and all records have met their fate.
    ///
    /// # Errors
    /// What the system said of waiting.
    pub fn run(mut self) -> Result<Report> {
        let fault = |source| crate::error::Error::Connection { doing: "waiting for connections".to_owned(), source };
        take_short_turns();
        loop {
            let now = self.shared.clock.now();
            self.hear(now);
            if self.over_since.is_none() && self.shared.is_over(now) {
                self.over_since = Some(now.min(self.shared.load_stop));
            }
            if now >= self.upkeep_at {
                self.keep_up(now);
            }
            let made = self.make(now);
            self.list_due(now);
            self.send(now);
            if self.settings.acks == Acks::None && !self.has_asked_last_words && self.is_complete() {
                self.has_asked_last_words = true;
                self.ask_last_words(now);
            }
            if self.is_done(now) {
                break;
            }
            let wait = if made == RECORDS_AT_ONCE { 0 } else { self.nap() };
            let readiness = &mut self.readiness;
            readiness.clear();
            self.poller.wait(wait, |ready| readiness.push(ready)).map_err(fault)?;
            for at in 0..self.readiness.len() {
                self.attend(self.readiness[at]);
            }
        }
        let late = self.shared.clock.now();
        self.show(late);
        self.fail_rest(late);
        let unsent = self.over_since.map_or(0, |since| self.pace.overdue(since));
        let mut tally = self.recorder.lock();
        tally.add(Counter::UnsentRecords as usize, unsent);
        tally.add(Counter::Errors as usize, unsent);
        drop(tally);
        self.shared.producing.fetch_sub(1, Ordering::Release);
        let partitions = self.queues.into_iter().map(|queue| (queue.next_record, queue.failed)).collect();
        Ok(Report { identity: self.identity, partitions, unsent })
    }

    fn is_done(&self, now: u64) -> bool {
        let Some(since) = self.over_since else { return false };
        let is_heard_out = self.settings.acks != Acks::None
            || (self.has_asked_last_words && self.brokers.iter().all(|broker| !broker.awaits_last_word));
        (self.is_complete() && is_heard_out) || now > since + self.shared.drain_nanoseconds
    }

    /// True when nothing is left to make or to send.
    fn is_complete(&self) -> bool {
        self.live_bytes == 0 && !self.has_due()
    }

    /// True while the load goes on, and after it for as long as there are records that were due before its end.
    fn has_due(&self) -> bool {
        self.over_since.is_none_or(|since| !self.pace.is_unbounded() && self.pace.due(since) < since)
    }

    /// When there is something to do, if nothing happens before. A record that is due has to be made only when its batch
    /// is due to be sent, or would be full.
    fn wait_until(&self) -> u64 {
        let now = self.shared.clock.now();
        let mut moment = self.upkeep_at;
        if let Some((_, until)) = self.opened.front() {
            moment = moment.min(*until);
        }
        let is_waiting = !self.pace.is_unbounded() || self.pace.due(now) > now;
        if self.has_due() && self.has_memory() && is_waiting {
            let records = self.settings.batch_size_bytes / self.shapes.record_bytes_max(0);
            let interval = self.pace.interval();
            let full_after = interval.saturating_mul(records.saturating_sub(1) as u64);
            // To wake for each of many records would cost more time than it saves.
            let grain = if interval < GRAIN_NANOSECONDS { GRAIN_NANOSECONDS } else { 0 };
            let linger = self.linger.max(grain);
            let patience = if self.opened.is_empty() { full_after.min(linger) } else { full_after };
            moment = moment.min(self.pace.allowed(now).saturating_add(patience));
        }
        moment
    }

    /// How long to sleep now, in nanoseconds.
    fn nap(&mut self) -> u64 {
        let moment = self.wait_until();
        let wait = moment.saturating_sub(self.shared.clock.now());
        if moment == self.upkeep_at {
            return wait;
        }
        if wait > LONG_WAIT_NANOSECONDS {
            self.awake_until = moment;
            return wait - AWAKE_NANOSECONDS;
        }
        if self.awake_until == moment { 0 } else { wait }
    }

    fn has_memory(&self) -> bool {
        self.live_bytes + self.settings.batch_size_bytes.min(self.shapes.record_bytes_max(0)) <= self.buffer_bytes
    }

    /// Makes the records that are due; returns how many.
    fn make(&mut self, now: u64) -> usize {
        let is_unbounded = self.pace.is_unbounded();
        let mut made = 0;
        while made < RECORDS_AT_ONCE && self.has_memory() && self.has_due() {
            if self.pace.allowed(now) > now {
                break;
            }
            if is_unbounded {
                // Ahead by a request: more would only go through the caches twice.
                let ahead = self.live_bytes - self.in_flight_bytes;
                if ahead >= self.settings.request_size_bytes {
                    break;
                }
            }
            let due = self.pace.due(now);
            self.make_one(now, due);
            self.pace.advance(now, due);
            made += 1;
        }
        made
    }

    fn make_one(&mut self, now: u64, due: u64) {
        let shape = self.sizes.draw(&mut self.random);
        let key = self.keys.draw(&mut self.random);
        let place = match key {
            Some(key) => {
                let (from, to) = self.topic_ranges[(self.made % self.topic_ranges.len() as u64) as usize];
                from + keys::partition_of(key, to - from)
            }
            None => self.partition_without_key(),
        };
        self.made += 1;
        let record_bytes = self.shapes.record_bytes_max(shape);
        let batch_size = self.settings.batch_size_bytes;
        let is_full =
            |queue: &Queue| queue.open.as_ref().is_some_and(|open| open.batch.size_bytes() + record_bytes > batch_size);
        if is_full(&self.queues[place]) {
            self.queues[place].close();
            self.list(place);
        }
        if self.queues[place].open.is_none() {
            let until = if self.pace.is_unbounded() { now } else { due + self.linger };
            let batch = self.fresh_batch();
            self.live_bytes += batch.size_bytes();
            self.queues[place].begin(batch, now, until);
            self.opened.push_back((place, until));
        }
        let queue = &mut self.queues[place];
        let identity = Identity {
            producer: self.identity,
            partition: place as u32,
            sequence: queue.next_record,
            timestamp_microseconds: due / 1_000,
        };
        queue.next_record += 1;
        if let Some(open) = &mut queue.open {
            let before = open.batch.size_bytes();
            open.batch.push(&self.shapes, shape, key, &identity, due);
            self.live_bytes += open.batch.size_bytes() - before;
            // Closed at once, so that the next record without a key goes to another partition.
            if open.batch.size_bytes() + record_bytes > batch_size {
                queue.close();
                self.list(place);
            }
        }
    }

    /// A batch goes to one partition and the next batch to the next that can be expected to take it.
    fn partition_without_key(&mut self) -> usize {
        if self.queues[self.current].open.is_some() {
            return self.current;
        }
        let count = self.queues.len();
        let next = (self.current + 1) % count;
        self.current = (0..count)
            .map(|step| (next + step) % count)
            .find(|&place| self.queues[place].is_available())
            .unwrap_or(next);
        self.current
    }

    fn fresh_batch(&mut self) -> Batch {
        match self.spare.pop() {
            Some(mut batch) => {
                self.spare_bytes -= batch.memory_bytes();
                batch.clear();
                batch
            }
            None => Batch::new(self.settings.batch_size_bytes),
        }
    }

    /// Puts a buffer away for the next batch, unless those that are there and those in use are enough.
    fn put_away(&mut self, batch: Batch) {
        let bytes = batch.memory_bytes();
        if self.live_bytes + self.spare_bytes + bytes <= self.buffer_bytes {
            self.spare_bytes += bytes;
            self.spare.push(batch);
        }
    }

    fn list(&mut self, place: usize) {
        let queue = &mut self.queues[place];
        if !queue.is_listed {
            queue.is_listed = true;
            self.listed.push_back(place);
        }
    }

    /// Lists partitions whose open batch has waited long enough.
    fn list_due(&mut self, now: u64) {
        let is_over = self.over_since.is_some();
        while let Some(&(place, until)) = self.opened.front() {
            if until > now && !is_over {
                break;
            }
            self.opened.pop_front();
            if is_over {
                self.queues[place].close();
            }
            if self.queues[place].has_ready(now) {
                self.list(place);
            }
        }
    }

    /// Reads what errands brought.
    fn hear(&mut self, now: u64) {
        while let Ok(news) = self.news.try_recv() {
            match news {
                News::Connected(id, outcome) => self.connected(id, outcome, now),
                News::Metadata(answer) => {
                    self.is_asking_metadata = false;
                    match answer {
                        Ok(metadata) => {
                            self.learn(&metadata);
                            self.metadata_failures = 0;
                            self.metadata_at = now + METADATA_AGE_NANOSECONDS;
                        }
                        Err(error) => {
                            self.metadata_failures += 1;
                            self.metadata_at = now + self.backoff(self.metadata_failures);
                            self.wants_metadata = true;
                            let detail = json!({"error": error.to_string()});
                            self.teller.again("metadata_unavailable", "", detail);
                        }
                    }
                }
                News::ProducerId(answer) => {
                    self.is_asking_id = false;
                    match answer {
                        Ok(id) => {
                            self.producer_id = Some(id);
                            self.is_resetting = false;
                        }
                        Err(error) => {
                            let detail = json!({"error": error.to_string()});
                            self.teller.again("producer_id_unavailable", "", detail);
                        }
                    }
                }
                News::Rate(per_second) => {
                    if let Err(error) = self.pace.restart(now, per_second) {
                        self.teller.event("rate_refused", json!({"error": error.to_string()}));
                    }
                }
                News::Offsets(..) | News::Assigned(..) => {}
            }
        }
    }

    /// How long to wait after so many failures, in nanoseconds.
    fn backoff(&self, failures: u32) -> u64 {
        let first = self.settings.retry_backoff_seconds;
        let wait = first * f64::from(2_u32.saturating_pow(failures.saturating_sub(1)));
        nanoseconds(wait.min(self.settings.retry_backoff_max_seconds))
    }

    fn known_addresses(&self) -> Vec<Address> {
        let is_up = |broker: &&Broker| matches!(broker.state, State::Up(_));
        let up = self.brokers.iter().filter(is_up);
        up.map(|broker| broker.address.clone()).collect()
    }

    /// Takes over who leads what.
    fn learn(&mut self, metadata: &Metadata) {
        for (&id, address) in &metadata.brokers {
            match self.brokers.iter_mut().find(|broker| broker.id == id) {
                Some(broker) => broker.address = address.clone(),
                None => self.brokers.push(Broker::new(id, address.clone())),
            }
        }
        let mut is_incomplete = false;
        let mut moved: BTreeMap<(usize, usize), u64> = BTreeMap::new();
        for queue in &mut self.queues {
            let topic = &metadata.topics[queue.topic];
            let leader = topic.partitions.get(&queue.index).map(|(leader, _)| *leader);
            let leader = leader.and_then(|id| self.brokers.iter().position(|broker| broker.id == id));
            is_incomplete |= leader.is_none();
            if let (Some(before), Some(after)) = (queue.leader, leader)
                && before != after
            {
                *moved.entry((before, after)).or_default() += 1;
            }
            queue.leader = leader;
        }
        for ((before, after), partitions) in moved {
            self.recorder.lock().add(Counter::LeaderChanges as usize, partitions);
            let detail =
                json!({"from": self.brokers[before].id, "to": self.brokers[after].id, "partitions": partitions});
            self.teller.event("leader_changed", detail);
        }
        self.wants_metadata = is_incomplete;
        if is_incomplete {
            let count = self.queues.iter().filter(|queue| queue.leader.is_none()).count();
            self.teller.again("partitions_without_leader", "", json!({"partitions": count}));
        }
    }

    /// What has to be looked after from time to time.
    fn keep_up(&mut self, now: u64) {
        self.upkeep_at = now + UPKEEP_NANOSECONDS;
        for place in 0..self.brokers.len() {
            let broker = &mut self.brokers[place];
            match broker.state {
                State::Down(at) if at <= now && self.queues.iter().any(|queue| queue.leader == Some(place)) => {
                    broker.state = State::Connecting;
                    self.errands.connect(broker.id, broker.address.clone());
                }
                State::Up(_) => {
                    let limit = nanoseconds(self.settings.request_timeout_seconds);
                    if broker.in_flight.front().is_some_and(|sent| sent.at + limit < now) {
                        self.disconnect(place, "a request was not answered in time", now);
                    }
                }
                _ => {}
            }
        }
        if (self.wants_metadata || self.metadata_at <= now) && !self.is_asking_metadata {
            let is_held_back = self.wants_metadata && self.metadata_failures > 0 && self.metadata_at > now;
            if !is_held_back {
                self.is_asking_metadata = true;
                self.wants_metadata = false;
                self.metadata_at = now + METADATA_AGE_NANOSECONDS;
                self.errands.metadata(self.known_addresses());
            }
        }
        self.expire(now);
        self.reset_when_quiet();
        self.show(now);
    }

    fn show(&self, now: u64) {
        let debt = if self.over_since.is_some() { 0 } else { self.pace.debt(now) };
        let leaderless = self.queues.iter().filter(|queue| queue.leader.is_none()).count();
        if let Some(shown) = self.shared.debts.get((self.identity & 0xff) as usize) {
            shown.store(debt, Ordering::Relaxed);
        }
        let outstanding = self.oldest_outstanding(now);
        let mut tally = self.recorder.lock();
        tally.look(now, outstanding);
        tally.set(Gauge::ScheduleDebt as usize, debt as f64 / NANOSECONDS as f64);
        tally.set(Gauge::BufferedBytes as usize, self.live_bytes as f64);
        tally.set(Gauge::LeaderlessPartitions as usize, leaderless as f64);
    }

    /// When the oldest record was due that is not acknowledged: under way, in a batch, or not made yet.
    fn oldest_outstanding(&self, now: u64) -> Option<u64> {
        let under_way = self.brokers.iter().flat_map(|broker| &broker.in_flight).flat_map(|sent| &sent.parts);
        let sent = under_way.filter_map(|part| part.pending.as_ref()?.batch.due.first());
        let kept = self.queues.iter().filter_map(|queue| queue.oldest()?.batch.due.first());
        let unmade = (self.has_due() && !self.pace.is_unbounded()).then(|| self.pace.due(now));
        sent.chain(kept).copied().chain(unmade).min()
    }

    fn connected(&mut self, id: i32, outcome: Result<(crate::security::Stream, i16)>, now: u64) {
        let Some(place) = self.brokers.iter().position(|broker| broker.id == id) else { return };
        let linked = outcome.and_then(|(stream, version)| {
            let fault = |source| crate::error::Error::Connection { doing: "connecting".to_owned(), source };
            let link = Link::new(stream).map_err(fault)?;
            self.poller.add(link.stream.socket(), place).map_err(fault)?;
            Ok((link, version))
        });
        match linked {
            Ok((link, version)) => {
                let broker = &mut self.brokers[place];
                if broker.failures > 0 {
                    self.recorder.lock().add(Counter::Reconnects as usize, 1);
                    self.teller.event("reconnected", json!({"broker": id}));
                }
                broker.state = State::Up(link);
                (broker.failures, broker.version, broker.waits_for_room) = (0, version, false);
                broker.muted_until = 0;
            }
            Err(error) => {
                let failures = self.brokers[place].failures + 1;
                let wait = self.backoff(failures);
                let broker = &mut self.brokers[place];
                broker.failures = failures;
                broker.state = State::Down(now + wait);
                self.wants_metadata = true;
                let detail = json!({"broker": id, "error": error.to_string()});
                self.teller.again("connection_failed", &id.to_string(), detail);
            }
        }
    }
}
