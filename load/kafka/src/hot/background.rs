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

/// Starts tasks on behalf of one hot thread.
#[derive(Clone)]
pub(crate) struct BackgroundTasks {
    dialer: Arc<Dialer>,
    bootstrap: Arc<Vec<Address>>,
    topics: Arc<Vec<String>>,
    sender: Sender<Update>,
    waker: Waker,
}

/// A partition to ask for: its id, its topic and its number in the topic.
pub(crate) type WantedPartition = (usize, String, i32);

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
        (Self { dialer, bootstrap, topics, sender, waker }, receiver)
    }

    /// What the broker knows the client by.
    #[must_use]
    pub(crate) fn client_id(&self) -> &str {
        &self.dialer.client_id
    }

    /// Sends an update from elsewhere.
    pub(crate) fn send(&self, update: Update) {
        // The thread may be gone at the end of a run; then nobody wants to know.
        let _ = self.sender.send(update);
        self.waker.wake();
    }

    fn start(&self, task: impl FnOnce(&Self) -> Update + Send + 'static, failed: impl FnOnce(Error) -> Update) {
        let tasks = self.clone();
        let started = std::thread::Builder::new().name("background".to_owned()).spawn(move || {
            let update = task(&tasks);
            tasks.send(update);
        });
        if let Err(source) = started {
            self.send(failed(Error::Connection { doing: "starting a thread".to_owned(), source }));
        }
    }

    /// Connects to a broker.
    pub(crate) fn connect(&self, broker: i32, address: Address) {
        let task = move |tasks: &Self| {
            let opened = tasks.dialer.open(&address).and_then(|session| {
                session.speaks_hot_path()?;
                let version = session.version(crate::wire::produce::API, crate::wire::produce::VERSIONS);
                Ok((session.into_stream(), version.unwrap_or_default()))
            });
            Update::Connected(broker, opened)
        };
        self.start(task, move |error| Update::Connected(broker, Err(error)));
    }

    /// Asks who leads what, at one of `known` or of the bootstrap servers.
    pub(crate) fn metadata(&self, known: Vec<Address>) {
        let task = move |tasks: &Self| {
            let asked = tasks
                .dialer
                .open_any(known.iter().chain(tasks.bootstrap.iter()))
                .and_then(|mut session| admin::metadata(&mut session, &tasks.topics));
            Update::Metadata(asked)
        };
        self.start(task, |error| Update::Metadata(Err(error)));
    }

    /// Asks for a producer id.
    pub(crate) fn producer_id(&self, known: Vec<Address>) {
        let task = move |tasks: &Self| {
            let asked = patiently(PATIENCE, || {
                let mut session = tasks.dialer.open_any(known.iter().chain(tasks.bootstrap.iter()))?;
                admin::producer_id(&mut session)
            });
            Update::ProducerId(asked)
        };
        self.start(task, |error| Update::ProducerId(Err(error)));
    }

    /// Asks the leaders for offsets.
    pub(crate) fn offsets(&self, which: OffsetSpec, wanted: Vec<(Address, Vec<WantedPartition>)>) {
        let task = move |tasks: &Self| {
            let mut found = BTreeMap::new();
            for (address, partitions) in &wanted {
                let Ok(mut session) = tasks.dialer.open(address) else { continue };
                if let Ok((offsets, _)) = offsets_at(&mut session, which, partitions) {
                    found.extend(offsets);
                }
            }
            Update::Offsets(which, found)
        };
        self.start(task, move |_| Update::Offsets(which, BTreeMap::new()));
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
