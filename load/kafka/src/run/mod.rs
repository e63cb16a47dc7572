//! One run of the engine: topic preparation, threads, windows, and verification at the end.

mod threads;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cliffwatch_measure::clock::{Clock, nanoseconds};
use cliffwatch_measure::histogram::Latencies;
use cliffwatch_measure::output::Output;
use cliffwatch_measure::stop::Stop;
use cliffwatch_measure::windows::{Windows, begin};
use serde_json::json;

use crate::admin::{self, Metadata, OffsetSpec};
use crate::clocks::peers::Peers;
use crate::config::{self, Config};
use crate::consumer::PartitionRead;
use crate::error::{Error, Result};
use crate::hot::background::offsets_at;
use crate::hot::events::EventReporter;
use crate::names::NAMES;
use crate::security::Security;
use crate::session::{Address, Dialer, patiently, refuse};
use crate::shared::{RateTrial, RecordCount, Shared, TopicPartition};
use crate::topics;
use crate::verification::{unproven, verification};
use threads::ThreadStarter;

/// Exit status of a load that was executed.
pub const COMPLETED: u8 = 0;
/// Exit status of a load that could not be executed or failed.
pub const FAILED: u8 = 1;
/// Exit status for invalid settings.
pub const BAD_INPUT: u8 = 2;

/// Timeout of each connection attempt, and of each response outside the hot path.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How long transient broker errors are retried.
const PATIENCE: Duration = Duration::from_secs(30);
/// Duration of a load without a configured stop, in seconds: a hundred years, until a signal ends it.
const FOREVER_SECONDS: f64 = 100.0 * 365.0 * 86_400.0;

/// Runs the load configured at `path`, or with `only_prepare` only prepares its topics; blocks. Prints the lines of
/// the engine contract on stdout, errors on stderr, and returns the exit status.
#[must_use]
pub fn kafka(path: &Path, only_prepare: bool) -> u8 {
    let clock = Clock::anchored();
    let output = Output::new(std::io::stdout(), clock);
    let outcome = Config::load(path).and_then(|config| execute(config, clock, output.clone(), only_prepare));
    let (status, printed) = match outcome {
        Ok(()) => (COMPLETED, output.completed()),
        Err(error) => {
            eprintln!("cliffwatch-load kafka: {error}");
            let status = if matches!(error, Error::Config(_)) { BAD_INPUT } else { FAILED };
            let message = error.to_string();
            // Restarting the engine would meet the same settings, and could not recover lost records.
            let is_for_good = matches!(error, Error::Config(_) | Error::Unproven { .. });
            (status, if is_for_good { output.failed_for_good(&message) } else { output.failed(&message) })
        }
    };
    if printed.is_err() { FAILED } else { status }
}

/// Runs a load, or with `only_prepare` only prepares its topics; blocks. Prints windows and events on `output`, but
/// not the final line.
///
/// # Errors
/// [`Error`] with a text for the user who wrote the settings.
pub fn execute(config: Config, clock: Clock, output: Output, only_prepare: bool) -> Result<()> {
    Run::new(config, clock, output)?.execute(only_prepare)
}

struct Run {
    config: Arc<Config>,
    clock: Clock,
    output: Output,
    dialer: Arc<Dialer>,
    bootstrap: Arc<Vec<Address>>,
}

/// Offsets by partition id.
type Positions = BTreeMap<usize, i64>;

/// Dialer and bootstrap addresses from the configuration.
///
/// # Errors
/// `Error::Config` naming the invalid server or file.
pub(crate) fn connections(config: &Config, timeout: Duration) -> Result<(Dialer, Vec<Address>)> {
    let bootstrap = config
        .bootstrap_servers
        .iter()
        .map(|text| {
            Address::parse(text).ok_or_else(|| Error::Config(format!("bootstrap_servers: {text} is not host:port")))
        })
        .collect::<Result<Vec<_>>>()?;
    let security = Security::load(&config.security)?;
    Ok((Dialer { client_id: config.client_id.clone(), security, timeout }, bootstrap))
}

impl Run {
    fn new(config: Config, clock: Clock, output: Output) -> Result<Self> {
        let (dialer, bootstrap) = connections(&config, TIMEOUT)?;
        Ok(Self { config: Arc::new(config), clock, output, dialer: Arc::new(dialer), bootstrap: Arc::new(bootstrap) })
    }

