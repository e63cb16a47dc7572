//! Replies that are held back until they are due, all in one thread.

use crate::sync::lock;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

type Answer = Box<dyn FnOnce() + Send>;

struct DelayedAnswer {
    due: Instant,
    /// Sequence number, which keeps replies that are due at the same time in order.
    number: u64,
    answer: Answer,
}

impl PartialEq for DelayedAnswer {
    fn eq(&self, other: &Self) -> bool {
        (self.due, self.number) == (other.due, other.number)
    }
}

impl Eq for DelayedAnswer {}

impl PartialOrd for DelayedAnswer {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for DelayedAnswer {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.due, self.number).cmp(&(other.due, other.number))
    }
}

/// Queue shared by the thread that sends replies and those that hand them over.
#[derive(Default)]
struct AnswerQueue {
    state: Mutex<QueueState>,
    /// Signals an earlier due time, or the end of the queue.
    changed: Condvar,
}

#[derive(Default)]
struct QueueState {
    pending: BinaryHeap<Reverse<DelayedAnswer>>,
    number: u64,
    is_closed: bool,
}

/// Queue of delayed replies. Dropping it sends the pending replies at once and joins its thread.
pub struct Delay {
    queue: Arc<AnswerQueue>,
    thread: Option<JoinHandle<()>>,
}

/// Replies due within this time are sent at once: handing them over would take longer.
const AT_ONCE: Duration = Duration::from_micros(15);

impl Delay {
    /// Creates a queue and starts its thread.
    ///
    /// # Errors
    /// The system's error, if the thread cannot be started.
    pub fn new() -> std::io::Result<Self> {
        let queue = Arc::new(AnswerQueue::default());
        let shared = Arc::clone(&queue);
        let thread = std::thread::Builder::new().name("answers".into()).spawn(move || give_when_due(&shared))?;
        Ok(Self { queue, thread: Some(thread) })
    }

    /// Calls `answer` when it is due, from the queue's thread; from this thread if it is due within 15 µs.
    pub fn at(&self, due: Instant, answer: impl FnOnce() + Send + 'static) {
        if due.saturating_duration_since(Instant::now()) <= AT_ONCE {
            return answer();
        }
        let answer: Answer = Box::new(answer);
        let is_first = {
            let mut state = lock(&self.queue.state);
            state.number += 1;
            let number = state.number;
            let is_first = state.pending.peek().is_none_or(|Reverse(first)| due < first.due);
            state.pending.push(Reverse(DelayedAnswer { due, number, answer }));
            is_first
        };
        // Wake the thread only for an earlier due time: a wake-up costs as much as a reply.
        if is_first {
            self.queue.changed.notify_one();
        }
    }
}

impl Drop for Delay {
    fn drop(&mut self) {
        lock(&self.queue.state).is_closed = true;
        self.queue.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            // The thread panics only if a reply does; there is nothing left to wait for then.
            let _ = thread.join();
        }
    }
}

fn give_when_due(queue: &AnswerQueue) {
    sleep_precisely();
    let mut state = lock(&queue.state);
    loop {
        let wait = match state.pending.peek() {
            None if state.is_closed => return,
            None => None,
            Some(_) if state.is_closed => Some(Duration::ZERO),
            Some(Reverse(first)) => Some(first.due.saturating_duration_since(Instant::now())),
        };
        state = match wait {
            None => queue.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            Some(Duration::ZERO) => {
                let first = state.pending.pop();
                drop(state);
                if let Some(Reverse(first)) = first {
                    (first.answer)();
                }
                lock(&queue.state)
            }
            Some(wait) => queue.changed.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
        };
    }
}

/// Sets this thread's timer slack to 1 ns: by default the kernel may wake it 50 µs late to save power.
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
        while seen.lock().unwrap().len() < 3 && start.elapsed() < Duration::from_secs(60) {
            std::thread::sleep(Duration::from_millis(1));
        }
        drop(delay);
        assert_eq!(*seen.lock().unwrap(), [('a', true), ('b', true), ('c', true), ('z', false)]);
    }
}
