//! io_uring with registered buffers.

use super::{Done, Inbox, Request};
use crate::buffers::Buffers;
use crate::error::{Error, Result};
use cliffwatch_measure::NANOSECONDS;
use io_uring::squeue::Entry;
use io_uring::types::{Fd, FsyncFlags, SubmitArgs, Timespec};
use io_uring::{IoUring, opcode};
use std::sync::Arc;
use std::time::Instant;

/// Token of the poll of the inbox's eventfd; no request has it.
const BELL: u64 = u64::MAX;
/// Maximum number of kernel workers: each sync in flight occupies one, whatever the number of CPUs.
const SYNCS_LIMIT: u32 = 1_024;
const RING_LIMIT: u32 = 4_096;

/// io_uring ring. Its buffers outlive it.
pub(crate) struct Uring {
    ring: IoUring,
    inbox: Arc<Inbox>,
    address: *const u8,
    buffer_bytes: usize,
    unregistered: Option<std::io::Error>,
    bell_is_set: bool,
    under_way: u32,
}

/// Time limit for requests in flight when the ring is dropped.
const END_NANOSECONDS: u64 = 10 * NANOSECONDS;

impl Drop for Uring {
    /// Waits for requests in flight, up to `END_NANOSECONDS`: the kernel would otherwise keep their files, and the file
    /// system, in use after the end of the process.
    fn drop(&mut self) {
        let begun = Instant::now();
        let mut done = Vec::new();
        while self.under_way > 0 && begun.elapsed().as_nanos() < u128::from(END_NANOSECONDS) {
            done.clear();
            if self.wait(NANOSECONDS / 10, &mut done).is_err() {
                return;
            }
        }
    }
}

// SAFETY: the address is only passed to the kernel; see `Memory` for access to the memory that it points to.
unsafe impl Send for Uring {}

impl Uring {
    pub(super) fn new(depth: u32, buffers: &Buffers, inbox: Arc<Inbox>) -> Result<Self> {
        let entries = (depth + 1).next_power_of_two().clamp(8, RING_LIMIT);
        let ring = IoUring::builder()
            .setup_single_issuer()
            .setup_coop_taskrun()
            .build(entries)
            .map_err(Error::system("io_uring_setup"))?;
        if !ring.params().is_feature_ext_arg() || !ring.params().is_feature_nodrop() {
            let source = std::io::ErrorKind::Unsupported.into();
            return Err(Error::System { what: "io_uring of a kernel before 5.11", source });
        }
        let parts: Vec<libc::iovec> = (0..buffers.count())
            .map(|buffer| libc::iovec {
                iov_base: buffers.address().wrapping_add(buffer * buffers.buffer_bytes()).cast_mut().cast(),
                iov_len: buffers.buffer_bytes(),
            })
            .collect();
        // SAFETY: every part is memory of `buffers`, which lives as long as the process.
        let unregistered = unsafe { ring.submitter().register_buffers(&parts) }.err();
        // A failure only means that fewer files are synced at once.
        let _ = ring.submitter().register_iowq_max_workers(&mut [depth.clamp(16, SYNCS_LIMIT), 0]);
        let (address, buffer_bytes) = (buffers.address(), buffers.buffer_bytes());
        Ok(Self { ring, inbox, address, buffer_bytes, unregistered, bell_is_set: false, under_way: 0 })
    }

    /// Returns the error if the kernel did not register the buffers, so that every write maps its own; None if it did.
    pub(crate) fn unregistered(&self) -> Option<&std::io::Error> {
        self.unregistered.as_ref()
    }

    pub(super) fn submit(&mut self, token: u64, request: Request) -> Result<()> {
        let entry = match request {
            Request::Write { file, buffer, from, length, offset } => {
                let part = self.address.wrapping_add(buffer as usize * self.buffer_bytes + from as usize);
                match u16::try_from(buffer) {
                    Ok(number) if self.unregistered.is_none() => {
                        opcode::WriteFixed::new(Fd(file), part, length, number).offset(offset).build()
                    }
                    _ => opcode::Write::new(Fd(file), part, length).offset(offset).build(),
                }
            }
            Request::Sync { file } => opcode::Fsync::new(Fd(file)).flags(FsyncFlags::DATASYNC).build(),
            Request::Allocate { file, offset, length } => {
                opcode::Fallocate::new(Fd(file), length).offset(offset).build()
            }
        };
        self.push(entry.user_data(token))?;
        self.under_way += 1;
        Ok(())
    }

    pub(super) fn wait(&mut self, nanoseconds: u64, done: &mut Vec<Done>) -> Result<()> {
        if !self.bell_is_set {
            let bell = opcode::PollAdd::new(Fd(self.inbox.bell()), libc::POLLIN as u32).build().user_data(BELL);
            self.push(bell)?;
            self.bell_is_set = true;
        }
        self.enter(nanoseconds)?;
        for completion in self.ring.completion() {
            if completion.user_data() == BELL {
                self.bell_is_set = false;
            } else {
                self.under_way -= 1;
                done.push(Done { token: completion.user_data(), result: completion.result() });
            }
        }
        if !self.bell_is_set {
            self.inbox.take(done);
        }
        Ok(())
    }

    fn enter(&mut self, nanoseconds: u64) -> Result<()> {
        let has_completions = !self.ring.completion().is_empty();
        let entered = if has_completions || nanoseconds == 0 {
            self.ring.submit()
        } else {
            let time = Timespec::new().sec(nanoseconds / NANOSECONDS).nsec((nanoseconds % NANOSECONDS) as u32);
            self.ring.submitter().submit_with_args(1, &SubmitArgs::new().timespec(&time))
        };
        match entered {
            Ok(_) => Ok(()),
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => Ok(()),
            Err(error) => Err(Error::system("io_uring_enter")(error)),
        }
    }

    fn push(&mut self, entry: Entry) -> Result<()> {
        loop {
            // SAFETY: the buffer that the entry points to stays valid and unchanged until the request is done.
            if unsafe { self.ring.submission().push(&entry) }.is_ok() {
                return Ok(());
            }
            self.enter(0)?;
        }
    }
}
