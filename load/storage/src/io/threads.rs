//! A pool of threads that call pwrite and fdatasync, where io_uring is not allowed.

use super::inline::Memory;
use super::{Done, Inbox, Request};
use crate::buffers::Buffers;
use crate::error::{Error, Result};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

/// As many requests as there are threads are executed at once; the others wait for their turn.
const THREADS_LIMIT: u32 = 64;
const STACK_BYTES: usize = 64 * 1024;

/// Hands requests to the pool.
pub(crate) struct WriteThreads {
    requests: Sender<(u64, Request)>,
    inbox: Arc<Inbox>,
}

impl WriteThreads {
    pub(super) fn new(depth: u32, buffers: &Buffers, inbox: Arc<Inbox>) -> Result<Self> {
        let (requests, taken) = channel::<(u64, Request)>();
        let taken = Arc::new(Mutex::new(taken));
        for _ in 0..depth.clamp(1, THREADS_LIMIT) {
            let (taken, inbox, memory) = (Arc::clone(&taken), Arc::clone(&inbox), Memory::of(buffers));
            std::thread::Builder::new()
                .name("write".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || work(&taken, &inbox, memory))
                .map_err(Error::system("starting a thread"))?;
        }
        Ok(Self { requests, inbox })
    }

    pub(super) fn submit(&mut self, token: u64, request: Request) -> Result<()> {
        let gone = |_| Error::System { what: "the writing threads", source: std::io::ErrorKind::BrokenPipe.into() };
        self.requests.send((token, request)).map_err(gone)
    }

    pub(super) fn wait(&mut self, nanoseconds: u64, done: &mut Vec<Done>) -> Result<()> {
        self.inbox.wait(nanoseconds)?;
        self.inbox.take(done);
        Ok(())
    }
}

fn work(taken: &Mutex<Receiver<(u64, Request)>>, inbox: &Inbox, memory: Memory) {
    loop {
        let next = taken.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok((token, request)) = next else { return };
        inbox.put(Done { token, result: memory.execute(request) });
    }
}
