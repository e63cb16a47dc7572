//! Producer thread: makes records when they are due and sends them in batches.
//!
//! It blocks only in its poller. Records due while the buffer is full are made later: the schedule needs no memory for
//! them, and they keep their due time.

pub(crate) mod keys;
mod make;
mod outcome;
pub(crate) mod pace;
pub(crate) mod queue;
mod requests;
mod send;
mod upkeep;

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use cliffwatch_measure::clock::nanoseconds;

use crate::admin::Metadata;
use crate::batch::write::{Batch, RecordTemplates};
use crate::config::{self, Acks};
use crate::error::Result;
use crate::hot::background::Update;
use crate::hot::backoff::Backoff;
use crate::hot::client::{Client, ClientSetup};
use crate::hot::thread::HotThread;
use crate::names::Counter;
use crate::shared::TopicPartition;
use crate::track::Sequences;
use keys::{Keys, Weighted, Xorshift};
use make::RECORDS_AT_ONCE;
use pace::Pace;
use queue::PartitionQueue;
use requests::Requests;

/// Shortest linger at high rates, in nanoseconds: records that fall due within it are made together, because more
/// requests would keep a processor busy and queue behind each other.
const GRAIN_NANOSECONDS: u64 = 80_000;

/// Result of one producer: records made, failed and unsent.
pub(crate) struct Produced {
    /// Producer number in its records: the run's incarnation, and the producer's index in the low 8 bits.
    pub(crate) identity: u32,
    /// By partition id: number of records made, and the sequences of those that were never acknowledged.
    pub(crate) partitions: Vec<(u64, Vec<Sequences>)>,
    /// Records due before the load's end that were never made, because the buffer was full.
    pub(crate) unsent: u64,
}

/// Parameters of a producer.
pub(crate) struct ProducerSetup {
    /// Index of the producer, from 0.
    pub(crate) number: u32,
    /// Connections, metadata and channels of its thread.
    pub(crate) client: ClientSetup,
    /// Producer settings.
    pub(crate) settings: Arc<config::ProducerSettings>,
    /// Due times of its records.
    pub(crate) pace: Pace,
    /// Producer id and epoch from the broker; None without idempotence.
    pub(crate) producer_id: Option<(i64, i16)>,
}

/// Producer thread's state: partition queues, batch buffers and connections.
pub(crate) struct Producer {
    identity: u32,
    client: Client<Requests>,
    settings: Arc<config::ProducerSettings>,
    pace: Pace,
    shapes: RecordTemplates,
    sizes: Weighted,
    keys: Keys,
    random: Xorshift,
    /// Number of records made, plus the producer's index.
    made: u64,
    /// Partition queues, by partition id.
    queues: Vec<PartitionQueue>,
    /// Range of partition ids of each topic, the end exclusive.
    topic_ranges: Vec<(usize, usize)>,
    /// Partitions with batches to send.
    listed: VecDeque<usize>,
    /// Partitions with the time until which their open batch lingers, in order of that time.
    opened: VecDeque<(usize, u64)>,
    /// Partition of the current batch without keys.
    current: usize,
    spare: Vec<Batch>,
    spare_bytes: usize,
    buffer_bytes: usize,
    live_bytes: usize,
    in_flight_bytes: usize,
    linger: u64,
    /// Reason of the latest producer id reset.
    reset_reason: &'static str,
    is_asking_id: bool,
    over_since: Option<u64>,
    has_asked_final_answer: bool,
    outcomes: Vec<outcome::BatchOutcome>,
}

impl Producer {
    /// Producer ready to `run`. None when record sizes are too small, which checked settings rule out.
    #[must_use]
    pub(crate) fn new(setup: ProducerSetup) -> Option<Self> {
        let settings = setup.settings;
        let keys = Keys::new(settings.key);
        let sizes: Vec<usize> = settings.record_sizes.iter().map(|size| size.size_bytes).collect();
        let shared = &setup.client.shared;
        let queue = |found: &TopicPartition| PartitionQueue::new(found.topic, found.index, setup.producer_id);
        let queues: Vec<PartitionQueue> = shared.partitions.iter().map(queue).collect();
        let topic_ranges = (0..shared.topics.len())
            .map(|topic| {
                let from = queues.partition_point(|queue| queue.topic < topic);
                (from, queues.partition_point(|queue| queue.topic <= topic))
            })
            .collect();
        let identity = shared.incarnation << 8 | (setup.number & 0xff);
        let count = queues.len().max(1);
        let backoff = Backoff {
            first_nanoseconds: nanoseconds(settings.retry_backoff_seconds),
            max_nanoseconds: nanoseconds(settings.retry_backoff_max_seconds),
        };
        let metadata = setup.client.metadata.clone();
        let mut producer = Self {
            identity,
            client: Client::new(setup.client, backoff),
            pace: setup.pace,
            shapes: RecordTemplates::new(&sizes, keys.are_given(), settings.random_ratio)?,
            sizes: Weighted::new(settings.record_sizes.iter().map(|size| size.weight)),
            keys,
            random: Xorshift::new(u64::from(identity)),
            made: u64::from(setup.number),
            topic_ranges,
            listed: VecDeque::with_capacity(count),
            opened: VecDeque::with_capacity(count),
            // Each producer starts at another partition.
            current: setup.number as usize * count / settings.producers as usize % count,
            queues,
            spare: Vec::new(),
            spare_bytes: 0,
            buffer_bytes: settings.buffer_bytes / settings.producers as usize,
            live_bytes: 0,
            in_flight_bytes: 0,
            linger: nanoseconds(settings.linger_seconds),
            reset_reason: "",
            is_asking_id: false,
            over_since: None,
            has_asked_final_answer: false,
            outcomes: Vec::new(),
            settings,
        };
        producer.learn(metadata);
        Some(producer)
    }

