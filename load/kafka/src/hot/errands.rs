//! What would make a hot thread wait is done by a thread of its own, which brings the result: making connections, asking
//! who leads what, for offsets and producer ids. They are few, and held back after failures.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::admin::{self, Metadata, Which};
use crate::error::{Error, Result};
use crate::hot::poll::Waker;
use crate::security::Stream;
use crate::session::{Address, Dialer, Session, patiently};

const PATIENCE: Duration = Duration::from_secs(30);

/// What an errand brings.
pub enum News {
    /// A connection to this broker, and the version of produce requests that it speaks.
    Connected(i32, Result<(Stream, i16)>),
    /// Who leads what.
    Metadata(Result<Metadata>),
    /// Producer id and epoch.
    ProducerId(Result<(i64, i16)>),
    /// The offsets of partitions, each by its place among all; those that could not be had are missing.
    Offsets(Which, BTreeMap<usize, i64>),
    /// Records a second that are due from now on.
    Rate(f64),
    /// The partitions that are this consumer's from now on, each by its place, with the offsets to begin at; whoever told
    /// it waits to hear that it was taken over.
    Assigned(BTreeMap<usize, i64>, Sender<()>),
}

/// Sends out for things on behalf of one thread.
#[derive(Clone)]
pub struct Errands {
    dialer: Arc<Dialer>,
    bootstrap: Arc<Vec<Address>>,
    topics: Arc<Vec<String>>,
    sender: Sender<News>,
    waker: Waker,
}

/// A partition to ask for: its place among all, its topic and its number.
pub type Wanted = (usize, String, i32);

impl Errands {
    /// For the thread that `waker` wakes; what is brought comes out of the receiver.
    #[must_use]
    pub fn new(
        dialer: Arc<Dialer>,
        bootstrap: Arc<Vec<Address>>,
        topics: Arc<Vec<String>>,
        waker: Waker,
    ) -> (Self, Receiver<News>) {
        let (sender, receiver) = channel();
        (Self { dialer, bootstrap, topics, sender, waker }, receiver)
    }

    /// What the broker knows the client by.
    #[must_use]
    pub fn client_id(&self) -> &str {
        &self.dialer.client_id
    }

    /// Brings news from elsewhere.
    pub fn bring(&self, news: News) {
        // The thread may be gone at the end of a run; then nobody wants to know.
        let _ = self.sender.send(news);
        self.waker.wake();
    }

    fn go(&self, errand: impl FnOnce(&Self) -> News + Send + 'static, failed: impl FnOnce(Error) -> News) {
        let errands = self.clone();
        let begun = std::thread::Builder::new().name("errand".to_owned()).spawn(move || {
            let news = errand(&errands);
            errands.bring(news);
        });
        if let Err(source) = begun {
            self.bring(failed(Error::Connection { doing: "starting a thread".to_owned(), source }));
        }
    }

    /// Connect to a broker.
    pub fn connect(&self, broker: i32, address: Address) {
        let errand = move |errands: &Self| {
            let opened = errands.dialer.open(&address).and_then(|session| {
                session.speaks_hot_path()?;
                let version = session.version(crate::wire::produce::API, crate::wire::produce::VERSIONS);
                Ok((session.into_stream(), version.unwrap_or_default()))
            });
            News::Connected(broker, opened)
        };
        self.go(errand, move |error| News::Connected(broker, Err(error)));
    }

    /// Ask who leads what, at one of `known` or of the bootstrap servers.
    pub fn metadata(&self, known: Vec<Address>) {
        let errand = move |errands: &Self| {
            let asked = errands
                .dialer
                .open_any(known.iter().chain(errands.bootstrap.iter()))
                .and_then(|mut session| admin::metadata(&mut session, &errands.topics));
            News::Metadata(asked)
        };
        self.go(errand, |error| News::Metadata(Err(error)));
    }

    /// Ask for a producer id.
    pub fn producer_id(&self, known: Vec<Address>) {
        let errand = move |errands: &Self| {
            let asked = patiently(PATIENCE, || {
                let mut session = errands.dialer.open_any(known.iter().chain(errands.bootstrap.iter()))?;
                admin::producer_id(&mut session)
            });
            News::ProducerId(asked)
        };
        self.go(errand, |error| News::ProducerId(Err(error)));
    }

    /// Ask the leaders for offsets.
    pub fn offsets(&self, which: Which, wanted: Vec<(Address, Vec<Wanted>)>) {
        let errand = move |errands: &Self| {
            let mut found = BTreeMap::new();
            for (address, partitions) in &wanted {
                let Ok(mut session) = errands.dialer.open(address) else { continue };
                if let Ok((offsets, _)) = offsets_at(&mut session, which, partitions) {
                    found.extend(offsets);
                }
            }
            News::Offsets(which, found)
        };
        self.go(errand, move |_| News::Offsets(which, BTreeMap::new()));
    }
}

/// The offsets of these partitions, by place, as far as this broker knows them, and the error code of one that it does
/// not.
///
/// # Errors
/// What the session said.
pub fn offsets_at(session: &mut Session, which: Which, partitions: &[Wanted]) -> Result<(BTreeMap<usize, i64>, i16)> {
    let mut by_topic: BTreeMap<&str, Vec<(i32, usize)>> = BTreeMap::new();
    for (place, topic, index) in partitions {
        by_topic.entry(topic).or_default().push((*index, *place));
    }
    let (mut found, mut fault) = (BTreeMap::new(), 0);
    for (topic, places) in by_topic {
        let indexes: Vec<i32> = places.iter().map(|(index, _)| *index).collect();
        for (index, error, offset) in admin::offsets(session, topic, &indexes, which)? {
            if error != 0 {
                fault = error;
            } else if let Some((_, place)) = places.iter().find(|(candidate, _)| *candidate == index) {
                found.insert(*place, offset);
            }
        }
    }
    Ok((found, fault))
}