    fn execute(&self, only_prepare: bool) -> Result<()> {
        let metadata = topics::prepare(&self.config, &self.dialer, &self.bootstrap)?;
        if only_prepare {
            if self.config.producer.as_ref().is_some_and(config::ProducerSettings::is_idempotent) {
                self.producer_id()?;
            }
            return Ok(());
        }
        let fault = |source| Error::Connection { doing: "starting".to_owned(), source };
        let stop = Stop::on_signals().map_err(fault)?;
        let (events, printing) = EventReporter::start(self.output.clone()).map_err(fault)?;
        let mut shared = self.shared(stop.clone(), &metadata)?;
        let positions = self.positions(&shared, &metadata)?;
        let length = nanoseconds(self.config.window_seconds);
        let times = (shared.load_start, shared.load_stop);
        let (start, end) = begin(&self.output, &self.clock, length, times, self.config.begun.is_none())?;
        (shared.load_start, shared.load_stop) = (start, end);
        let shared = Arc::new(shared);
        let mut windows = Windows::new(NAMES, self.clock, length, start, end, self.output.clone())?;
        let mut starter = ThreadStarter::new(self, &shared, &metadata, &events, &mut windows);
        starter.start_producers()?;
        starter.start_consumers(&positions)?;
        starter.start_others()?;
        let threads = starter.into_threads();
        let mut outcome = Ok((Vec::new(), Vec::new()));
        let printed = windows.run(&stop, || outcome = threads.join());
        // If the windows could not be printed, the threads are still running.
        stop.request();
        printed?;
        let (reports, mut reads) = outcome?;
        // Partitions that no consumer of this process owned at the end: other members of the group may have read them.
        let parked = std::mem::take(&mut *shared.parked());
        reads.extend(parked.into_iter().map(|(partition, track)| PartitionRead {
            partition,
            position: None,
            end: None,
            track,
        }));
        let begins: Vec<Option<i64>> = (0..shared.partitions.len()).map(|id| positions.get(&id).copied()).collect();
        let account = verification(&shared, &reports, &reads, &begins);
        let unproven = unproven(&account);
        events.report("verification", account);
        if self.config.topics.prefix.is_some()
            && self.config.topics.delete_at_end
            && let Err(error) = topics::remove(&self.config, &self.dialer, &self.bootstrap)
        {
            events.report("topics_not_deleted", json!({"error": error.to_string()}));
        }
        drop(events);
        // Events are printed before the final line.
        let _ = printing.join();
        unproven.map_or(Ok(()), Err)
    }

    fn shared(&self, stop: Stop, metadata: &Metadata) -> Result<Shared> {
        let config = &self.config;
        let partitions = metadata
            .topics
            .iter()
            .enumerate()
            .flat_map(|(topic, found)| found.partitions.keys().map(move |&index| TopicPartition { topic, index }));
        let trial = match config.search {
            Some(_) => Some(Mutex::new(RateTrial { publish: Latencies::new()?, end_to_end: Latencies::new()? })),
            None => None,
        };
        let producers = config.producer.as_ref().map_or(0, |producer| producer.producers);
        let fixed_offset = config.consumer.as_ref().and_then(|consumer| consumer.clock_offset_seconds);
        let fixed_offset = fixed_offset.map(|seconds| (seconds * 1e9) as i64);
        let now = self.clock.now();
        let window = config.window_seconds;
        let forever = ((config.start + FOREVER_SECONDS) / window).round() * window;
        let partitions: Vec<TopicPartition> = partitions.collect();
        let positions = partitions.iter().map(|_| AtomicI64::new(-1)).collect();
        Ok(Shared {
            clock: self.clock,
            stop,
            load_start: nanoseconds(config.start),
            load_stop: nanoseconds(config.stop.unwrap_or(forever)),
            drain_nanoseconds: nanoseconds(config.drain_timeout_seconds),
            topics: config.topics.names(),
            partitions,
            // Differs between processes, and between runs of one process.
            incarnation: ((now / 1_000_000) as u32 ^ std::process::id().rotate_left(16)) & 0x00ff_ffff,
            acknowledged: RecordCount::default(),
            consumed: RecordCount::default(),
            paused: AtomicBool::new(false),
            producing: AtomicU32::new(producers),
            positions,
            parked: Mutex::default(),
            peers: Peers::new(fixed_offset),
            debts: (0..producers).map(|_| AtomicU64::new(0)).collect(),
            trial,
        })
    }

    /// Start offset of each partition, by partition id; without a consumer too, to know what the run has added.
    fn positions(&self, shared: &Shared, metadata: &Metadata) -> Result<Positions> {
        let from = self.config.consumer.as_ref().map_or(config::StartFrom::Latest, |consumer| consumer.from);
        let which = match from {
            config::StartFrom::Earliest => OffsetSpec::Earliest,
            config::StartFrom::Latest => OffsetSpec::Latest,
        };
        let mut by_leader: BTreeMap<i32, Vec<(usize, String, i32)>> = BTreeMap::new();
        for (id, partition) in shared.partitions.iter().enumerate() {
            let topic = &metadata.topics[partition.topic];
            if let Some((leader, _)) = topic.partitions.get(&partition.index) {
                by_leader.entry(*leader).or_default().push((id, topic.name.clone(), partition.index));
            }
        }
        let doing = "asking for offsets";
        // A broker that has just become leader may not know it yet.
        patiently(PATIENCE, || {
            let mut found = Positions::new();
            for (leader, wanted) in &by_leader {
                let Some(address) = metadata.brokers.get(leader) else { continue };
                let (offsets, fault) = offsets_at(&mut self.dialer.open(address)?, which, wanted)?;
                refuse(doing, fault, None)?;
                found.extend(offsets);
            }
            let is_complete = found.len() == shared.partitions.len();
            if is_complete { Ok(found) } else { Err(Error::Protocol(doing)) }
        })
    }

    /// Requests a new producer id; retried for up to `PATIENCE`, as a broker that has just started delays the first.
    fn producer_id(&self) -> Result<(i64, i16)> {
        patiently(PATIENCE, || admin::producer_id(&mut self.dialer.open_any(self.bootstrap.iter())?))
    }
}
