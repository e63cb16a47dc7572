//! Appending thread: encodes due batches into buffers, writes these to segments, and acknowledges the batches.

mod backlog;
mod finish;
mod lay;
mod plan;
mod roll;

pub(crate) use plan::{ShardOutcome, ShardPlan, Work};

use crate::buffers::Buffers;
use crate::encode::BatchEncoder;
use crate::error::Result;
use crate::figures;
use crate::io::{Done, Inbox, Io, IoMethod, Request};
use crate::log::{AppendLog, LogLayout, LogState, Role};
use crate::memory::journal_bytes;
use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::clock::nanoseconds;
use cliffwatch_measure::recorder::OldestDue;
use std::collections::VecDeque;
use std::sync::Arc;

/// Maximum wait in nanoseconds, after which stop requests are checked.
const LOOK_NANOSECONDS: u64 = 50_000_000;
/// Interval in nanoseconds at which the remaining growth of the files is measured.
const COUNT_NANOSECONDS: u64 = NANOSECONDS / 2;
/// Time limit in nanoseconds for requests in flight at the end of load.
const DRAIN_NANOSECONDS: u64 = 30 * NANOSECONDS;
/// Time in nanoseconds after the end of load during which batches due before it may still be started.
const LAST_NANOSECONDS: u64 = NANOSECONDS;
/// Bytes acknowledged by the journal at which a checkpoint begins early.
const UNCHECKED_BYTES: u64 = 64 << 20;

const WRITE: u64 = 0;
const SYNC: u64 = 1;
const ALLOCATE: u64 = 2;
const OPEN: u64 = 3;

fn token(kind: u64, buffer: u32, log: usize) -> u64 {
    kind << 56 | u64::from(buffer) << 32 | log as u64
}

#[derive(Clone, Copy, Default)]
struct BufferedWrite {
    file: i32,
    from: u32,
    length: u32,
    offset: u64,
    begun: u64,
    /// Range of the buffer that lost its payload (to a copied block or padding), to be restored after the write.
    foreign: (u32, u32),
}

/// Appending thread. Fields are dropped in order: `io` has to end its writes before `plan` closes the files.
pub(crate) struct Shard {
    io: Io,
    plan: ShardPlan,
    reason: Option<String>,
    inbox: Arc<Inbox>,
    buffers: Buffers,
    encoder: BatchEncoder,
    parts: Vec<BufferedWrite>,
    ready: VecDeque<u32>,
    done: Vec<Done>,
    released: u64,
    horizon: u64,
    look_at: u64,
    count_at: u64,
    /// End of the journal's wait for more batches to sync together; `u64::MAX` when it does not wait.
    group_until: u64,
    /// Index of the first batch that the journal has not acknowledged.
    acknowledged: u64,
    unchecked_bytes: u64,
    checkpoint_at: u64,
    /// Index of the first batch that is not yet to be written to the entries.
    checkpoint_to: u64,
    /// Ranges of batches that the journal shed, which the entries skip.
    shed: VecDeque<(u64, u64)>,
}

impl Shard {
    /// Creates a shard and allocates all that it needs.
    pub(crate) fn new(plan: ShardPlan) -> Result<Self> {
        let chunk_bytes = plan.config.log.chunk_bytes as usize;
        let slot_bytes = crate::encode::slot_bytes(&plan.config, chunk_bytes);
        let buffers = Buffers::new(plan.buffers, chunk_bytes, plan.config.record.randomness, slot_bytes)?;
        let depth = u32::try_from(plan.buffers + plan.logs.len()).unwrap_or(u32::MAX);
        let inbox = Arc::new(Inbox::new(64)?);
        let (io, reason) = Io::new(plan.config.io, depth, &buffers, Arc::clone(&inbox))?;
        let released = plan.schedule.released(plan.start.saturating_sub(1));
        Ok(Self {
            io,
            reason,
            inbox,
            encoder: BatchEncoder::new(&plan.config, chunk_bytes),
            parts: vec![BufferedWrite::default(); plan.buffers],
            ready: VecDeque::with_capacity(plan.logs.len()),
            done: Vec::with_capacity(depth as usize),
            released,
            horizon: 0,
            look_at: 0,
            count_at: 0,
            group_until: u64::MAX,
            acknowledged: released,
            unchecked_bytes: 0,
            checkpoint_at: plan.start + nanoseconds(plan.config.log.checkpoint_seconds),
            checkpoint_to: released,
            shed: VecDeque::new(),
            buffers,
            plan,
        })
    }

    /// Returns the I/O method in effect.
    pub(crate) fn method(&self) -> IoMethod {
        self.io.method()
    }

