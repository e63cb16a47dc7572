//! Deterministic simulation: producers and consumers against simulated brokers, with clock and connections driven by a
//! seed: delays, connection resets, leader elections, rejected batches, partial reads and writes, lost batches.
//!
//! Checked after each: every acknowledged record is in the log and was read, or the verification counts it as lost;
//! with idempotence no record is there twice, and each producer's are in order; nothing stays buffered; the run ends.
//! `CLIFFWATCH_SIMULATION_SECONDS` sets the duration (3 by default), `CLIFFWATCH_SIMULATION_SEED` reproduces one seed.

mod actor;
mod cluster;
pub(crate) mod pipe;
mod plan;
mod random;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::clock::Clock;
use cliffwatch_measure::output::Output;
use cliffwatch_measure::recorder::Recorder;
use cliffwatch_measure::schedule::Step;
use cliffwatch_measure::stop::Stop;
use cliffwatch_measure::windows::Windows;

use crate::clocks::peers::Peers;
use crate::config::{ProducerSettings, SecuritySettings};
use crate::consumer::{Consumer, ConsumerSetup};
use crate::hot::background::{BackgroundTasks, Task};
use crate::hot::client::ClientSetup;
use crate::hot::events::EventReporter;
use crate::hot::poll::Poller;
use crate::names::NAMES;
use crate::producer::pace::Pace;
use crate::producer::{Producer, ProducerSetup};
use crate::security::Security;
use crate::session::Dialer;
use crate::shared::{RecordCount, Shared, TopicPartition};
use crate::verification::{unproven, verification};
use crate::wire::fetch::FetchTerms;
use actor::Actor;
use cluster::{Cluster, PartitionLog};
use plan::Plan;
use world::World;

const START: u64 = 1_790_000_000 * NANOSECONDS;
/// Seeds that found a bug once; they run first.
const KEPT: [u64; 0] = [];

/// Clock, recorder and dialer of one simulating thread, reused for every seed.
struct Laboratory {
    now: &'static AtomicU64,
    recorder: Recorder,
    dialer: Arc<Dialer>,
    /// Whether produced batches are printed on standard error.
    is_told: bool,
}

