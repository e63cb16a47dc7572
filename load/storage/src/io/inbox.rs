//! Queue of completions from other threads, with an eventfd that wakes the receiving thread.

use super::Done;
use crate::error::{Error, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

/// Queue of requests that other threads have completed.
pub(crate) struct Inbox {
    done: Mutex<Vec<Done>>,
    is_empty: AtomicBool,
    bell: OwnedFd,
}

impl Inbox {
    /// Creates an empty queue; up to `capacity` completions fit without another allocation.
    pub(crate) fn new(capacity: usize) -> Result<Self> {
        let bell = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).map_err(Error::system("eventfd"))?;
        Ok(Self { done: Mutex::new(Vec::with_capacity(capacity)), is_empty: AtomicBool::new(true), bell })
    }

    /// Adds a completion and wakes the receiving thread.
    pub(crate) fn put(&self, done: Done) {
        let was_empty = {
            let mut waiting = self.done.lock().unwrap_or_else(PoisonError::into_inner);
            waiting.push(done);
            self.is_empty.store(false, Ordering::Release);
            waiting.len() == 1
        };
        if was_empty {
            // Fails only when the counter is full, and then the receiving thread is awake already.
            let _ = rustix::io::write(&self.bell, &1_u64.to_ne_bytes());
        }
    }

    /// Moves all completions to `done` and resets the eventfd.
    pub(crate) fn take(&self, done: &mut Vec<Done>) {
        // Reset the eventfd before locking: a completion added after the queue is emptied signals it again.
        let _ = rustix::io::read(&self.bell, &mut [0_u8; 8]);
        let mut waiting = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_empty.store(true, Ordering::Release);
        done.append(&mut waiting);
    }

    /// Moves all completions to `done`, like [`Inbox::take`], but makes no system call if there are none.
    pub(crate) fn glance(&self, done: &mut Vec<Done>) {
        if !self.is_empty.load(Ordering::Acquire) {
            self.take(done);
        }
    }

    /// Blocks until there is a completion, for at most `nanoseconds`, limited to 1 s.
    pub(crate) fn wait(&self, nanoseconds: u64) -> Result<()> {
        let mut polled = [PollFd::from_borrowed_fd(self.bell.as_fd(), PollFlags::IN)];
        match poll(&mut polled, Some(&timespec(nanoseconds))) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(Error::system("poll")(error)),
        }
    }

    /// Returns the eventfd, which is readable while there are completions.
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
