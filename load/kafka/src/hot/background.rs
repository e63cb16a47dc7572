//! What would make a hot thread wait is done by a thread of its own, which sends the result: making connections, asking
//! who leads what, for offsets and producer ids. They are few, and held back after failures.

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

/// What a hot thread receives from others.
pub(crate) enum Update {
    /// A connection to this broker, and the version of produce requests that it speaks.
    Connected(i32, Result<(Transport, i16)>),
    /// Who leads what.
    Metadata(Result<Metadata>),
    /// Producer id and epoch.
    ProducerId(Result<(i64, i16)>),
    /// The offsets of partitions, by partition id; those that could not be had are missing.
    Offsets(OffsetSpec, BTreeMap<usize, i64>),
    /// Records a second that are due from now on.
    Rate(f64),
    /// The partitions that are this consumer's from now on, each by its id, with the offsets to begin at; the sender is
    /// to be used once they were taken over.
    Assigned(BTreeMap<usize, i64>, Sender<()>),
}

/// What makes one wait, and is done on behalf of a hot thread.
#[derive(Debug)]
pub(crate) enum Task {
    /// Connects to the broker of this id.
    Connect(i32, Address),
    /// Asks who leads what, at one of these or of the bootstrap servers.
    Metadata(Vec<Address>),
    /// Asks for a producer id, likewise.
    ProducerId(Vec<Address>),
    /// Asks the leaders for offsets.
    Offsets(OffsetSpec, Vec<(Address, Vec<WantedPartition>)>),
}

/// How brokers are reached, and what is asked about.
struct Network {
    dialer: Arc<Dialer>,
    bootstrap: Arc<Vec<Address>>,
    topics: Arc<Vec<String>>,
}

/// Starts tasks on behalf of one hot thread.
#[derive(Clone)]
pub(crate) struct BackgroundTasks {
    network: Arc<Network>,
    sender: Sender<Update>,
    waker: Waker,
    /// Where tasks are sent instead of being started: a simulation executes them.
    #[cfg(test)]
    diverted: Option<Sender<Task>>,
}

/// A partition to ask for: its id, its topic and its number in the topic.
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

    /// What comes of it where it could not be begun.
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
    /// For the thread that `waker` wakes; results come out of the receiver.
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

    /// Has all tasks go there.
    #[cfg(test)]
    pub(crate) fn divert(&mut self, to: Sender<Task>) {
        self.diverted = Some(to);
    }

    /// What the broker knows the client by.
    #[must_use]
    pub(crate) fn client_id(&self) -> &str {
        &self.network.dialer.client_id
    }

    /// Sends an update from elsewhere.
    pub(crate) fn send(&self, update: Update) {
        // The thread may be gone at the end of a run; then the update is not needed.
        let _ = self.sender.send(update);
        self.waker.wake();
    }

    /// Has a thread of its own do it, which sends what came of it.
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

/// The offsets of these partitions, by partition id, as far as this broker knows them, and the error code of one that it does
/// not.
///
/// # Errors
/// What the session said.
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
