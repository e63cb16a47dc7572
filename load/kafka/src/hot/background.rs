//! Background tasks: blocking calls of a hot thread (connecting, metadata, offsets, producer ids), each in a thread of
//! its own that sends the result. They are rare, and held back after failures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::admin::{self, Metadata, OffsetSpec};
use crate::error::{Error, Result};
use crate::hot::poll::Waker;
use crate::security::Transport;
use crate::session::{Address, Dialer, Session, patiently};

const PATIENCE: Duration = Duration::from_secs(30);

/// Message to a hot thread: result of a background task, new rate, or new assignment.
pub(crate) enum Update {
    /// Broker id, and the connection to it with its produce request version, or the error.
    Connected(i32, Result<(Transport, i16)>),
    /// Cluster metadata: brokers and partition leaders.
    Metadata(Result<Metadata>),
    /// Producer id and epoch of an idempotent producer.
    ProducerId(Result<(i64, i16)>),
    /// Offsets by partition id; partitions whose offset could not be read are missing.
    Offsets(OffsetSpec, BTreeMap<usize, i64>),
    /// New target rate in records per second.
    Rate(f64),
    /// New assignment of the consumer: start offsets by partition id. The consumer signals on the sender once it has
    /// applied it.
    Assigned(BTreeMap<usize, i64>, Sender<()>),
}

/// Blocking call that a background thread executes for a hot thread.
#[derive(Debug)]
pub(crate) enum Task {
    /// Connects to the broker with this id at this address.
    Connect(i32, Address),
    /// Requests metadata from the first of these brokers, then of the bootstrap servers, that answers.
    Metadata(Vec<Address>),
    /// Requests a producer id from these brokers or the bootstrap servers; retries transient errors for up to 30 s.
    ProducerId(Vec<Address>),
    /// Requests the earliest or latest offsets of partitions from their leaders.
    Offsets(OffsetSpec, Vec<(Address, Vec<WantedPartition>)>),
}

/// Access to the cluster: dialer, bootstrap servers, and the topics of metadata requests.
struct Network {
    dialer: Arc<Dialer>,
    bootstrap: Arc<Vec<Address>>,
    topics: Arc<Vec<String>>,
}

/// Starts background tasks for one hot thread and sends it their results.
#[derive(Clone)]
pub(crate) struct BackgroundTasks {
    network: Arc<Network>,
    sender: Sender<Update>,
    waker: Waker,
    /// Receives tasks instead of starting threads, so that a simulation executes them.
    #[cfg(test)]
    diverted: Option<Sender<Task>>,
}

/// Partition to request an offset for: partition id, topic name, and number within the topic.
pub(crate) type WantedPartition = (usize, String, i32);

impl Task {
    fn perform(&self, network: &Network) -> Update {
        let any = |known: &[Address]| network.dialer.open_any(known.iter().chain(network.bootstrap.iter()));
        match self {
            Self::Connect(broker, address) => {
                let opened = network.dialer.open(address).and_then(|session| {
                    session.speaks_hot_path()?;
                    let version = session.version(crate::wire::produce::API, crate::wire::produce::VERSIONS);
                    Ok((session.into_stream(), version.unwrap_or_default()))
                });
                Update::Connected(*broker, opened)
            }
            Self::Metadata(known) => {
                Update::Metadata(any(known).and_then(|mut session| admin::metadata(&mut session, &network.topics)))
            }
            Self::ProducerId(known) => Update::ProducerId(patiently(PATIENCE, || admin::producer_id(&mut any(known)?))),
            Self::Offsets(which, wanted) => {
                let mut found = BTreeMap::new();
                for (address, partitions) in wanted {
                    let Ok(mut session) = network.dialer.open(address) else { continue };
                    if let Ok((offsets, _)) = offsets_at(&mut session, *which, partitions) {
                        found.extend(offsets);
                    }
                }
                Update::Offsets(*which, found)
            }
        }
    }

    /// Update that reports a task as failed when it could not be started.
    pub(crate) fn failed(&self, error: Error) -> Update {
        match self {
            Self::Connect(broker, _) => Update::Connected(*broker, Err(error)),
            Self::Metadata(_) => Update::Metadata(Err(error)),
            Self::ProducerId(_) => Update::ProducerId(Err(error)),
            Self::Offsets(which, _) => Update::Offsets(*which, BTreeMap::new()),
        }
    }
}

impl BackgroundTasks {
    /// Creates the task starter of the thread that `waker` wakes; returns it with the receiver of the updates.
    #[must_use]
    pub(crate) fn new(
        dialer: Arc<Dialer>,
        bootstrap: Arc<Vec<Address>>,
        topics: Arc<Vec<String>>,
        waker: Waker,
    ) -> (Self, Receiver<Update>) {
        let (sender, receiver) = channel();
        let network = Arc::new(Network { dialer, bootstrap, topics });
        let tasks = Self {
            network,
            sender,
            waker,
            #[cfg(test)]
            diverted: None,
        };
        (tasks, receiver)
    }

    /// Sends all tasks to `to` instead of starting threads.
    #[cfg(test)]
    pub(crate) fn divert(&mut self, to: Sender<Task>) {
        self.diverted = Some(to);
    }

    /// Client id sent to brokers.
    #[must_use]
    pub(crate) fn client_id(&self) -> &str {
        &self.network.dialer.client_id
    }

    /// Sends an update to the hot thread and wakes it.
    pub(crate) fn send(&self, update: Update) {
        // The thread may have ended with the run; then the update is not needed.
        let _ = self.sender.send(update);
        self.waker.wake();
    }

    /// Executes a task in a new thread, which sends the result; if the thread cannot start, an error is sent. Does not
    /// block.
    pub(crate) fn start(&self, task: Task) {
        #[cfg(test)]
        if let Some(elsewhere) = &self.diverted {
            let _ = elsewhere.send(task);
            return;
        }
        let task = Arc::new(task);
        let (tasks, mine) = (self.clone(), Arc::clone(&task));
        let started = std::thread::Builder::new()
            .name("background".to_owned())
            .spawn(move || tasks.send(mine.perform(&tasks.network)));
        if let Err(source) = started {
            self.send(task.failed(Error::Connection { doing: "starting a thread".to_owned(), source }));
        }
    }
}

/// Requests offsets from a leader: returns those it reports, by partition id, and the last error code (0 for none).
///
/// # Errors
/// Connection or protocol error of the session.
pub(crate) fn offsets_at(
    session: &mut Session,
    which: OffsetSpec,
    partitions: &[WantedPartition],
) -> Result<(BTreeMap<usize, i64>, i16)> {
    let mut by_topic: BTreeMap<&str, Vec<(i32, usize)>> = BTreeMap::new();
    for (id, topic, index) in partitions {
        by_topic.entry(topic).or_default().push((*index, *id));
    }
    let (mut found, mut fault) = (BTreeMap::new(), 0);
    for (topic, ids) in by_topic {
        let indexes: Vec<i32> = ids.iter().map(|(index, _)| *index).collect();
        for (index, error, offset) in admin::offsets(session, topic, &indexes, which)? {
            if error != 0 {
                fault = error;
            } else if let Some((_, id)) = ids.iter().find(|(candidate, _)| *candidate == index) {
                found.insert(*id, offset);
            }
        }
    }
    Ok((found, fault))
}
