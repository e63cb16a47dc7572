//! Pool of threads that call pwrite and fdatasync, also used where io_uring is not allowed.

use super::inline::Memory;
use super::{Done, Inbox, Request};
use crate::buffers::Buffers;
use crate::error::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Maximum number of threads, and thus of requests that are executed at once; further requests are queued.
const THREADS_LIMIT: u32 = 64;
const STACK_BYTES: usize = 64 * 1024;
/// Time limit for requests in execution when the pool is dropped. One that takes longer is in the kernel, which keeps
/// its file open even if the descriptor is closed.
const END: Duration = Duration::from_secs(10);

/// Pool of threads that executes requests.
pub(crate) struct WriteThreads {
    requests: Option<Sender<(u64, Request)>>,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
    inbox: Arc<Inbox>,
}

impl Drop for WriteThreads {
    /// Discards queued requests, whose descriptors may be reused for other files, and waits for those in execution, up
    /// to `END`.
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
        self.requests = None;
        let begun = Instant::now();
        while !self.threads.iter().all(JoinHandle::is_finished) && begun.elapsed() < END {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl WriteThreads {
    pub(super) fn new(depth: u32, buffers: &Buffers, inbox: Arc<Inbox>) -> Result<Self> {
        let (requests, taken) = channel::<(u64, Request)>();
        let taken = Arc::new(Mutex::new(taken));
        let mut pool = Self { requests: Some(requests), is_over: Arc::default(), threads: Vec::new(), inbox };
        for _ in 0..depth.clamp(1, THREADS_LIMIT) {
            let (taken, inbox, memory) = (Arc::clone(&taken), Arc::clone(&pool.inbox), Memory::of(buffers));
            let is_over = Arc::clone(&pool.is_over);
            let thread = std::thread::Builder::new()
                .name("write".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || work(&taken, &is_over, &inbox, memory))
                .map_err(Error::system("starting a thread"))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }

    pub(super) fn submit(&mut self, token: u64, request: Request) -> Result<()> {
        let sent = self.requests.as_ref().is_some_and(|requests| requests.send((token, request)).is_ok());
        let gone = || Error::System { what: "the writing threads", source: std::io::ErrorKind::BrokenPipe.into() };
        if sent { Ok(()) } else { Err(gone()) }
    }

    pub(super) fn wait(&mut self, nanoseconds: u64, done: &mut Vec<Done>) -> Result<()> {
        self.inbox.wait(nanoseconds)?;
        self.inbox.take(done);
        Ok(())
    }
}

fn work(taken: &Mutex<Receiver<(u64, Request)>>, is_over: &AtomicBool, inbox: &Inbox, memory: Memory) {
    loop {
        let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((token, request)) = next else { return };
        if is_over.load(Ordering::Acquire) {
            return;
        }
        inbox.put(Done { token, result: memory.execute(request) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::{AsRawFd, OwnedFd};

    const REQUESTS: u64 = 20_000;

    #[test]
    fn a_pool_that_was_given_up_writes_to_no_file_that_comes_later() {
        let directory = tempfile::tempdir().unwrap();
        let buffers = Buffers::new(4, 4096, 1.0, 0).unwrap();
        let mut pool = WriteThreads::new(2, &buffers, Arc::new(Inbox::new(64).unwrap())).unwrap();
        let own = std::fs::File::create(directory.path().join("own")).unwrap();
        let file = own.as_raw_fd();
        for token in 0..REQUESTS {
            pool.submit(token, Request::Write { file, buffer: 0, from: 0, length: 4096, offset: 0 }).unwrap();
        }
        drop(pool);
        // Reuse the descriptor number, as the next file that the process opens would.
        let other = std::fs::File::create(directory.path().join("other")).unwrap();
        let mut descriptor = OwnedFd::from(own);
        rustix::io::dup2(&other, &mut descriptor).unwrap();
        std::thread::sleep(Duration::from_millis(200));
        assert_eq!(other.metadata().unwrap().len(), 0);
    }
}
