//! Threads of a run: started together, joined together.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use cliffwatch_measure::schedule::Step;
use cliffwatch_measure::windows::Windows;

use super::{Positions, Run};
use crate::admin::Metadata;
use crate::clocks::wall::WallClockSteps;
use crate::clocks::{ClockContext, NoteReader, NoteWriter};
use crate::config;
use crate::consumer::group::Membership;
use crate::consumer::{Consumer, ConsumerSetup, PartitionRead};
use crate::control::LoadController;
use crate::error::{Error, Result};
use crate::hot::background::BackgroundTasks;
use crate::hot::client::ClientSetup;
use crate::hot::events::EventReporter;
use crate::hot::poll::Poller;
use crate::producer::pace::Pace;
use crate::producer::{Produced, Producer, ProducerSetup};
use crate::round_trip::RoundTripProbe;
use crate::shared::Shared;
use crate::wire::fetch::FetchTerms;

/// Starts the threads of a run.
pub(super) struct ThreadStarter<'a> {
    run: &'a Run,
    shared: &'a Arc<Shared>,
    metadata: &'a Metadata,
    events: &'a EventReporter,
    windows: &'a mut Windows,
    threads: RunThreads,
    /// Channels to the producers, for the load controller.
    producer_tasks: Vec<BackgroundTasks>,
}

/// Thread handles of a run.
#[derive(Default)]
pub(super) struct RunThreads {
    producers: Vec<JoinHandle<Result<Produced>>>,
    consumers: Vec<JoinHandle<Result<Vec<PartitionRead>>>>,
    /// Control, membership, probe and clock threads, which end with the load or once nothing is left to read.
    others: Vec<JoinHandle<()>>,
    /// Set once producers and consumers have ended.
    ended: Arc<AtomicBool>,
}

impl<'a> ThreadStarter<'a> {
    pub(super) fn new(
        run: &'a Run,
        shared: &'a Arc<Shared>,
        metadata: &'a Metadata,
        events: &'a EventReporter,
        windows: &'a mut Windows,
    ) -> Self {
        Self { run, shared, metadata, events, windows, threads: RunThreads::default(), producer_tasks: Vec::new() }
    }

    pub(super) fn into_threads(self) -> RunThreads {
        self.threads
    }

    fn client(&mut self) -> Result<ClientSetup> {
        let fault = |source| Error::Connection { doing: "starting".to_owned(), source };
        let poller = Poller::new().map_err(fault)?;
        let topics = Arc::new(self.shared.topics.clone());
        let (dialer, bootstrap) = (Arc::clone(&self.run.dialer), Arc::clone(&self.run.bootstrap));
        let (tasks, updates) = BackgroundTasks::new(dialer, bootstrap, topics, poller.waker());
        Ok(ClientSetup {
            shared: Arc::clone(self.shared),
            recorder: self.windows.recorder()?,
            events: self.events.clone(),
            metadata: self.metadata.clone(),
            tasks,
            updates,
            poller,
        })
    }

    pub(super) fn start_producers(&mut self) -> Result<()> {
        let Some(settings) = &self.run.config.producer else { return Ok(()) };
        let settings = Arc::new(settings.clone());
        let steps = self.steps(&settings);
        for number in 0..settings.producers {
            let client = self.client()?;
            self.producer_tasks.push(client.tasks.clone());
            let producer_id = if settings.is_idempotent() { Some(self.run.producer_id()?) } else { None };
            let ratio = settings.catch_up_ratio;
            let setup = ProducerSetup {
                number,
                client,
                pace: Pace::new(self.shared.load_start, &steps, number, settings.producers, ratio)?,
                settings: Arc::clone(&settings),
                producer_id,
            };
            let producer =
                Producer::new(setup).ok_or_else(|| Error::Config("producer.record_sizes: too small".to_owned()))?;
            self.threads.producers.push(spawn("producer", move || producer.run())?);
        }
        Ok(())
    }

    /// Rate schedule of all producers together; empty without a target rate.
    fn steps(&self, settings: &config::ProducerSettings) -> Vec<Step> {
        if self.run.config.search.is_some() {
            // The load controller sets the rates, the first of them at the start.
            return vec![Step { after_seconds: 0.0, per_second: 0.0 }];
        }
        let Some(rate) = settings.rate else { return Vec::new() };
        let first = Step { after_seconds: 0.0, per_second: rate };
        let later = settings.steps.iter().map(|step| Step { after_seconds: step.after_seconds, per_second: step.rate });
        let mut steps = vec![first];
        for step in later {
            steps.retain(|before| before.after_seconds < step.after_seconds);
            steps.push(step);
        }
        steps
    }

