//! Execution of a load: recovers segments, starts the threads that append and read, prints windows, verifies records.

use crate::claim::{claim, remove};
use crate::config::{Config, Layout, Retention};
use crate::error::{Error, Result};
use crate::figures::NAMES;
use crate::files::{Failure, FileTask, FileThreads};
use crate::log::{AppendLog, LogLayout};
use crate::memory::{Budget, queued_tasks};
use crate::readers::{self, Reader};
use crate::recover::{append_log, directories, recover};
use crate::segments::{Catalogue, OFFSETS, list, make_directory, sync_directory};
use crate::shard::{Shard, ShardOutcome, ShardPlan, Work};
use crate::verify::{Extent, verify};
use cliffwatch_measure::clock::{Clock, nanoseconds};
use cliffwatch_measure::output::Output;
use cliffwatch_measure::recorder::Recorder;
use cliffwatch_measure::schedule::{Schedule, Step};
use cliffwatch_measure::stop::Stop;
use cliffwatch_measure::windows::{Windows, begin};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Rate in batches per second at which a whole fill is due at once.
const AT_ONCE_PER_SECOND: f64 = 1e12;

/// Load that is prepared to run: directory claimed, logs recovered, budget checked.
struct StorageLoad {
    config: Arc<Config>,
    clock: Clock,
    stop: Stop,
    failure: Failure,
    file_threads: FileThreads,
    shapes: Vec<LogLayout>,
    catalogue: Arc<Catalogue>,
    budget: Budget,
    logs: Vec<Vec<AppendLog>>,
}

/// Runs the load of `config` and prints windows on `output`, until its end or until a stop is requested. Removes its
/// files if the volume becomes full, unless `keep_files` is set.
pub(crate) fn load(config: Config, clock: Clock, stop: &Stop, output: &Output) -> Result<()> {
    let config = Arc::new(config);
    let load = StorageLoad::prepare(Arc::clone(&config), clock, stop)?;
    let result = load.make(output);
    if matches!(result, Err(Error::Full { .. })) && !config.keep_files {
        remove(&config)?;
    }
    result
}

/// Writes the share of the retention that has to exist before the load begins. Removes its files if the volume becomes
/// full, unless `keep_files` is set.
pub(crate) fn fill(config: Config, clock: Clock, stop: &Stop) -> Result<()> {
    let config = Arc::new(config);
    let result = StorageLoad::prepare(Arc::clone(&config), clock, stop).and_then(StorageLoad::fill);
    if matches!(result, Err(Error::Full { .. })) && !config.keep_files {
        remove(&config)?;
    }
    result
}

impl StorageLoad {
    /// Claims the directory, recovers the segments of earlier engines and checks the budget; fails if the load cannot
    /// run.
    fn prepare(config: Arc<Config>, clock: Clock, stop: &Stop) -> Result<Self> {
        claim(&config)?;
        let failure = Failure::default();
        let file_threads = FileThreads::start(config.log.background_threads, queued_tasks(&config), &failure)?;
        let log_shape = LogLayout::of_log(&config, 0);
        let (mut segments, mut sequences) = (Vec::new(), Vec::new());
        for number in 0..config.logs() {
            let partitions: Vec<u32> = match config.log.layout {
                Layout::Partitioned => vec![number],
                Layout::Shared => (0..config.partitions).collect(),
            };
            let (found, next) = recover(&log_shape, number, &partitions, config.fixed_record())?;
            segments.push(found);
            sequences.push(next);
        }
        sync_directory(&log_shape.parent)?;
        let own_bytes = segments.iter().map(|segments| segments.full_bytes).sum();
        let budget = Budget::count(&config, own_bytes)?;
        let catalogue = Arc::new(Catalogue::new(directories(&log_shape, config.logs()), segments));
        let mut shapes = vec![LogLayout::of_log(&config, budget.retention_bytes / u64::from(config.logs()))];
        let mut logs = shared_out(&config, &catalogue, sequences);
        if let Some(journal) = LogLayout::of_journal(&config) {
            let entries = logs[0].remove(0);
            let first = open_journal(&journal, &entries)?;
            logs[0] = vec![first, entries];
            shapes.insert(0, journal);
        }
        Ok(Self { config, clock, stop: stop.clone(), failure, file_threads, shapes, catalogue, budget, logs })
    }

