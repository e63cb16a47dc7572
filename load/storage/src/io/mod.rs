//! Writing and syncing of files by one of three methods: io_uring, a pool of threads, or the calling thread itself.

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

/// I/O request for a file. The file has to stay open, and the buffer unchanged, until the request is done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Request {
    /// Write part of a buffer.
    Write {
        /// Descriptor of the file.
        file: RawFd,
        /// Index of the buffer.
        buffer: u32,
        /// Start of the part in the buffer, in bytes.
        from: u32,
        /// Length of the part in bytes.
        length: u32,
        /// Position in the file, in bytes.
        offset: u64,
    },
    /// fdatasync of a file.
    Sync {
        /// Descriptor of the file.
        file: RawFd,
    },
    /// fallocate, which extends the file to the end of the range if it is shorter.
    Allocate {
        /// Descriptor of the file.
        file: RawFd,
        /// Start of the range in the file, in bytes.
        offset: u64,
        /// Length of the range in bytes.
        length: u64,
    },
}

/// Completed request: its token and the kernel's result.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// Token with which the request was submitted.
    pub token: u64,
    /// Bytes written, a file descriptor, 0, or a negative error number.
    pub result: i32,
}

/// Method of executing I/O requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum IoMethod {
    /// io_uring with registered buffers.
    IoUring,
    /// A pool of threads that call pwrite and fdatasync.
    Threads,
    /// Calls of pwrite and fdatasync by the submitting thread, which blocks.
    Inline,
}

/// Executor of I/O requests.
pub(crate) enum Io {
    /// Executor with io_uring.
    Uring(Box<Uring>),
    /// Executor with a pool of threads.
    Threads(WriteThreads),
    /// Executor in the calling thread.
    Inline(Inline),
}

impl Io {
    /// Creates an executor for `depth` requests in flight at most. Uses threads if io_uring is not available. Also
    /// returns the reason if the setup differs from `method`, or if buffers could not be registered.
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

    /// Returns the I/O method in effect.
    pub(crate) fn method(&self) -> IoMethod {
        match self {
            Self::Uring(_) => IoMethod::IoUring,
            Self::Threads(_) => IoMethod::Threads,
            Self::Inline(_) => IoMethod::Inline,
        }
    }

    /// Submits a request. It is done when [`Io::wait`] returns its token.
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

    /// Appends completed requests, those in the inbox included, to `done`. If there are none, waits for one, up to
    /// `nanoseconds`.
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
