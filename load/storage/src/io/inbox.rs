//! Where other threads put what they have done, and wake who waits for it.

use super::Done;
use crate::error::{Error, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Done requests of other threads.
pub(crate) struct Inbox {
    done: Mutex<Vec<Done>>,
    is_empty: AtomicBool,
    bell: OwnedFd,
}

impl Inbox {
    /// An empty one, for `capacity` done requests without allocating.
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(Error::system("eventfd"))?;
        Ok(Self { done: Mutex::new(Vec::with_capacity(capacity)), is_empty: AtomicBool::new(true), bell })
    }

    /// Puts something in and wakes the reader.
    pub(crate) fn put(&self, done: Done) {
        let was_empty = {
            let mut waiting = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(done);
            self.is_empty.store(false, Ordering::Release);
            waiting.len() == 1
        };
        if was_empty {
            // Fails only when the counter is full, and then the reader is awake.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// Moves everything that is in it to `done`.
    pub(crate) fn take(&self, done: &mut Vec<Done>) {
        // Before the lock: who puts something in after it was emptied rings again.
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
        let mut waiting = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_empty.store(true, Ordering::Release);
        done.append(&mut waiting);
    }

    /// As [`Inbox::take`], without asking the system where there is nothing.
    pub(crate) fn glance(&self, done: &mut Vec<Done>) {
        if !self.is_empty.load(Ordering::Acquire) {
            self.take(done);
        }
    }

    /// Waits until something is in it, for `nanoseconds` at most.
    pub(crate) fn wait(&self, nanoseconds: u64) -> Result<()> {
        let mut polled = [PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(&timespec(nanoseconds))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Error::system("poll")(error)),
        }
    }

    /// Readable while something is in it.
    pub(crate) fn bell(&self) -> RawFd {
        self.bell.as_raw_fd()
    }
}

fn timespec(nanoseconds: u64) -> Timespec {
    let nanoseconds = nanoseconds.min(cliffwatch_measure::NANOSECONDS);
    Timespec {
        tv_sec: i64::from(nanoseconds == cliffwatch_measure::NANOSECONDS),
        tv_nsec: (nanoseconds % cliffwatch_measure::NANOSECONDS).cast_signed(),
    }
}
