//! Writing and syncing, in one of three ways: through io_uring, through threads, or by the calling thread itself.

mod inbox;
mod inline;
mod threads;
mod uring;

pub(crate) use inbox::Inbox;

use crate::buffers::Buffers;
use crate::error::Result;
use inline::Inline;
use std::os::fd::RawFd;
use std::sync::Arc;
use threads::WriteThreads;
use uring::Uring;

/// What a file is to undergo. The file stays open, and the buffer is not touched, until the request is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// Write part of a buffer.
    Write {
        /// The file.
        file: RawFd,
        /// The buffer's number.
        buffer: u32,
        /// Where the part begins in the buffer.
        from: u32,
        /// How long it is.
        length: u32,
        /// Where it goes in the file.
        offset: u64,
    },
    /// fdatasync.
    Sync {
        /// The file.
        file: RawFd,
    },
    /// fallocate, which makes the file as long as what is allocated.
    Allocate {
        /// The file.
        file: RawFd,
        /// Where the new part begins.
        offset: u64,
        /// How long it is.
        length: u64,
    },
}

/// A request that is done: the token that it was submitted with, and what the kernel returned (below 0: an error number).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// The request's token.
    pub token: u64,
    /// Bytes written, a file, 0, or an error number below 0.
    pub result: i32,
}

/// How requests are executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IoMethod {
    /// io_uring with registered buffers.
    IoUring,
    /// A pool of threads that call pwrite and fdatasync.
    Threads,
    /// The thread itself calls pwrite and fdatasync, and waits.
    Inline,
}

/// Carries requests out.
pub(crate) enum Io {
    /// Through io_uring.
    Uring(Box<Uring>),
    /// Through a pool of threads.
    Threads(WriteThreads),
    /// At once.
    Inline(Inline),
}

impl Io {
    /// `depth` is the most requests that are ever under way at once. Where io_uring is not allowed, threads take its
    /// place, and the reason is returned.
    pub(crate) fn new(
        method: IoMethod,
        depth: u32,
        buffers: &Buffers,
        inbox: Arc<Inbox>,
    ) -> Result<(Self, Option<String>)> {
        match method {
            IoMethod::IoUring => match Uring::new(depth, buffers, Arc::clone(&inbox)) {
                Ok(uring) => {
                    let reason = uring.unregistered().map(unregistered);
                    Ok((Self::Uring(Box::new(uring)), reason))
                }
                Err(error) => {
                    let reason = format!("io_uring cannot be used ({error}), so a pool of threads writes");
                    Ok((Self::Threads(WriteThreads::new(depth, buffers, inbox)?), Some(reason)))
                }
            },
            IoMethod::Threads => Ok((Self::Threads(WriteThreads::new(depth, buffers, inbox)?), None)),
            IoMethod::Inline => Ok((Self::Inline(Inline::new(depth, buffers, inbox)), None)),
        }
    }

    /// How requests are really executed.
    pub(crate) fn method(&self) -> IoMethod {
        match self {
            Self::Uring(_) => IoMethod::IoUring,
            Self::Threads(_) => IoMethod::Threads,
            Self::Inline(_) => IoMethod::Inline,
        }
    }

    /// Hands a request over. It is done when [`Io::wait`] says so.
    pub(crate) fn submit(&mut self, token: u64, request: Request) -> Result<()> {
        match self {
            Self::Uring(uring) => uring.submit(token, request),
            Self::Threads(threads) => threads.submit(token, request),
            Self::Inline(inline) => {
                inline.submit(token, request);
                Ok(())
            }
        }
    }

    /// Appends what is done to `done`. Waits for `nanoseconds` at most when nothing is, also for what others put into the
    /// inbox.
    pub(crate) fn wait(&mut self, nanoseconds: u64, done: &mut Vec<Done>) -> Result<()> {
        match self {
            Self::Uring(uring) => uring.wait(nanoseconds, done),
            Self::Threads(threads) => threads.wait(nanoseconds, done),
            Self::Inline(inline) => inline.wait(nanoseconds, done),
        }
    }
}

fn unregistered(error: &std::io::Error) -> String {
    format!(
        "buffers are not registered with io_uring ({error}), so each write maps its own: allow more locked memory (ulimit -l)"
    )
}
