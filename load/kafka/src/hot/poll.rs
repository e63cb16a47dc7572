//! Poller: waits for sockets, a wake-up or a timeout (epoll and eventfd).

use std::io::{Error, Result};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};

const WAKE: u64 = u64::MAX;
const EVENTS_AT_ONCE: usize = 64;
const NANOSECONDS: u64 = 1_000_000_000;

/// epoll instance that a hot thread waits in, with an eventfd to wake it.
pub(crate) struct Poller {
    epoll: OwnedFd,
    wake: Arc<OwnedFd>,
}

/// Wakes the thread that waits in a poller; may be used from any thread.
#[derive(Clone)]
pub(crate) struct Waker(Arc<OwnedFd>);

impl Waker {
    /// Ends the poller's current wait, or its next, at once. Does not block.
    pub(crate) fn wake(&self) {
        // It fails only when the counter is full, and then a wake-up is pending already.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

/// Readiness of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Readiness {
    /// Token that the connection was registered with.
    pub(crate) token: usize,
    /// Readable, closed or failed.
    pub(crate) readable: bool,
    /// Writable.
    pub(crate) writable: bool,
}

impl Poller {
    /// Creates a poller and sets the calling thread's timer slack to 1 ns.
    ///
    /// # Errors
    /// I/O error of the system call.
    pub(crate) fn new() -> Result<Self> {
        // Timer slack: how late the kernel may end a wait, to save wake-ups; 50 µs by default, 1 ns here.
        rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1)).map_err(Error::from)?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = Arc::new(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?);
        epoll::add(&epoll, &*wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        Ok(Self { epoll, wake })
    }

    /// Waker of this poller.
    #[must_use]
    pub(crate) fn waker(&self) -> Waker {
        Waker(Arc::clone(&self.wake))
    }

    /// Registers a socket for read readiness, reported with `token`. Closing the socket removes it.
    ///
    /// # Errors
    /// I/O error of the system call.
    pub(crate) fn add(&self, source: &impl AsFd, token: usize) -> Result<()> {
        Ok(epoll::add(&self.epoll, source, EventData::new_u64(token as u64), EventFlags::IN)?)
    }

    /// Turns write readiness of a registered socket on or off; read readiness stays on.
    ///
    /// # Errors
    /// I/O error of the system call.
    pub(crate) fn want_write(&self, source: &impl AsFd, token: usize, wanted: bool) -> Result<()> {
        let flags = if wanted { EventFlags::IN | EventFlags::OUT } else { EventFlags::IN };
        Ok(epoll::modify(&self.epoll, source, EventData::new_u64(token as u64), flags)?)
    }

    /// Blocks until a socket is ready, `nanoseconds` have passed, or the waker was used; calls `happened` for each
    /// socket that is ready. A signal ends the wait early.
    ///
    /// # Errors
    /// I/O error of the system call.
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
