//! Model of the host: issues requests at a rate, with a bounded queue depth, and slows down with the drive.

use crate::random::{Purpose, Random};

/// Distribution of the times between requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum, serde::Deserialize, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// At equal distances.
    Fixed,
    /// Independently of one another (a Poisson process).
    Poisson,
}

/// Closed-loop host. A request is due one gap after the previous one was issued, and is issued when it is due and fewer
/// than the queue depth are in flight. So a slow drive slows the host down, and latency after the cliff is that of a
/// queue of this depth instead of growing for as long as the run lasts.
pub struct Host {
    arrivals: Arrivals,
    nanoseconds_per_byte: f64,
    random: Random,
    due_nanoseconds: f64,
    measured_from: u64,
    issued_at: u64,
    slipped_nanoseconds: f64,
    /// Completion times of the requests in flight, by request number modulo the queue depth.
    done_at: Vec<u64>,
    oldest: usize,
    /// Latest completion time: requests complete in order of issue, because the buffer admits in order.
    last_done_at: u64,
}

impl Host {
    /// Creates a host that writes at this rate (`None`: unlimited), with at most `queue_depth` (at least 1) requests in
    /// flight.
    #[must_use]
    pub fn new(bytes_per_second: Option<f64>, arrivals: Arrivals, queue_depth: u32, seed: u64) -> Self {
        Self {
            arrivals,
            nanoseconds_per_byte: bytes_per_second.map_or(0.0, |rate| 1e9 / rate),
            random: Random::new(seed, Purpose::Timing),
            due_nanoseconds: 0.0,
            measured_from: 0,
            issued_at: 0,
            slipped_nanoseconds: 0.0,
            done_at: vec![0; queue_depth.max(1) as usize],
            oldest: 0,
            last_done_at: 0,
        }
    }

    /// Issues the next write of `size_bytes`, not before `not_before` nanoseconds (0: only the rate decides).
    #[inline]
    pub fn issue(&mut self, not_before: u64, size_bytes: u64) {
        let mut due_nanoseconds = self.due_nanoseconds;
        if not_before > 0 {
            due_nanoseconds = due_nanoseconds.max(not_before as f64);
        }
        let due = (due_nanoseconds as i64).cast_unsigned();
        let free_at = self.done_at[self.oldest].max(self.issued_at);
        // A branch instead of a maximum, so that the processor can go on before it knows both times.
        if free_at > due {
            self.issued_at = free_at;
            self.slipped_nanoseconds += (free_at - due).cast_signed() as f64;
            due_nanoseconds = free_at.cast_signed() as f64;
        } else {
            self.issued_at = due;
        }
        let is_paced = self.nanoseconds_per_byte > 0.0 || not_before > 0;
        self.measured_from = if is_paced { due } else { self.issued_at };
        let mean_gap = self.nanoseconds_per_byte * size_bytes as f64;
        let gap = match self.arrivals {
            Arrivals::Fixed => mean_gap,
            Arrivals::Poisson => self.random.exponential(mean_gap),
        };
        // Starts from the unrounded due time, so that fractions of a nanosecond do not change the rate over days.
        self.due_nanoseconds = due_nanoseconds + gap;
    }

    /// Issues a request directly after the previous one: a read beside it, or a flush after it, which waits for a free
    /// slot of the queue (`waits_for_slot`).
    #[inline]
    pub fn issue_along(&mut self, not_before: u64, waits_for_slot: bool) {
        let free_at = if waits_for_slot { self.done_at[self.oldest] } else { 0 };
        self.issued_at = self.issued_at.max(not_before).max(free_at);
        self.measured_from = self.issued_at;
    }

    /// Returns the time at which the latest request was issued, in nanoseconds.
    #[inline]
    #[must_use]
    pub fn issued_at(&self) -> u64 {
        self.issued_at
    }

    /// Completes the latest request at `done_at`; returns its latency from when it was due, in nanoseconds.
    #[inline]
    pub fn complete(&mut self, done_at: u64) -> u64 {
        self.last_done_at = self.last_done_at.max(done_at);
        self.done_at[self.oldest] = self.last_done_at;
        self.oldest += 1;
        if self.oldest == self.done_at.len() {
            self.oldest = 0;
        }
        self.last_done_at - self.measured_from
    }

    /// Completes the latest request, a read, which does not delay later writes; returns its latency in nanoseconds.
    #[inline]
    pub fn complete_read(&mut self, done_at: u64) -> u64 {
        done_at - self.measured_from
    }

    /// Returns the seconds by which back-pressure delayed the schedule since the last call, and resets them.
    pub fn take_slip_seconds(&mut self) -> f64 {
        std::mem::take(&mut self.slipped_nanoseconds) / 1e9
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fast_drive_sees_the_rate_and_a_slow_one_sets_it() {
        let run = |service: u64| {
            let mut host = Host::new(Some(1e9), Arrivals::Fixed, 4, 1);
            let mut latency = 0;
            for _ in 0..10_000 {
                host.issue(0, 1000);
                let done = host.issued_at().max(host.last_done_at) + service;
                latency = host.complete(done);
            }
            (host.issued_at(), latency)
        };
        let (end, latency) = run(100);
        assert!((9_999_000..=9_999_001).contains(&end), "{end}");
        assert!(latency <= 101, "{latency}");
        let (end, latency) = run(5000);
        assert!((49_900_000..=50_000_000).contains(&end), "{end}");
        assert!((20_000..=25_000).contains(&latency), "{latency}: the queue depth times the service time, no more");
    }
}