    pub(super) fn start_consumers(&mut self, positions: &Positions) -> Result<()> {
        let Some(settings) = &self.run.config.consumer else { return Ok(()) };
        let terms = FetchTerms {
            client_id: self.run.config.client_id.clone(),
            max_wait_milliseconds: (settings.fetch_max_wait_seconds * 1e3) as i32,
            min_bytes: settings.fetch_min_bytes,
            max_bytes: settings.fetch_max_bytes,
            partition_max_bytes: settings.partition_max_bytes,
        };
        for number in 0..settings.consumers {
            let client = self.client()?;
            // A member of a consumer group gets its partitions by assignment.
            let is_dealt_out = settings.group.is_none();
            let is_ours = |id: &usize| is_dealt_out && id % settings.consumers as usize == number as usize;
            if let Some(group) = &settings.group {
                let membership = Membership {
                    group: group.clone(),
                    dialer: Arc::clone(&self.run.dialer),
                    bootstrap: Arc::clone(&self.run.bootstrap),
                    shared: Arc::clone(self.shared),
                    consumer: client.tasks.clone(),
                    initial: positions.clone(),
                    events: self.events.clone(),
                    ended: Arc::clone(&self.threads.ended),
                };
                self.threads.others.push(spawn("membership", move || membership.run())?);
            }
            let setup = ConsumerSetup {
                number,
                client,
                terms: terms.clone(),
                reads_own: self.run.config.producer.is_some(),
                positions: positions.iter().filter(|(id, _)| is_ours(id)).map(|(id, offset)| (*id, *offset)).collect(),
            };
            let consumer = Consumer::new(setup);
            self.threads.consumers.push(spawn("consumer", move || consumer.run())?);
        }
        Ok(())
    }

    /// Starts the load controller, the round-trip probe and, where needed, the clock comparison.
    pub(super) fn start_others(&mut self) -> Result<()> {
        let controller = LoadController {
            shared: Arc::clone(self.shared),
            config: Arc::clone(&self.run.config),
            producers: std::mem::take(&mut self.producer_tasks),
            recorder: self.windows.recorder()?,
            events: self.events.clone(),
            steps: RefCell::new(WallClockSteps::default()),
        };
        self.threads.others.push(spawn("control", move || controller.run())?);
        let probe = RoundTripProbe {
            brokers: self.metadata.brokers.values().cloned().collect(),
            shared: Arc::clone(self.shared),
            recorder: self.windows.recorder()?,
            ended: Arc::clone(&self.threads.ended),
        };
        self.threads.others.push(spawn("round-trips", move || probe.run())?);
        // Producer and consumer in one process share a clock.
        match (&self.run.config.producer, &self.run.config.consumer) {
            (Some(_), None) => {
                let writer = NoteWriter(self.clock_context());
                self.threads.others.push(spawn("clock", move || writer.run())?);
            }
            (None, Some(_)) if self.shared.peers.are_estimated() => {
                let reader = NoteReader { context: self.clock_context(), recorder: self.windows.recorder()? };
                self.threads.others.push(spawn("clock", move || reader.run())?);
            }
            _ => {}
        }
        Ok(())
    }

    fn clock_context(&self) -> ClockContext {
        ClockContext {
            dialer: Arc::clone(&self.run.dialer),
            bootstrap: Arc::clone(&self.run.bootstrap),
            shared: Arc::clone(self.shared),
            events: self.events.clone(),
            ended: Arc::clone(&self.threads.ended),
        }
    }
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    let fault = |source| Error::Connection { doing: "starting a thread".to_owned(), source };
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(fault)
}

impl RunThreads {
    /// Joins all threads, blocking, and returns the results of producers and consumers.
    pub(super) fn join(self) -> Result<(Vec<Produced>, Vec<PartitionRead>)> {
        let died = |_| Error::Config("a thread of the engine panicked; its message is on standard error".to_owned());
        let mut reports = Vec::new();
        for thread in self.producers {
            reports.push(thread.join().map_err(died)??);
        }
        let mut reads = Vec::new();
        for thread in self.consumers {
            reads.extend(thread.join().map_err(died)??);
        }
        self.ended.store(true, Ordering::Release);
        for thread in self.others {
            thread.join().map_err(died)?;
        }
        Ok((reports, reads))
    }
}
