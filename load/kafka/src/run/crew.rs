//! The threads of a run: started together, joined together.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Receiver;
use std::thread::JoinHandle;

use cliffwatch_measure::schedule::Step;
use cliffwatch_measure::windows::Windows;

use super::{Positions, Run};
use crate::admin::Metadata;
use crate::clocks::wall::Steps;
use crate::clocks::{self, Reading, Writing};
use crate::conduct::Conductor;
use crate::config;
use crate::consumer::group::Membership;
use crate::consumer::{self, Consumer, Read};
use crate::error::{Error, Result};
use crate::hot::errands::{Errands, News};
use crate::hot::poll::Poller;
use crate::hot::tell::Teller;
use crate::producer::pace::Pace;
use crate::producer::{self, Producer, Report};
use crate::shared::Shared;
use crate::trips::Trips;
use crate::wire::fetch::Terms;

/// What starts the threads of a run.
pub(super) struct Crew<'a> {
    run: &'a Run,
    shared: &'a Arc<Shared>,
    metadata: &'a Metadata,
    teller: &'a Teller,
    windows: &'a mut Windows,
    threads: Threads,
    /// What reaches each producer.
    reached: Vec<Errands>,
}

/// The threads of a run.
#[derive(Default)]
pub(super) struct Threads {
    producers: Vec<JoinHandle<Result<Report>>>,
    consumers: Vec<JoinHandle<Result<Vec<Read>>>>,
    /// They end with the load, or once they are told that nothing is left to read.
    others: Vec<JoinHandle<()>>,
    /// Set once nothing is left to read.
    ended: Arc<AtomicBool>,
}

impl<'a> Crew<'a> {
    pub(super) fn new(
        run: &'a Run,
        shared: &'a Arc<Shared>,
        metadata: &'a Metadata,
        teller: &'a Teller,
        windows: &'a mut Windows,
    ) -> Self {
        Self { run, shared, metadata, teller, windows, threads: Threads::default(), reached: Vec::new() }
    }

    pub(super) fn into_threads(self) -> Threads {
        self.threads
    }

    fn errands(&self) -> Result<(Errands, Receiver<News>, Poller)> {
        let fault = |source| Error::Connection { doing: "starting".to_owned(), source };
        let poller = Poller::new().map_err(fault)?;
        let topics = Arc::new(self.shared.topics.clone());
        let (dialer, bootstrap) = (Arc::clone(&self.run.dialer), Arc::clone(&self.run.bootstrap));
        let (errands, news) = Errands::new(dialer, bootstrap, topics, poller.waker());
        Ok((errands, news, poller))
    }

    pub(super) fn start_producers(&mut self) -> Result<()> {
        let Some(settings) = &self.run.config.producer else { return Ok(()) };
        let settings = Arc::new(settings.clone());
        let steps = self.steps(&settings);
        for place in 0..settings.producers {
            let (errands, news, poller) = self.errands()?;
            self.reached.push(errands.clone());
            let producer_id = if settings.is_idempotent() { Some(self.run.producer_id()?) } else { None };
            let ratio = settings.catch_up_ratio;
            let order = producer::Order {
                place,
                shared: Arc::clone(self.shared),
                pace: Pace::new(self.shared.load_start, &steps, place, settings.producers, ratio)?,
                settings: Arc::clone(&settings),
                recorder: self.windows.recorder()?,
                teller: self.teller.clone(),
                metadata: self.metadata.clone(),
                producer_id,
                errands,
                news,
                poller,
            };
            let producer =
                Producer::new(order).ok_or_else(|| Error::Config("producer.record_sizes: too small".to_owned()))?;
            self.threads.producers.push(spawn("producer", move || producer.run())?);
        }
        Ok(())
    }

