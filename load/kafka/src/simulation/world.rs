//! Discrete event simulation of producers, consumers, connections and brokers, driven by one seed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::actor::{Actor, Left};
use super::cluster::{Cluster, Sessions};
use super::pipe::SharedPipe;
use super::plan::{Fault, Plan};
use super::random::Random;
use crate::admin::{Metadata, OffsetSpec, Topic};
use crate::consumer::PartitionRead;
use crate::error::Error;
use crate::hot::background::{Task, Update};
use crate::producer::Produced;
use crate::security::Transport;
use crate::session::Address;
use crate::shared::Shared;
use crate::wire::produce;

/// Minimum interval between two turns of an actor.
const TURN_NANOSECONDS: u64 = 20_000;
/// Interval at which a waiting fetch request checks for new data.
const POLL_NANOSECONDS: u64 = 5_000_000;
const MILLISECOND: u64 = 1_000_000;

enum Event {
    /// Turn of this actor with this number; ignored when another has been scheduled since.
    Turn(usize, u64),
    /// The broker receives what was written on a connection.
    TakeIn(usize),
    /// The broker processes a request; a fetch may wait for data until this time.
    Act(usize, Vec<u8>, u64),
    /// A response arrives at the client.
    Arrive(usize, Vec<u8>),
    /// The connection is readable for the client.
    Readable(usize),
    /// A background task of an actor is done.
    Done(usize, Update),
    Fault(Fault),
    /// A partition gets this leader after a time without one.
    Lead(usize, i32),
}

struct Connection {
    actor: usize,
    broker: i32,
    pipe: SharedPipe,
    received: Vec<u8>,
    is_taken_in: bool,
    /// Time of the last request's processing; requests are processed and answered in order.
    acted_at: u64,
    answered_at: u64,
    sessions: Sessions,
}

/// State of one simulation: actors, cluster, connections and the event queue.
pub(super) struct World {
    pub(super) plan: Plan,
    pub(super) shared: Arc<Shared>,
    pub(super) cluster: Cluster,
    pub(super) actors: Vec<Actor>,
    pub(super) produced: Vec<Produced>,
    pub(super) read: Vec<PartitionRead>,
    now: &'static AtomicU64,
    random: Random,
    events: BTreeMap<(u64, u64), Event>,
    count: u64,
    connections: Vec<Connection>,
    /// By actor: its newest connection on which a request was processed.
    newest_acted: Vec<usize>,
    silent_until: u64,
    calm_at: u64,
    next_producer_id: i64,
}

impl World {
    pub(super) fn new(plan: Plan, seed: u64, shared: Arc<Shared>, cluster: Cluster, now: &'static AtomicU64) -> Self {
        let start = shared.load_start;
        let calm_at = start + plan.faults.last().map_or(0, |(at, _)| *at);
        let mut world = Self {
            shared,
            cluster,
            actors: Vec::new(),
            produced: Vec::new(),
            read: Vec::new(),
            now,
            random: Random::new(!seed),
            events: BTreeMap::new(),
            count: 0,
            connections: Vec::new(),
            newest_acted: vec![0; (plan.producers + plan.consumers) as usize],
            silent_until: 0,
            calm_at,
            next_producer_id: 1_000,
            plan,
        };
        for at in 0..world.plan.faults.len() {
            let (after, fault) = world.plan.faults[at];
            world.plan_event(start + after, Event::Fault(fault));
        }
        world
    }

    /// Current cluster metadata.
    pub(super) fn metadata(&self) -> Metadata {
        let topics = self.cluster.topics.iter().enumerate().map(|(topic, name)| {
            let of_it = self.cluster.partitions.iter().filter(|log| log.topic == topic);
            let partitions = of_it.map(|log| (log.index, (log.leader.unwrap_or(-1), 3))).collect();
            Topic { name: name.clone(), error: 0, partitions }
        });
        let brokers = (1..=self.plan.brokers).map(|id| (id, address_of(id))).collect();
        Metadata { brokers, controller: 1, topics: topics.collect() }
    }

    /// Allocates a new producer id, with epoch 0.
    pub(super) fn producer_id(&mut self) -> (i64, i16) {
        self.next_producer_id += 1;
        (self.next_producer_id, 0)
    }

    /// Runs events until all actors are done; panics when they exceed the time limit.
    pub(super) fn run(&mut self) {
        let begun = self.moment();
        for actor in 0..self.actors.len() {
            self.plan_event(begun, Event::Turn(actor, 0));
        }
        let limit = self.shared.load_stop.max(self.calm_at) + 2 * self.plan.drain_nanoseconds;
        while self.actors.iter().any(|actor| !actor.is_done()) {
            let ((moment, _), event) = self.events.pop_first().expect("an actor has a turn");
            assert!(moment < limit, "it does not end");
            self.now.store(moment.max(self.moment()), Ordering::Relaxed);
            self.happen(event);
        }
    }