    fn make(mut self, output: &Output) -> Result<()> {
        let config = Arc::clone(&self.config);
        let planned = nanoseconds(config.start);
        let length = nanoseconds(config.window_seconds);
        let is_first = config.begun.is_none_or(|begun| nanoseconds(begun) == planned);
        let times = (planned, nanoseconds(config.stop));
        let (start, end) = begin(output, &self.clock, length, times, is_first)?;
        let mut windows = Windows::new(NAMES, self.clock, length, start, end, output.clone())?;
        output.event("storage", self.facts())?;
        let begun = if is_first { start } else { config.begun.map_or(start, nanoseconds) };
        let mut shards = Vec::new();
        for logs in std::mem::take(&mut self.logs) {
            let schedule = Schedule::new(begun, &self.steps(logs.len()))?;
            let schedule = schedule.with_producers(config.producers, shards.len() as u64);
            let plan = self.plan(logs, schedule, start, Work::Until(end), windows.recorder()?);
            shards.push(spawn(plan, Some(output.clone()))?);
        }
        let over = Arc::new(AtomicBool::new(false));
        let readers = self.readers(&mut windows, start, &over)?;
        let attendant = self.attend(output, &over)?;
        let mut outcomes = Vec::new();
        let printed = windows.run(&self.stop, || {
            outcomes = shards.into_iter().filter_map(|shard| shard.join().ok().flatten()).collect();
            over.store(true, Ordering::Release);
            readers.into_iter().for_each(|reader| drop(reader.join()));
        });
        let _ = attendant.join();
        self.file_threads.drain();
        if let Some(error) = self.failure.take() {
            return Err(error);
        }
        printed?;
        let unwritten: u64 = outcomes.iter().map(|outcome| outcome.unwritten).sum();
        output.event("load_ended", json!({"unwritten_records": unwritten * u64::from(config.batch_records)}))?;
        self.read_back(output)
    }

    fn fill(mut self) -> Result<()> {
        let start = self.clock.now();
        let steps = [Step { after_seconds: 0.0, per_second: AT_ONCE_PER_SECOND }];
        let per_log = (self.budget.retention_bytes as f64 * self.config.fill) as u64 / u64::from(self.config.logs());
        let mut windows =
            Windows::new(NAMES, self.clock, 1, start, u64::MAX, Output::new(std::io::sink(), self.clock))?;
        let mut shards = Vec::new();
        for logs in std::mem::take(&mut self.logs) {
            let there =
                logs.iter().map(|log| log.catalogue.segments(log.number as usize).full_bytes).min().unwrap_or(0);
            let batches = per_log.saturating_sub(there) / self.config.batch_bytes();
            let main = if self.shapes.len() > 1 { 1 } else { logs.len() as u64 };
            let schedule = Schedule::new(start, &steps)?;
            let mut plan = self.plan(logs, schedule, start, Work::Batches(batches * main), windows.recorder()?);
            plan.shapes.iter_mut().for_each(|shape| (shape.coalesce, shape.sync_on_roll) = (true, true));
            shards.push(spawn(plan, None)?);
        }
        shards.into_iter().for_each(|shard| drop(shard.join()));
        self.file_threads.drain();
        self.failure.take().map_or(Ok(()), Err)
    }

    fn plan(&self, logs: Vec<AppendLog>, schedule: Schedule, start: u64, work: Work, recorder: Recorder) -> ShardPlan {
        ShardPlan {
            config: Arc::clone(&self.config),
            schedule,
            start,
            work,
            logs,
            shapes: self.shapes.clone(),
            buffers: self.budget.buffers,
            clock: self.clock,
            recorder,
            file_threads: self.file_threads.clone(),
            failure: self.failure.clone(),
            stop: self.stop.clone(),
        }
    }

    /// Returns the rate of a thread with this number of logs, as steps in batches per second.
    fn steps(&self, logs: usize) -> Vec<Step> {
        let all = if self.shapes.len() > 1 { logs } else { self.config.logs() as usize };
        let share = logs as f64 / all as f64 / f64::from(self.config.batch_records);
        let scaled = |step: &Step| Step { after_seconds: step.after_seconds, per_second: step.per_second * share };
        self.config.rate.iter().map(scaled).collect()
    }

    fn readers(&self, windows: &mut Windows, start: u64, over: &Arc<AtomicBool>) -> Result<Vec<JoinHandle<()>>> {
        let mut handles = Vec::new();
        for kind in readers::kinds(&self.config) {
            let reader = Reader {
                kind,
                catalogue: Arc::clone(&self.catalogue),
                config: Arc::clone(&self.config),
                clock: self.clock,
                start,
                recorder: windows.recorder()?,
                over: Arc::clone(over),
            };
            let (failure, stop) = (self.failure.clone(), self.stop.clone());
            let body = move || {
                if let Err(error) = reader.run() {
                    failure.report(error);
                    stop.request();
                }
            };
            handles.push(thread("read", body)?);
        }
        Ok(handles)
    }

