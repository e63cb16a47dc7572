//! One consumer: a thread that reads its partitions from their leaders and examines every record.
//!
//! It sends the next request before it examines the answer to the last, so that the broker works meanwhile.

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
/// So long what seems to be missing at the end is waited for.
const SETTLING_NANOSECONDS: u64 = 2 * NANOSECONDS;
const BACKOFF: Backoff = Backoff { first_nanoseconds: 100_000_000, max_nanoseconds: NANOSECONDS };

/// How far a partition was read, and what its records turned out to be.
pub(crate) struct PartitionRead {
    /// Its id.
    pub(crate) partition: usize,
    /// The offset of the next record.
    pub(crate) position: Option<i64>,
    /// The offset after the last record, as the broker reported once all writing had ended.
    pub(crate) end: Option<i64>,
    /// What became of its records.
    pub(crate) track: Track,
}

/// What a consumer is given.
pub(crate) struct ConsumerSetup {
    /// Its number among the consumers, from 0 on.
    pub(crate) number: u32,
    /// What every hot thread is given.
    pub(crate) client: ClientSetup,
    /// What goes into requests.
    pub(crate) terms: FetchTerms,
    /// Whether this process produces what is read.
    pub(crate) reads_own: bool,
    /// Its partitions, by id, with the offset to begin at.
    pub(crate) positions: BTreeMap<usize, i64>,
}

/// Reads and examines records.
pub(crate) struct Consumer {
    number: u32,
    client: Client<Requests>,
    terms: FetchTerms,
    reads_own: bool,
    /// What the time of each producing process is ahead of ours, in nanoseconds, as it was last looked up.
    ahead: Vec<(u32, i64)>,
    expected: Expected,
    partitions: Vec<Partition>,
    /// Where a partition, by its id, stands among ours.
    where_is: Vec<Option<usize>>,
    metadata: Metadata,
    is_asking_offsets: bool,
    offsets_at: u64,
    /// When all writing ended.
    over_since: Option<u64>,
    /// Partitions of the answer that is examined, with the offsets from which on.
    advanced: Vec<(usize, i64)>,
    contents: Contents,
    room: Vec<u8>,
}

impl Consumer {
    /// Makes one; `run` makes it work.
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

    /// Works until the load is over and everything is read.
    ///
    /// # Errors
    /// What the system said of waiting.
    pub(crate) fn run(mut self) -> Result<Vec<PartitionRead>> {
        self.take_turns()?;
        Ok(self.finish())
    }

    /// After its last turn: what became of the records of its partitions.
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
        // Where not all replicas have to acknowledge, what was published may come to be readable a little later.
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
