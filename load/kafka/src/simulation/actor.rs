//! Producer or consumer whose turns the simulation executes instead of a thread.

use std::sync::mpsc::Receiver;

use crate::consumer::{Consumer, PartitionRead};
use crate::hot::background::{BackgroundTasks, Task};
use crate::hot::poll::Readiness;
use crate::hot::thread::HotThread;
use crate::producer::{Produced, Producer};

/// Simulated producer or consumer.
pub(super) struct Actor {
    thread: Thread,
    /// Background tasks that it has requested.
    pub(super) requested: Receiver<Task>,
    /// Channel for the results of these tasks.
    pub(super) tasks: BackgroundTasks,
    /// Number of the pending turn; events of earlier turns are ignored.
    pub(super) turn: u64,
}

enum Thread {
    Producer(Box<Producer>),
    Consumer(Box<Consumer>),
    Done,
}

/// Final result of an actor.
pub(super) enum Left {
    Produced(Produced),
    Read(Vec<PartitionRead>),
}

impl Actor {
    pub(super) fn producer(producer: Producer, requested: Receiver<Task>, tasks: BackgroundTasks) -> Self {
        Self { thread: Thread::Producer(Box::new(producer)), requested, tasks, turn: 0 }
    }

    pub(super) fn consumer(consumer: Consumer, requested: Receiver<Task>, tasks: BackgroundTasks) -> Self {
        Self { thread: Thread::Consumer(Box::new(consumer)), requested, tasks, turn: 0 }
    }

    pub(super) fn is_done(&self) -> bool {
        matches!(self.thread, Thread::Done)
    }

    /// Processes updates and takes one turn; returns the nanoseconds until the next, None after the last.
    pub(super) fn take_turn(&mut self, now: u64) -> Option<u64> {
        fn turn(thread: &mut impl HotThread, now: u64) -> Option<u64> {
            thread.receive_updates(now);
            thread.turn(now)
        }
        match &mut self.thread {
            Thread::Producer(producer) => turn(&mut **producer, now),
            Thread::Consumer(consumer) => turn(&mut **consumer, now),
            Thread::Done => None,
        }
    }

    /// Reports readiness of the connection to a broker.
    pub(super) fn attend(&mut self, broker: i32, readable: bool, writable: bool) {
        fn attend(thread: &mut impl HotThread, broker: i32, readable: bool, writable: bool) {
            let token = thread.client().brokers.iter().position(|found| found.id == broker);
            if let Some(token) = token {
                thread.attend(Readiness { token, readable, writable });
            }
        }
        match &mut self.thread {
            Thread::Producer(producer) => attend(&mut **producer, broker, readable, writable),
            Thread::Consumer(consumer) => attend(&mut **consumer, broker, readable, writable),
            Thread::Done => {}
        }
    }

    /// Ends the actor after its last turn and returns its result; None when called again.
    pub(super) fn finish(&mut self) -> Option<Left> {
        match std::mem::replace(&mut self.thread, Thread::Done) {
            Thread::Producer(producer) => Some(Left::Produced(producer.finish())),
            Thread::Consumer(consumer) => Some(Left::Read(consumer.finish())),
            Thread::Done => None,
        }
    }
}