    /// Returns the reason for an I/O setup other than configured, None if it is as configured.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.reason.as_deref()
    }

    /// Appends until the work is done or a stop is requested, and closes the files.
    pub(crate) fn run(mut self) -> Result<ShardOutcome> {
        self.plan.logs.iter_mut().for_each(|log| align(log, self.released));
        let mut over_since = None;
        let mut begins = true;
        loop {
            let now = self.plan.clock.now();
            if over_since.is_none() && self.is_over(now) {
                over_since = Some(now);
                if !self.plan.stop.is_requested() {
                    self.release(now);
                }
            }
            match over_since {
                None => self.release(now),
                Some(since) => {
                    self.checkpoint_to = self.acknowledged;
                    begins = now - since < LAST_NANOSECONDS && !self.plan.stop.is_requested();
                    if self.is_drained(begins) || now - since > DRAIN_NANOSECONDS || self.plan.failure.is_reported() {
                        break;
                    }
                }
            }
            self.advance_ready(begins)?;
            self.look(now);
            self.reap(self.patience(now))?;
        }
        self.close()
    }

    fn is_over(&self, now: u64) -> bool {
        if self.plan.stop.is_requested() || self.plan.failure.is_reported() {
            return true;
        }
        match self.plan.work {
            Work::Until(end) => now >= end,
            Work::Batches(count) => {
                self.released == count
                    && self.plan.logs.iter().all(|log| log.next >= count && log.state == LogState::Idle)
            }
        }
    }

    /// Returns true when no request is in flight or about to begin, and the entries hold all batches that the journal
    /// acknowledged. Wakes logs that have batches left.
    fn is_drained(&mut self, begins: bool) -> bool {
        let mut drained = true;
        for at in 0..self.plan.logs.len() {
            let log = &self.plan.logs[at];
            let waits = if self.shape(at).role == Role::Entries {
                log.next < self.acknowledged
            } else {
                begins && log.next < self.released
            };
            if waits {
                self.wake(at);
            }
            drained &= !waits && self.plan.logs[at].state == LogState::Idle;
        }
        drained
    }

    /// Releases the batches due at `now` and wakes their logs. Starts checkpoints and ends the journal's wait when they
    /// are due.
    fn release(&mut self, now: u64) {
        let released = match self.plan.work {
            Work::Batches(count) => count,
            Work::Until(end) => self.plan.schedule.released(now.min(end - 1)).max(self.released),
        };
        let burst = nanoseconds(self.plan.config.burst_seconds);
        if matches!(self.plan.work, Work::Until(_)) && now > self.plan.start.saturating_add(burst) {
            self.horizon = self.plan.schedule.released(now - burst);
        }
        let logs = self.main_logs() as u64;
        if released - self.released >= logs {
            (0..logs as usize).for_each(|at| self.wake(at));
        } else {
            (self.released..released).for_each(|index| self.wake((index % logs) as usize));
        }
        self.released = released;
        if now >= self.group_until {
            self.group_until = u64::MAX;
            self.wake(0);
        }
        if self.has_entries() && (now >= self.checkpoint_at || self.unchecked_bytes >= UNCHECKED_BYTES) {
            if now >= self.checkpoint_at {
                self.checkpoint_at = now + nanoseconds(self.plan.config.log.checkpoint_seconds);
            }
            self.unchecked_bytes = 0;
            self.checkpoint_to = self.acknowledged;
            self.wake(1);
        }
    }

    fn has_entries(&self) -> bool {
        self.plan.shapes.len() > 1
    }

    /// Returns the number of logs that are written by due time: all of them, or the journal alone.
    fn main_logs(&self) -> usize {
        if self.has_entries() { 1 } else { self.plan.logs.len() }
    }

    fn shape(&self, at: usize) -> &LogLayout {
        if self.has_entries() { &self.plan.shapes[at] } else { &self.plan.shapes[0] }
    }

    fn wake(&mut self, at: usize) {
        let log = &mut self.plan.logs[at];
        if log.state == LogState::Idle && !log.queued {
            log.queued = true;
            self.ready.push_back(at as u32);
        }
    }

    /// Starts the pending work of each ready log once, until buffers run out; without `begins`, only of the entries.
    fn advance_ready(&mut self, begins: bool) -> Result<()> {
        for _ in 0..self.ready.len() {
            let Some(at) = self.ready.pop_front() else { break };
            let at = at as usize;
            self.plan.logs[at].queued = false;
            if !begins && self.shape(at).role != Role::Entries {
                continue;
            }
            if !self.advance(at)? {
                self.plan.logs[at].queued = true;
                self.ready.push_front(at as u32);
                break;
            }
            if self.io.method() == IoMethod::Inline {
                self.reap(0)?;
            }
        }
        Ok(())
    }

    /// Starts to write the waiting batches of a log, or first to roll its segment or allocate space. Returns false when
    /// too few buffers are free.
    fn advance(&mut self, at: usize) -> Result<bool> {
        if self.plan.logs[at].state != LogState::Idle {
            return Ok(true);
        }
        self.shed_overdue(at);
        let waiting = self.waiting(at);
        let batch_bytes = self.plan.config.batch_bytes();
        if waiting == 0 || self.waits_for_group(at, waiting * batch_bytes) {
            return Ok(true);
        }
        let now = self.plan.clock.now();
        let preallocate_bytes = self.shape(at).preallocate_bytes;
        let log = &mut self.plan.logs[at];
        log.group.begun.get_or_insert(now);
        let room = log.limit.saturating_sub(log.length) / batch_bytes;
        if log.file.is_none() || room == 0 {
            self.roll(at)?;
            return Ok(true);
        }
        let batches = self.flight_batches(at, waiting.min(room));
        if batches == 0 {
            return Ok(false);
        }
        let log = &mut self.plan.logs[at];
        let end = log.length + batches * batch_bytes;
        if preallocate_bytes > 0 && end > log.allocated {
            let length =
                preallocate_bytes.min(log.limit.next_multiple_of(4096) - log.allocated).max(end - log.allocated);
            log.state = LogState::Allocating;
            let request = Request::Allocate { file: log.descriptor(), offset: log.allocated, length };
            log.group.bytes = length;
            self.io.submit(token(ALLOCATE, 0, at), request)?;
            return Ok(true);
        }
        self.write(at, batches)?;
        Ok(true)
    }

    /// Records the due times of the oldest batches every `LOOK_NANOSECONDS` and updates the gauges every
    /// `COUNT_NANOSECONDS`.
    fn look(&mut self, now: u64) {
        if now < self.look_at {
            return;
        }
        self.look_at = now + LOOK_NANOSECONDS;
        if matches!(self.plan.work, Work::Until(_)) {
            let due = |batch| self.plan.schedule.due(batch);
            let oldest =
                OldestDue { outstanding: self.oldest_outstanding().map(due), unbegun: self.oldest_unbegun().map(due) };
            self.plan.recorder.lock().look(now, oldest);
        }
        if now >= self.count_at {
            self.count_at = now + COUNT_NANOSECONDS;
            let growth_left = self.growth_left() as f64;
            let mut recorder = self.plan.recorder.lock();
            recorder.set(figures::GROWTH, growth_left);
            if matches!(self.plan.work, Work::Until(_)) {
                let batches = self.plan.schedule.per_second(now);
                recorder.set(figures::REQUESTED, batches * f64::from(self.plan.config.batch_records));
            }
        }
    }

    /// Returns the first batch that is due and not started.
    fn oldest_unbegun(&self) -> Option<u64> {
        let logs = &self.plan.logs[..self.main_logs()];
        logs.iter().map(|log| log.next).min().filter(|&batch| batch < self.released)
    }

    /// Returns the first batch that is due and not acknowledged, whether it is being written or not started.
    fn oldest_outstanding(&self) -> Option<u64> {
        let logs = &self.plan.logs[..self.main_logs()];
        let first = |log: &AppendLog| if log.group.batches > 0 { log.group.first } else { log.next };
        logs.iter().map(first).min().filter(|&batch| batch < self.released)
    }

    /// Returns the bytes by which the files on the load's own volume may still grow, until retention deletes as much as
    /// is added.
    fn growth_left(&self) -> u64 {
        let left = |(at, log): (usize, &AppendLog)| {
            let shape = self.shape(at);
            let most = match shape.role {
                Role::Journal if self.plan.config.journal_directory.is_some() => 0,
                Role::Journal => journal_bytes(shape.segment_bytes),
                Role::Main | Role::Entries => shape.retention_bytes,
            };
            most.saturating_sub(log.taken_bytes())
        };
        self.plan.logs.iter().enumerate().map(left).sum()
    }

    /// Returns how long to wait for completions, in nanoseconds; 0: not at all.
    fn patience(&self, now: u64) -> u64 {
        if self.io.method() == IoMethod::Inline && !self.ready.is_empty() {
            // Nothing is in flight to wait for, and even the shortest wait is a sleep.
            return 0;
        }
        let due = match self.plan.work {
            Work::Until(end) => self.plan.schedule.due(self.released).min(self.group_until).min(end.max(now + 1)),
            Work::Batches(_) => u64::MAX,
        };
        due.saturating_sub(self.plan.clock.now()).clamp(1, LOOK_NANOSECONDS)
    }

    fn close(mut self) -> Result<ShardOutcome> {
        self.look_at = 0;
        self.look(self.plan.clock.now());
        let mut unwritten = 0;
        for at in 0..self.plan.logs.len() {
            if self.shape(at).role != Role::Entries {
                let log = &self.plan.logs[at];
                unwritten += self.released.saturating_sub(log.next).div_ceil(log.stride);
            }
            if self.plan.logs[at].state == LogState::Idle {
                self.plan.logs[at].end();
                self.close_segment(at)?;
            }
        }
        Ok(ShardOutcome { unwritten })
    }
}

/// Moves a log to its first batch that was not released before the start.
fn align(log: &mut AppendLog, released: u64) {
    if log.next < released {
        log.next += (released - log.next).div_ceil(log.stride) * log.stride;
    }
}