    fn moment(&self) -> u64 {
        self.now.load(Ordering::Relaxed)
    }

    fn plan_event(&mut self, moment: u64, event: Event) {
        self.count += 1;
        self.events.insert((moment, self.count), event);
    }

    fn latency(&mut self) -> u64 {
        let (low, high) = self.plan.latency_nanoseconds;
        self.random.between(low, high)
    }

    fn happen(&mut self, event: Event) {
        let now = self.moment();
        match event {
            Event::Turn(actor, number) => {
                if self.actors[actor].turn == number {
                    self.take_turn(actor, now);
                }
            }
            Event::TakeIn(connection) => self.take_in(connection, now),
            Event::Act(connection, request, until) => self.act(connection, request, until, now),
            Event::Arrive(connection, answer) => {
                self.connections[connection].pipe.lock().to_client.extend(answer);
                self.readable(connection);
            }
            Event::Readable(connection) => self.readable(connection),
            Event::Done(actor, update) => {
                self.actors[actor].tasks.send(update);
                self.turn_at(actor, now);
            }
            Event::Fault(fault) => self.go_wrong(fault, now),
            Event::Lead(partition, leader) => self.cluster.partitions[partition].leader = Some(leader),
        }
    }

    fn turn_at(&mut self, actor: usize, moment: u64) {
        self.actors[actor].turn += 1;
        let number = self.actors[actor].turn;
        self.plan_event(moment, Event::Turn(actor, number));
    }

    fn take_turn(&mut self, actor: usize, now: u64) {
        match self.actors[actor].take_turn(now) {
            Some(wait) => self.turn_at(actor, now + wait.max(TURN_NANOSECONDS)),
            None => match self.actors[actor].finish() {
                Some(Left::Produced(produced)) => self.produced.push(produced),
                Some(Left::Read(read)) => self.read.extend(read),
                None => {}
            },
        }
        self.look_after(actor, now);
    }

    /// Schedules delivery of what an actor has written, and executes the tasks it has requested.
    fn look_after(&mut self, actor: usize, now: u64) {
        for at in 0..self.connections.len() {
            let found = &self.connections[at];
            if found.actor == actor && !found.is_taken_in && !found.pipe.lock().to_broker.is_empty() {
                self.connections[at].is_taken_in = true;
                let moment = now + self.latency();
                self.plan_event(moment, Event::TakeIn(at));
            }
        }
        while let Ok(task) = self.actors[actor].requested.try_recv() {
            self.run_task(actor, &task, now);
        }
    }

    fn run_task(&mut self, actor: usize, task: &Task, now: u64) {
        let moment = now + self.latency() * self.random.between(1, 5);
        let is_well = now > self.calm_at || self.random.per_mille(850);
        let update = if is_well { self.done(actor, task) } else { task.failed(Error::Protocol("simulation")) };
        self.plan_event(moment, Event::Done(actor, update));
    }

    fn done(&mut self, actor: usize, task: &Task) -> Update {
        match task {
            Task::Connect(broker, _) => {
                let pipe = SharedPipe::new(self.plan.room_bytes, self.plan.piece_bytes);
                let end = Transport::Simulated(pipe.client_end());
                self.connections.push(Connection {
                    actor,
                    broker: *broker,
                    pipe,
                    received: Vec::new(),
                    is_taken_in: false,
                    acted_at: 0,
                    answered_at: 0,
                    sessions: Sessions::default(),
                });
                Update::Connected(*broker, Ok((end, produce::VERSIONS.1)))
            }
            Task::Metadata(_) => Update::Metadata(Ok(self.metadata())),
            Task::ProducerId(_) => Update::ProducerId(Ok(self.producer_id())),
            Task::Offsets(which, wanted) => {
                let ids = wanted.iter().flat_map(|(_, partitions)| partitions).map(|(id, _, _)| *id);
                let offset = |id: usize| if *which == OffsetSpec::Latest { self.cluster.partitions[id].end } else { 0 };
                Update::Offsets(*which, ids.map(|id| (id, offset(id))).collect())
            }
        }
    }

