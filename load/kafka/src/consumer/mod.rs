//! Consumer: a hot thread that fetches its partitions from their leaders and checks every record.
//!
//! It sends the next fetch request before it examines the last response, so that the broker works meanwhile.

mod assignment;
mod fetch;
pub(crate) mod group;
pub(crate) mod partition;
mod requests;
mod upkeep;

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use cliffwatch_measure::NANOSECONDS;

use crate::admin::Metadata;
use crate::error::Result;
use crate::hot::background::Update;
use crate::hot::backoff::Backoff;
use crate::hot::client::{Client, ClientSetup};
use crate::hot::thread::HotThread;
use crate::track::Track;
use crate::wire::fetch::FetchTerms;
use partition::{Contents, Expected, Partition};
use requests::Requests;

const REQUEST_TIMEOUT_NANOSECONDS: u64 = 30 * NANOSECONDS;
/// After writing has ended and all partitions are drained, acknowledged records that were not read are waited for this
/// long.
const SETTLING_NANOSECONDS: u64 = 2 * NANOSECONDS;
const BACKOFF: Backoff = Backoff { first_nanoseconds: 100_000_000, max_nanoseconds: NANOSECONDS };

/// Result of reading one partition: position, end offset, and counts of lost, duplicated or corrupted records.
pub(crate) struct PartitionRead {
    /// Partition id.
    pub(crate) partition: usize,
    /// Offset of the next record to read; None when unknown.
    pub(crate) position: Option<i64>,
    /// End offset, as the broker reported it once all writing had ended; None when it did not.
    pub(crate) end: Option<i64>,
    /// Sequences read of each producer, gaps, and record counts.
    pub(crate) track: Track,
}

/// Settings and resources of one consumer.
pub(crate) struct ConsumerSetup {
    /// Index of the consumer in this process, from 0.
    pub(crate) number: u32,
    /// Resources common to all hot threads.
    pub(crate) client: ClientSetup,
    /// Parameters of its fetch requests: wait time and size limits.
    pub(crate) terms: FetchTerms,
    /// Whether this process also produces the records that are read.
    pub(crate) reads_own: bool,
    /// Start offsets of its partitions, by partition id.
    pub(crate) positions: BTreeMap<usize, i64>,
}

/// Fetches records, checks them and measures end-to-end latency.
pub(crate) struct Consumer {
    number: u32,
    client: Client<Requests>,
    terms: FetchTerms,
    reads_own: bool,
    /// Clock offset of each producing process, by incarnation: nanoseconds ahead of this one, refreshed at each upkeep.
    ahead: Vec<(u32, i64)>,
    expected: Expected,
    partitions: Vec<Partition>,
    /// Index in `partitions`, by partition id; None for partitions that are not assigned.
    where_is: Vec<Option<usize>>,
    metadata: Metadata,
    is_asking_offsets: bool,
    offsets_at: u64,
    /// When the end of all writing was noticed, in nanoseconds since the epoch.
    over_since: Option<u64>,
    /// Partitions with records in the current response: index in `partitions`, and the position before it.
    advanced: Vec<(usize, i64)>,
    contents: Contents,
    room: Vec<u8>,
}

impl Consumer {
    /// Creates a consumer with its initial assignment; `run` starts reading.
    #[must_use]
    pub(crate) fn new(setup: ConsumerSetup) -> Self {
        let shared = &setup.client.shared;
        let mut consumer = Self {
            number: setup.number,
            terms: setup.terms,
            reads_own: setup.reads_own,
            ahead: Vec::new(),
            expected: Expected { incarnation: setup.reads_own.then_some(shared.incarnation) },
            partitions: Vec::new(),
            where_is: vec![None; shared.partitions.len()],
            metadata: setup.client.metadata.clone(),
            is_asking_offsets: false,
            offsets_at: 0,
            over_since: None,
            advanced: Vec::new(),
            contents: Contents::default(),
            room: Vec::new(),
            client: Client::new(setup.client, BACKOFF),
        };
        consumer.assign(&setup.positions);
        consumer
    }

    /// Runs until the load is over and everything is read, or the drain time has passed; returns the result of each
    /// partition. Blocks.
    ///
    /// # Errors
    /// I/O error of the poller.
    pub(crate) fn run(mut self) -> Result<Vec<PartitionRead>> {
        self.take_turns()?;
        Ok(self.finish())
    }

    /// Returns the results of its partitions, after the last turn.
    pub(crate) fn finish(self) -> Vec<PartitionRead> {
        let read = |partition: Partition| PartitionRead {
            partition: partition.id,
            position: partition.position,
            end: partition.end,
            track: partition.track,
        };
        self.partitions.into_iter().map(read).collect()
    }

    fn is_paused(&self) -> bool {
        self.client.shared.paused.load(Ordering::Acquire) && self.over_since.is_none()
    }

    fn is_done(&self, now: u64) -> bool {
        let Some(since) = self.over_since else { return false };
        if now > since + self.client.shared.drain_nanoseconds {
            return true;
        }
        // Where not all replicas have to acknowledge, acknowledged records may become readable a little later.
        let is_all_read = !self.reads_own || self.client.shared.backlog().0 == 0;
        self.partitions.iter().all(Partition::is_drained) && (is_all_read || now > since + SETTLING_NANOSECONDS)
    }
}

impl HotThread for Consumer {
    type Exchange = Requests;

    fn client(&mut self) -> &mut Client<Requests> {
        &mut self.client
    }

    fn turn(&mut self, now: u64) -> Option<u64> {
        if self.client.wake_up.takes_upkeep(now) {
            self.keep_up(now);
        }
        if !self.is_paused() {
            for broker in 0..self.client.brokers.len() {
                self.fetch(broker, now);
            }
        }
        let upkeep_at = self.client.wake_up.upkeep_at();
        (!self.is_done(now)).then(|| self.client.wake_up.until(upkeep_at, now))
    }

    fn answered(&mut self, broker: usize, answer: &[u8], now: u64) -> bool {
        self.take_answer(broker, answer, now)
    }

    fn learn(&mut self, metadata: Metadata) {
        self.metadata = metadata;
        self.follow_leaders();
    }

    fn update(&mut self, update: Update, _now: u64) {
        self.take_update(update);
    }

    fn needs(&self, broker: usize) -> bool {
        self.partitions.iter().any(|partition| partition.leader == Some(broker))
    }

    fn written(&mut self, _broker: usize) {}

    fn disconnected(&mut self, _broker: usize, _now: u64) {}

    fn request_timeout(&self) -> u64 {
        let wait = self.terms.max_wait_milliseconds.max(0) as u64 * 1_000_000;
        wait + REQUEST_TIMEOUT_NANOSECONDS
    }
}
