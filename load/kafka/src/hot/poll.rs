//! Waiting for connections, messages and moments at once.

use std::io::{Error, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

const WAKE: u64 = u64::MAX;
const EVENTS_AT_ONCE: usize = 64;
const NANOSECONDS: u64 = 1_000_000_000;

/// What a thread waits with.
pub(crate) struct Poller {
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
}

/// Wakes a thread that waits.
#[derive(Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Makes the present wait of the poller, or its next, end at once.
    pub(crate) fn wake(&self) {
        // It fails only when the counter is full, and then the thread is about to be woken anyway.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// What happened on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// What it was registered as.
    pub(crate) token: usize,
    /// It can be read from, or has ended.
    pub(crate) readable: bool,
    /// It can be written to.
    pub(crate) writable: bool,
}

impl Poller {
    /// # Errors
    /// What the system said.
    pub(crate) fn new() -> Result<Self> {
        // The kernel may end a wait by so much late, to save wake-ups; 50 µs by default.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).map_err(Error::from)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &*wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self { epoll, wake })
    }

    /// What ends this poller's waits.
    #[must_use]
    pub(crate) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake))
    }

    /// Watches for what can be read. What is dropped is no longer watched.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn add(&self, source: &impl AsFd, token: usize) -> Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token as u64), EventFlags::IN)?)
    }

    /// Watches, or no longer watches, for room to write.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn want_write(&self, source: &impl AsFd, token: usize, wanted: bool) -> Result<()> {
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token as u64), flags)?)
    }

    /// Waits until something happens, `nanoseconds` have passed, or the waker was used.
    ///
    /// # Errors
    /// What the system said.
    pub(crate) fn wait(&self, nanoseconds: u64, mut happened: impl FnMut(Readiness)) -> Result<()> {
        let (whole, rest) = (nanoseconds / NANOSECONDS, nanoseconds % NANOSECONDS);
        let timeout = Timespec { tv_sec: whole.cast_signed(), tv_nsec: rest.cast_signed() };
        let mut room = [const { MaybeUninit::<Event>::uninit() }; EVENTS_AT_ONCE];
        let events = match epoll::wait(&self.epoll, &mut room, Some(&timeout)) {
            Ok((events, _)) => events,
            Err(rustix::io::Errno::INTR) => return Ok(()),
            Err(error) => return Err(error.into()),
        };
        for event in events {
            let (data, flags) = (event.data, event.flags);
            if data.u64() == WAKE {
                let mut counter = [0; 8];
                let _ = rustix::io::read(&*self.wake, &mut counter);
                continue;
            }
            happened(Readiness {
                token: data.u64() as usize,
                readable: flags.intersects(EventFlags::IN | EventFlags::HUP | EventFlags::ERR),
                writable: flags.intersects(EventFlags::OUT),
            });
        }
        Ok(())
    }
}