impl Laboratory {
    fn new(is_told: bool) -> Self {
        let now: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(START)));
        let clock = Clock::set_by(now);
        let output = Output::new(std::io::sink(), clock);
        let mut windows = Windows::new(NAMES, clock, NANOSECONDS, START, START + NANOSECONDS, output).unwrap();
        let security = Security::load(&SecuritySettings::default()).unwrap();
        let dialer = Dialer { client_id: "simulated".to_owned(), security, timeout: Duration::from_secs(1) };
        Self { now, recorder: windows.recorder().unwrap(), dialer: Arc::new(dialer), is_told }
    }

    fn world(&self, seed: u64) -> World {
        self.now.store(START - 10_000_000, Ordering::Relaxed);
        let plan = Plan::of(seed);
        let topics: Vec<String> = (0..plan.topics.len()).map(|topic| format!("topic-{topic}")).collect();
        let partitions: Vec<TopicPartition> = (plan.topics.iter().enumerate())
            .flat_map(|(topic, &count)| (0..count).map(move |index| TopicPartition { topic, index }))
            .collect();
        let leader = |id: usize| i32::try_from(id).unwrap() % plan.brokers + 1;
        let logs =
            partitions.iter().enumerate().map(|(id, found)| PartitionLog::new(found.topic, found.index, leader(id)));
        let cluster = Cluster {
            topics: topics.clone(),
            partitions: logs.collect(),
            is_strict: plan.is_strict,
            refusals: plan.refusals,
            keeps_sessions: plan.keeps_sessions,
            is_told: self.is_told,
        };
        let shared = Arc::new(Shared {
            clock: Clock::set_by(self.now),
            stop: Stop::default(),
            load_start: START,
            load_stop: START + plan.load_nanoseconds,
            drain_nanoseconds: plan.drain_nanoseconds,
            topics,
            incarnation: 7,
            acknowledged: RecordCount::default(),
            consumed: RecordCount::default(),
            paused: AtomicBool::new(false),
            producing: AtomicU32::new(plan.producers),
            positions: partitions.iter().map(|_| AtomicI64::new(-1)).collect(),
            partitions,
            parked: Mutex::default(),
            peers: Peers::new(None),
            debts: (0..plan.producers).map(|_| AtomicU64::new(0)).collect(),
            trial: None,
        });
        let mut world = World::new(plan, seed, shared, cluster, self.now);
        for number in 0..world.plan.producers {
            self.add_producer(&mut world, number);
        }
        for number in 0..world.plan.consumers {
            self.add_consumer(&mut world, number);
        }
        world
    }

    fn client(&self, world: &World) -> (ClientSetup, std::sync::mpsc::Receiver<Task>) {
        let poller = Poller::new().unwrap();
        let topics = Arc::new(world.shared.topics.clone());
        let (mut tasks, updates) =
            BackgroundTasks::new(Arc::clone(&self.dialer), Arc::default(), topics, poller.waker());
        let (sender, requested) = channel();
        tasks.divert(sender);
        let setup = ClientSetup {
            shared: Arc::clone(&world.shared),
            recorder: self.recorder.clone(),
            events: EventReporter::silent(),
            metadata: world.metadata(),
            tasks,
            updates,
            poller,
        };
        (setup, requested)
    }

    fn add_producer(&self, world: &mut World, number: u32) {
        let (client, requested) = self.client(world);
        let tasks = client.tasks.clone();
        let settings: ProducerSettings = serde_json::from_value(world.plan.producer.clone()).unwrap();
        let steps = [Step { after_seconds: 0.0, per_second: settings.rate.unwrap() }];
        let pace = Pace::new(START, &steps, number, settings.producers, settings.catch_up_ratio).unwrap();
        let producer_id = settings.is_idempotent().then(|| world.producer_id());
        let setup = ProducerSetup { number, client, settings: Arc::new(settings), pace, producer_id };
        world.actors.push(Actor::producer(Producer::new(setup).unwrap(), requested, tasks));
    }

    fn add_consumer(&self, world: &mut World, number: u32) {
        let (client, requested) = self.client(world);
        let tasks = client.tasks.clone();
        let terms = FetchTerms {
            client_id: "simulated".to_owned(),
            max_wait_milliseconds: 50,
            min_bytes: 1,
            max_bytes: 1 << 20,
            partition_max_bytes: 1 << 20,
        };
        let count = world.plan.consumers as usize;
        let ours = (0..world.shared.partitions.len()).filter(|id| id % count == number as usize);
        let positions = ours.map(|id| (id, 0)).collect();
        let setup = ConsumerSetup { number, client, terms, reads_own: true, positions };
        world.actors.push(Actor::consumer(Consumer::new(setup), requested, tasks));
    }

    /// Simulates a seed and checks the result; panics when a check fails.
    fn simulate(&self, seed: u64) {
        let mut world = self.world(seed);
        world.run();
        let mut lost = 0;
        for (id, log) in world.cluster.partitions.iter().enumerate() {
            let of = |producer: u32| world.produced.iter().find(|produced| produced.identity == producer).unwrap();
            // Records without acknowledgement may be in the log or not, in any order.
            let is_failed = |(producer, sequence): (u32, u64)| {
                of(producer).partitions[id].1.iter().any(|(from, to)| (*from..*to).contains(&sequence))
            };
            let is_in_order = world.plan.is_idempotent() && world.plan.is_strict && !world.plan.truncates();
            let (mut in_log, mut next) = (BTreeSet::new(), BTreeMap::<u32, u64>::new());
            for (offset, record) in log.records().into_iter().enumerate() {
                let is_new = in_log.insert(record);
                assert!(is_new || !world.plan.is_idempotent(), "partition {id} has {record:?} again, at {offset}");
                let (producer, sequence) = record;
                if is_in_order && !is_failed(record) {
                    let before = next.insert(producer, sequence + 1).unwrap_or(0);
                    assert!(sequence >= before, "partition {id} has {record:?} late, at {offset}, after {before}");
                }
            }
            for produced in &world.produced {
                let made = (0..produced.partitions[id].0).map(|sequence| (produced.identity, sequence));
                lost += made.filter(|record| !in_log.contains(record) && !is_failed(*record)).count() as u64;
            }
        }
        assert!(lost == 0 || world.plan.truncates(), "{lost} acknowledged records are not in the log");
        let begins: Vec<Option<i64>> = world.shared.partitions.iter().map(|_| Some(0)).collect();
        let account = verification(&world.shared, &world.produced, &world.read, &begins);
        assert_eq!(account["lost"], lost, "{account}");
        assert_eq!(account["partitions_not_drained"], 0, "{account}");
        assert_eq!(account["corrupted"], 0, "{account}");
        assert_eq!(unproven(&account).is_some(), lost > 0, "{account}");
        let (made, failed) = (account["made"].as_u64().unwrap(), account["unacknowledged"].as_u64().unwrap());
        assert_eq!(account["acknowledged"], made - failed, "{account}");
        assert!(failed == 0 || world.plan.may_give_up(), "{account}");
    }
}

#[test]
fn whatever_happens_what_is_acknowledged_is_kept_and_what_is_lost_is_said() {
    let one = |name| std::env::var(name).ok().and_then(|text: String| text.parse::<u64>().ok());
    if let Some(seed) = one("CLIFFWATCH_SIMULATION_SEED") {
        println!("{:#?}", Plan::of(seed));
        return Laboratory::new(true).simulate(seed);
    }
    let end = Instant::now() + Duration::from_secs(one("CLIFFWATCH_SIMULATION_SECONDS").unwrap_or(3));
    let first = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
    let next = AtomicU64::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let laboratory = Laboratory::new(false);
                while Instant::now() < end {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let seed = KEPT.get(number as usize).copied().unwrap_or(first.wrapping_add(number));
                    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| laboratory.simulate(seed)));
                    assert!(outcome.is_ok(), "seed {seed}: look at it with CLIFFWATCH_SIMULATION_SEED={seed}");
                }
            });
        }
    });
    println!("{} schedules", next.load(Ordering::Relaxed));
}
