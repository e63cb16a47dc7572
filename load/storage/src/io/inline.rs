//! I/O by the calling thread itself, as a broker's request thread does with buffered files.

use super::{Done, Inbox, Request};
use crate::buffers::Buffers;
use crate::error::Result;
use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use rustix::io::{Errno, pwrite};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Memory of the buffers, by address. No other code uses the buffer of a write until the write is done.
#[derive(Clone, Copy)]
pub(super) struct Memory {
    address: *const u8,
    buffer_bytes: usize,
    buffers: usize,
}

// SAFETY: the memory lives as long as the process (see `Buffers`), and a buffer that is part of a request is neither
// read nor written by other code until the request is done.
unsafe impl Send for Memory {}

impl Memory {
    /// Returns the memory of `buffers`.
    pub(super) fn of(buffers: &Buffers) -> Self {
        Self { address: buffers.address(), buffer_bytes: buffers.buffer_bytes(), buffers: buffers.count() }
    }

    fn part(&self, buffer: u32, from: u32, length: u32) -> &[u8] {
        let (buffer, from, length) = (buffer as usize, from as usize, length as usize);
        assert!(buffer < self.buffers && from + length <= self.buffer_bytes, "a part lies within its buffer");
        // SAFETY: the part is within the memory, as was just asserted, and it is not changed meanwhile, as said above.
        unsafe { std::slice::from_raw_parts(self.address.add(buffer * self.buffer_bytes + from), length) }
    }

    /// Executes a request, blocking until it is done. Returns the bytes written, 0, or a negative error number.
    pub(super) fn execute(&self, request: Request) -> i32 {
        // SAFETY: the file of a request stays open until it is done.
        let borrow = |file| unsafe { BorrowedFd::borrow_raw(file) };
        let result = match request {
            Request::Write { file, buffer, from, length, offset } => {
                return self.write_all(borrow(file), self.part(buffer, from, length), offset);
            }
            Request::Sync { file } => retried(|| fdatasync(borrow(file))),
            Request::Allocate { file, offset, length } => {
                retried(|| fallocate(borrow(file), FallocateFlags::empty(), offset, length))
            }
        };
        result.map_or_else(|error| -error.raw_os_error(), |()| 0)
    }

    fn write_all(&self, file: BorrowedFd<'_>, bytes: &[u8], offset: u64) -> i32 {
        let mut written = 0;
        while written < bytes.len() {
            match pwrite(file, &bytes[written..], offset + written as u64) {
                Ok(0) => return -libc::EIO,
                Ok(count) => written += count,
                Err(Errno::INTR) => {}
                Err(error) => return -error.raw_os_error(),
            }
        }
        i32::try_from(written).unwrap_or(i32::MAX)
    }
}

fn retried(mut call: impl FnMut() -> rustix::io::Result<()>) -> rustix::io::Result<()> {
    loop {
        match call() {
            Err(Errno::INTR) => {}
            result => return result,
        }
    }
}

/// I/O by the calling thread: a request is done when `submit` returns.
pub(crate) struct Inline {
    memory: Memory,
    done: Vec<Done>,
    inbox: Arc<Inbox>,
}

impl Inline {
    pub(super) fn new(depth: u32, buffers: &Buffers, inbox: Arc<Inbox>) -> Self {
        Self { memory: Memory::of(buffers), done: Vec::with_capacity(depth as usize), inbox }
    }

    pub(super) fn submit(&mut self, token: u64, request: Request) {
        let result = self.memory.execute(request);
        self.done.push(Done { token, result });
    }

    pub(super) fn wait(&mut self, nanoseconds: u64, done: &mut Vec<Done>) -> Result<()> {
        if self.done.is_empty() && nanoseconds > 0 {
            self.inbox.wait(nanoseconds)?;
            self.inbox.take(done);
        } else {
            done.append(&mut self.done);
            self.inbox.glance(done);
        }
        Ok(())
    }
}