    /// Starts a thread for occasional tasks: verifying a sample on SIGUSR1, discarding free space, writing the offset
    /// checkpoint, and requesting a stop after a failure.
    fn attend(&self, output: &Output, over: &Arc<AtomicBool>) -> Result<JoinHandle<()>> {
        let asked = Arc::new(AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGUSR1, Arc::clone(&asked))
            .map_err(Error::system("signals"))?;
        let (config, file_threads, clock) = (Arc::clone(&self.config), self.file_threads.clone(), self.clock);
        let (catalogue, output, over) = (Arc::clone(&self.catalogue), output.clone(), Arc::clone(over));
        let (failure, stop) = (self.failure.clone(), self.stop.clone());
        let every = config.trim_interval_seconds.map(nanoseconds);
        let mut trim_at = every.map_or(u64::MAX, |every| clock.now() + every);
        let checkpoint_every = config.log.offset_checkpoint_seconds.map(nanoseconds);
        let mut checkpoint_at = checkpoint_every.map_or(u64::MAX, |every| clock.now() + every);
        let checkpoint_path = self.shapes[self.shapes.len() - 1].parent.join(OFFSETS);
        thread("attend", move || {
            while !over.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(50));
                if clock.now() >= trim_at {
                    trim_at = clock.now() + every.unwrap_or(u64::MAX / 2);
                    file_threads.submit(FileTask::Trim(config.directory.clone()));
                }
                if clock.now() >= checkpoint_at {
                    checkpoint_at = clock.now() + checkpoint_every.unwrap_or(u64::MAX / 2);
                    file_threads.submit(FileTask::Replace(checkpoint_path.clone(), catalogue.offsets()));
                }
                if failure.is_reported() {
                    stop.request();
                }
                if asked.swap(false, Ordering::AcqRel) {
                    let shared = config.log.layout == Layout::Shared;
                    let report = verify(&catalogue, shared, config.fixed_record(), extent(&config));
                    let _ = match report {
                        Ok(report) => output.event("verified", json!(report)),
                        Err(error) => output.event("verification_failed", json!({"message": error.to_string()})),
                    };
                }
            }
        })
    }

    fn read_back(&self, output: &Output) -> Result<()> {
        if self.config.verify.bytes == Some(0) {
            return Ok(());
        }
        let shared = self.config.log.layout == Layout::Shared;
        let report = verify(&self.catalogue, shared, self.config.fixed_record(), extent(&self.config))?;
        output.event("verified", json!(report))?;
        if report.findings.are_clean() {
            return Ok(());
        }
        let found = report.findings;
        Err(Error::Verification(format!(
            "{} records lost, {} duplicated, {} reordered, {} corrupted, of {} read back",
            found.lost,
            found.duplicated,
            found.reordered,
            found.corrupted,
            found.intact + found.corrupted
        )))
    }

    fn facts(&self) -> serde_json::Value {
        let memory: serde_json::Map<_, _> =
            self.budget.memory.iter().map(|(what, bytes)| ((*what).to_owned(), json!(bytes))).collect();
        json!({
            "version": env!("CARGO_PKG_VERSION"),
            "io": self.config.io,
            "partitions": self.config.partitions,
            "retention_bytes": self.budget.retention_bytes,
            "retention_asked": match self.config.retention {
                Retention::Bytes(bytes) => format!("{bytes} bytes"),
                Retention::Share(share) => format!("{share} of the volume"),
            },
            "burst_limit_seconds": self.config.burst_seconds,
            "memory_bytes": self.budget.memory_bytes(),
            "memory": memory,
            "open_files": self.budget.open_files,
        })
    }
}

fn extent(config: &Config) -> Extent {
    let time = Duration::try_from_secs_f64(config.verify.seconds).unwrap_or(Duration::MAX);
    Extent { bytes: config.verify.bytes, time }
}

/// Distributes the logs over the threads: log `n` goes to thread `n` modulo the threads, so that each thread's schedule
/// assigns batches to its logs in turn.
fn shared_out(config: &Config, catalogue: &Arc<Catalogue>, sequences: Vec<Vec<u64>>) -> Vec<Vec<AppendLog>> {
    let threads = config.threads;
    let mut logs: Vec<Vec<AppendLog>> = (0..threads).map(|_| Vec::new()).collect();
    for (number, sequences) in (0..config.logs()).zip(sequences) {
        let mine = &mut logs[(number % threads) as usize];
        let stride = u64::from((config.logs() - number % threads).div_ceil(threads));
        mine.push(append_log(number, mine.len() as u64, stride, number, sequences, catalogue));
    }
    logs
}

/// Creates the journal in front of `entries`. The files of an earlier journal are deleted: its batches beyond the
/// entries are not recovered, and their sequences are assigned again.
fn open_journal(shape: &LogLayout, entries: &AppendLog) -> Result<AppendLog> {
    let directory = shape.directory(0);
    make_directory(&directory)?;
    for segment in list(&directory)? {
        let path = crate::segments::segment_path(&directory, segment.base, crate::segments::RECORDS);
        std::fs::remove_file(&path).map_err(Error::file(path, "delete it"))?;
    }
    let catalogue = Arc::new(Catalogue::new(vec![directory], vec![crate::segments::Segments::default()]));
    Ok(append_log(0, 0, 1, 0, entries.sequences.clone(), &catalogue))
}

fn spawn(plan: ShardPlan, output: Option<Output>) -> Result<JoinHandle<Option<ShardOutcome>>> {
    let (failure, stop) = (plan.failure.clone(), plan.stop.clone());
    thread("append", move || {
        let result = Shard::new(plan).and_then(|shard| {
            if let (Some(output), Some(reason)) = (output, shard.reason()) {
                output.event("io_fallback", json!({"io": shard.method(), "reason": reason}))?;
            }
            shard.run()
        });
        match result {
            Ok(outcome) => Some(outcome),
            Err(error) => {
                failure.report(error);
                stop.request();
                None
            }
        }
    })
}

fn thread<T: Send + 'static>(name: &str, body: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    std::thread::Builder::new().name(name.to_owned()).spawn(body).map_err(Error::system("starting a thread"))
}