    /// Runs until the load is over and every record is acknowledged or failed, or the drain timeout has passed; blocks.
    ///
    /// # Errors
    /// `Error::Connection` when polling fails.
    pub(crate) fn run(mut self) -> Result<Produced> {
        self.take_turns()?;
        Ok(self.finish())
    }

    /// Fails what is left unacknowledged, counts unsent records, and returns the result.
    pub(crate) fn finish(mut self) -> Produced {
        let late = self.client.shared.clock.now();
        self.show(late);
        self.fail_rest(late);
        let unsent = self.over_since.map_or(0, |since| self.pace.overdue(since));
        let mut tally = self.client.recorder.lock();
        tally.add(Counter::UnsentRecords as usize, unsent);
        tally.add(Counter::Errors as usize, unsent);
        drop(tally);
        self.client.shared.producing.fetch_sub(1, Ordering::Release);
        let partitions = self.queues.into_iter().map(|queue| (queue.next_record, queue.failed)).collect();
        Produced { identity: self.identity, partitions, unsent }
    }

    fn is_done(&self, now: u64) -> bool {
        let Some(since) = self.over_since else { return false };
        let is_answered = self.settings.acks != Acks::None
            || (self.has_asked_final_answer
                && self.client.brokers.iter().all(|broker| !broker.exchange.awaits_final_answer));
        (self.is_complete() && is_answered) || now > since + self.client.shared.drain_nanoseconds
    }

    /// True when all due records are made, and each is acknowledged or failed.
    fn is_complete(&self) -> bool {
        self.live_bytes == 0 && !self.has_due()
    }

    /// True during the load, and after it while records due before its end are not made yet.
    fn has_due(&self) -> bool {
        self.over_since.is_none_or(|since| !self.pace.is_unbounded() && self.pace.due(since) < since)
    }

    /// Time until which the thread may sleep, if no event comes before. A due record is made only once its batch is due
    /// to be sent, or would be full.
    fn wait_until(&self, now: u64) -> u64 {
        let mut moment = self.client.wake_up.upkeep_at();
        if let Some((_, until)) = self.opened.front() {
            moment = moment.min(*until);
        }
        let is_waiting = !self.pace.is_unbounded() || self.pace.due(now) > now;
        if self.has_due() && self.has_memory() && is_waiting {
            let records = self.settings.batch_size_bytes / self.shapes.record_bytes_max(0);
            let interval = self.pace.interval();
            let full_after = interval.saturating_mul(records.saturating_sub(1) as u64);
            // Waking for each of many records would cost more time than it saves.
            let grain = if interval < GRAIN_NANOSECONDS { GRAIN_NANOSECONDS } else { 0 };
            let linger = self.linger.max(grain);
            let patience = if self.opened.is_empty() { full_after.min(linger) } else { full_after };
            moment = moment.min(self.pace.allowed(now).saturating_add(patience));
        }
        moment
    }
}

impl HotThread for Producer {
    type Exchange = Requests;

    fn client(&mut self) -> &mut Client<Requests> {
        &mut self.client
    }

    fn turn(&mut self, now: u64) -> Option<u64> {
        if self.over_since.is_none() && self.client.shared.is_over(now) {
            self.over_since = Some(now.min(self.client.shared.load_stop));
        }
        if self.client.wake_up.takes_upkeep(now) {
            self.keep_up(now);
        }
        let made = self.make(now);
        self.list_due(now);
        self.send(now);
        if self.settings.acks == Acks::None && !self.has_asked_final_answer && self.is_complete() {
            self.has_asked_final_answer = true;
            self.ask_final_answer(now);
        }
        if self.is_done(now) {
            return None;
        }
        if made == RECORDS_AT_ONCE {
            return Some(0);
        }
        let later = self.client.shared.clock.now();
        let moment = self.wait_until(later);
        Some(self.client.wake_up.until(moment, later))
    }

    fn answered(&mut self, broker: usize, answer: &[u8], now: u64) -> bool {
        self.take_answer(broker, answer, now)
    }

    fn learn(&mut self, metadata: Metadata) {
        let changes = self.client.take_over(&metadata, &mut self.queues);
        self.report_leaders(&changes);
    }

    fn update(&mut self, update: Update, now: u64) {
        self.take_update(update, now);
    }

    fn needs(&self, broker: usize) -> bool {
        self.queues.iter().any(|queue| queue.leader == Some(broker))
    }

    fn written(&mut self, broker: usize) {
        if self.settings.acks == Acks::None {
            self.acknowledge_written(broker);
        }
    }

    fn disconnected(&mut self, broker: usize, now: u64) {
        for mut request in std::mem::take(&mut self.client.brokers[broker].exchange.in_flight) {
            self.take_back(&mut request, now);
        }
    }

    fn request_timeout(&self) -> u64 {
        nanoseconds(self.settings.request_timeout_seconds)
    }
}
