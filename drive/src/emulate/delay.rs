//! Answers that are held back until they are due, in one thread however many there are.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Answer = Box<dyn FnOnce() + Send>;

struct Pending {
    due: Instant,
    /// Keeps answers that are due at the same time in order.
    number: u64,
    answer: Answer,
}

impl PartialEq for Pending {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl Eq for Pending {}

impl PartialOrd for Pending {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Pending {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

/// The queue of answers. Dropping it gives the answers still held back at once and ends its thread.
pub struct Delay {
    // In the order in which they must go: the thread ends when the sender is gone.
    sender: Option<Sender<(Instant, Answer)>>,
    thread: Option<JoinHandle<()>>,
}

/// Answers due sooner than this are given at once: handing them over would take longer.
const AT_ONCE: Duration = Duration::from_micros(15);

impl Delay {
    /// Starts the thread.
    ///
    /// # Errors
    /// The system's, if it has no thread to give.
    pub fn new() -> std::io::Result<Self> {
        let (sender, receiver) = mpsc::channel();
        let thread = std::thread::Builder::new().name("answers".into()).spawn(move || give_when_due(&receiver))?;
        Ok(Self { sender: Some(sender), thread: Some(thread) })
    }

    /// Gives an answer when it is due.
    pub fn at(&self, due: Instant, answer: impl FnOnce() + Send + 'static) {
        match &self.sender {
            Some(sender) if due.saturating_duration_since(Instant::now()) > AT_ONCE => {
                if let Err(mpsc::SendError((_, answer))) = sender.send((due, Box::new(answer))) {
                    answer();
                }
            }
            _ => answer(),
        }
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        self.sender = None;
        if let Some(thread) = self.thread.take() {
            // Only an answer can panic there, and then there is nothing left to wait for.
            let _ = thread.join();
        }
    }
}

fn give_when_due(receiver: &Receiver<(Instant, Answer)>) {
    sleep_precisely();
    let mut pending: BinaryHeap<Reverse<Pending>> = BinaryHeap::new();
    let mut number = 0;
    loop {
        let now = Instant::now();
        while pending.peek().is_some_and(|Reverse(first)| first.due <= now) {
            if let Some(Reverse(first)) = pending.pop() {
                (first.answer)();
            }
        }
        let received = match pending.peek() {
            Some(Reverse(first)) => receiver.recv_timeout(first.due.saturating_duration_since(Instant::now())),
            None => receiver.recv().map_err(|_| RecvTimeoutError::Disconnected),
        };
        match received {
            Ok((due, answer)) => {
                number += 1;
                pending.push(Reverse(Pending { due, number, answer }));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    pending.into_sorted_vec().into_iter().rev().for_each(|Reverse(pending)| (pending.answer)());
}

/// Has the kernel wake this thread when it asks to be, not up to 50 µs later to save power.
fn sleep_precisely() {
    // SAFETY: this option takes one number and changes nothing but this thread's timer slack.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[test]
    fn answers_come_in_the_order_in_which_they_are_due_and_none_is_lost() {
        let delay = Delay::new().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let start = Instant::now();
        for (name, milliseconds) in [('c', 30), ('a', 0), ('b', 10), ('z', 100_000)] {
            let seen = Arc::clone(&seen);
            let due = start + Duration::from_millis(milliseconds);
            delay.at(due, move || seen.lock().unwrap().push((name, due <= Instant::now())));
        }
        std::thread::sleep(Duration::from_millis(60));
        drop(delay);
        assert_eq!(*seen.lock().unwrap(), [('a', true), ('b', true), ('c', true), ('z', false)]);
    }
}