    fn take_in(&mut self, connection: usize, now: u64) {
        let found = &mut self.connections[connection];
        found.is_taken_in = false;
        let mut pipe = found.pipe.lock();
        found.received.append(&mut pipe.to_broker);
        let wants_room = std::mem::take(&mut pipe.wants_room) && !pipe.is_reset && !pipe.is_closed;
        drop(pipe);
        let (actor, broker) = (found.actor, found.broker);
        while let Some(request) = self.connections[connection].request() {
            let moment = now.max(self.connections[connection].acted_at) + self.latency();
            self.connections[connection].acted_at = moment;
            self.plan_event(moment, Event::Act(connection, request, u64::MAX));
        }
        if wants_room {
            self.actors[actor].attend(broker, false, true);
            self.turn_at(actor, now);
            self.look_after(actor, now);
        }
    }

    fn act(&mut self, connection: usize, request: Vec<u8>, until: u64, now: u64) {
        let found = &mut self.connections[connection];
        let is_gone = found.pipe.lock().is_reset || found.pipe.lock().is_closed;
        if now < self.silent_until {
            let moment = self.silent_until;
            self.plan_event(moment, Event::Act(connection, request, until));
            return;
        }
        // Requests that arrived before a connection was lost may still be processed, but not after requests on a newer
        // connection: no client would expect that order.
        if is_gone && (self.random.per_mille(500) || self.newest_acted[found.actor] > connection) {
            return;
        }
        self.newest_acted[found.actor] = connection.max(self.newest_acted[found.actor]);
        let api = i16::from_be_bytes([request[0], request[1]]);
        let answer = if api == produce::API {
            self.cluster.produce(found.broker, &request, &mut self.random)
        } else {
            let until = if until == u64::MAX { now + 50 * MILLISECOND } else { until };
            match self.cluster.fetch(found.broker, &mut found.sessions, &request, now < until) {
                Some(answer) => answer,
                None => {
                    self.plan_event((now + POLL_NANOSECONDS).min(until), Event::Act(connection, request, until));
                    return;
                }
            }
        };
        let moment = now.max(self.connections[connection].answered_at) + self.latency();
        self.connections[connection].answered_at = moment;
        self.plan_event(moment, Event::Arrive(connection, answer));
    }

    fn readable(&mut self, connection: usize) {
        let now = self.moment();
        let found = &self.connections[connection];
        let (actor, broker) = (found.actor, found.broker);
        if found.pipe.lock().is_closed {
            return;
        }
        self.actors[actor].attend(broker, true, false);
        let pipe = self.connections[connection].pipe.lock();
        let is_left = !pipe.to_client.is_empty() && !pipe.is_closed;
        drop(pipe);
        if is_left {
            self.plan_event(now + TURN_NANOSECONDS, Event::Readable(connection));
        }
        self.turn_at(actor, now);
        self.look_after(actor, now);
    }

    fn go_wrong(&mut self, fault: Fault, now: u64) {
        match fault {
            Fault::Reset => {
                let broker = self.random.between(1, self.plan.brokers as u64) as i32;
                let all = self.random.per_mille(300);
                for at in 0..self.connections.len() {
                    let found = &self.connections[at];
                    if (all || found.broker == broker) && !found.pipe.lock().is_closed {
                        found.pipe.lock().is_reset = true;
                        self.plan_event(now, Event::Readable(at));
                    }
                }
            }
            Fault::Election => {
                let at = (self.random.next() % self.cluster.partitions.len() as u64) as usize;
                let leader = self.random.between(1, self.plan.brokers as u64) as i32;
                if self.random.per_mille(400) {
                    self.cluster.partitions[at].leader = None;
                    let later = now + self.random.between(1, 400) * MILLISECOND;
                    self.plan_event(later, Event::Lead(at, leader));
                } else {
                    self.cluster.partitions[at].leader = Some(leader);
                }
            }
            Fault::Truncation => {
                let at = (self.random.next() % self.cluster.partitions.len() as u64) as usize;
                let batches = self.random.between(1, 4) as usize;
                self.cluster.partitions[at].truncate(batches);
            }
            Fault::Silence => self.silent_until = now + self.random.between(1, 1_500) * MILLISECOND,
        }
    }
}

impl Connection {
    /// Removes and returns the next complete request, without its length field; None until one is complete.
    fn request(&mut self) -> Option<Vec<u8>> {
        let length = i32::from_be_bytes(*self.received.first_chunk::<4>()?) as usize;
        if self.received.len() < 4 + length {
            return None;
        }
        let rest = self.received.split_off(4 + length);
        let request = std::mem::replace(&mut self.received, rest);
        Some(request[4..].to_vec())
    }
}

/// Address of a simulated broker.
pub(super) fn address_of(broker: i32) -> Address {
    Address { host: format!("broker-{broker}"), port: 9092 }
}