    /// The schedule of all producers together; empty for no schedule at all.
    fn steps(&self, settings: &config::Producer) -> Vec<Step> {
        if self.run.config.search.is_some() {
            // The conductor sets rates, the first of them at the start.
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
        let terms = Terms {
            client_id: self.run.config.client_id.clone(),
            max_wait_milliseconds: (settings.fetch_max_wait_seconds * 1e3) as i32,
            min_bytes: settings.fetch_min_bytes,
            max_bytes: settings.fetch_max_bytes,
            partition_max_bytes: settings.partition_max_bytes,
        };
        for place in 0..settings.consumers {
            let (errands, news, poller) = self.errands()?;
            // A member of a group is told what is its own.
            let is_dealt_out = settings.group.is_none();
            let is_ours = |partition: &usize| is_dealt_out && partition % settings.consumers as usize == place as usize;
            if let Some(group) = &settings.group {
                let membership = Membership {
                    group: group.clone(),
                    dialer: Arc::clone(&self.run.dialer),
                    bootstrap: Arc::clone(&self.run.bootstrap),
                    shared: Arc::clone(self.shared),
                    consumer: errands.clone(),
                    initial: positions.clone(),
                    teller: self.teller.clone(),
                    ended: Arc::clone(&self.threads.ended),
                };
                self.threads.others.push(spawn("membership", move || membership.run())?);
            }
            let order = consumer::Order {
                place,
                shared: Arc::clone(self.shared),
                terms: terms.clone(),
                reads_own: self.run.config.producer.is_some(),
                positions: positions.iter().filter(|(at, _)| is_ours(at)).map(|(at, offset)| (*at, *offset)).collect(),
                recorder: self.windows.recorder()?,
                teller: self.teller.clone(),
                metadata: self.metadata.clone(),
                errands,
                news,
                poller,
            };
            let consumer = Consumer::new(order);
            self.threads.consumers.push(spawn("consumer", move || consumer.run())?);
        }
        Ok(())
    }

    /// What conducts, and what measures beside the load.
    pub(super) fn start_others(&mut self) -> Result<()> {
        let conductor = Conductor {
            shared: Arc::clone(self.shared),
            config: Arc::clone(&self.run.config),
            producers: std::mem::take(&mut self.reached),
            recorder: self.windows.recorder()?,
            teller: self.teller.clone(),
            steps: RefCell::new(Steps::default()),
        };
        self.threads.others.push(spawn("conductor", move || conductor.run())?);
        let trips = Trips {
            brokers: self.metadata.brokers.values().cloned().collect(),
            shared: Arc::clone(self.shared),
            recorder: self.windows.recorder()?,
            ended: Arc::clone(&self.threads.ended),
        };
        self.threads.others.push(spawn("round-trips", move || trips.run())?);
        // Both sides in one process have one clock.
        match (&self.run.config.producer, &self.run.config.consumer) {
            (Some(_), None) => {
                let writing = Writing(self.clock_place());
                self.threads.others.push(spawn("clock", move || writing.run())?);
            }
            (None, Some(_)) if self.shared.peers.are_estimated() => {
                let reading = Reading { place: self.clock_place(), recorder: self.windows.recorder()? };
                self.threads.others.push(spawn("clock", move || reading.run())?);
            }
            _ => {}
        }
        Ok(())
    }

    fn clock_place(&self) -> clocks::Place {
        clocks::Place {
            dialer: Arc::clone(&self.run.dialer),
            bootstrap: Arc::clone(&self.run.bootstrap),
            shared: Arc::clone(self.shared),
            teller: self.teller.clone(),
            ended: Arc::clone(&self.threads.ended),
        }
    }
}

fn spawn<T: Send + 'static>(name: &str, work: impl FnOnce() -> T + Send + 'static) -> Result<JoinHandle<T>> {
    let fault = |source| Error::Connection { doing: "starting a thread".to_owned(), source };
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(fault)
}

impl Threads {
    /// Waits for all; what they found.
    pub(super) fn join(self) -> Result<(Vec<Report>, Vec<Read>)> {
        let died = |_| Error::Config("a thread of the engine died; its last words are on standard error".to_owned());
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
