//! Consumers that read during the load: some follow the end of every partition, one reads the oldest segments.

use crate::config::Config;
use crate::error::{Error, Result};
use crate::figures;
use crate::segments::{Catalogue, RECORDS, Segment, segment_path};
use cliffwatch_measure::NANOSECONDS;
use cliffwatch_measure::clock::{Clock, nanoseconds};
use cliffwatch_measure::record::HEADER_BYTES;
use cliffwatch_measure::recorder::Recorder;
use cliffwatch_measure::schedule::{NextStep, Pacer, Schedule, Step};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Interval at which a tailing consumer polls all partitions; it polls more slowly when a pass takes longer.
const TAIL_NANOSECONDS: u64 = NANOSECONDS / 100;
const LOOK_NANOSECONDS: u64 = 50_000_000;

/// Kind of a consumer: the segments that it reads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum ReaderKind {
    /// Reads the ends of all partitions as they are written.
    Tailing,
    /// Reads the oldest segments, at this rate in bytes per second.
    CatchUp(f64),
}

/// Returns the kinds of all configured consumers.
pub(crate) fn kinds(config: &Config) -> Vec<ReaderKind> {
    let mut kinds = vec![ReaderKind::Tailing; config.readers.tailing as usize];
    if config.readers.catch_up_bytes_per_second > 0.0 {
        kinds.push(ReaderKind::CatchUp(config.readers.catch_up_bytes_per_second));
    }
    kinds
}

/// Consumer, run by a thread of its own.
pub(crate) struct Reader {
    /// Kind of the consumer.
    pub kind: ReaderKind,
    /// Segments of all logs.
    pub catalogue: Arc<Catalogue>,
    /// Configuration of the load.
    pub config: Arc<Config>,
    /// Clock of the load.
    pub clock: Clock,
    /// Start of the load, in nanoseconds since the epoch.
    pub start: u64,
    /// Recorder of the consumer's counters and latencies.
    pub recorder: Recorder,
    /// Flag that ends the consumer when set.
    pub over: Arc<AtomicBool>,
}

/// Position of a consumer in a log.
#[derive(Default)]
struct ReadPosition {
    base: u64,
    position: u64,
    file: Option<File>,
}

impl Reader {
    /// Reads until `over` is set; fails at the first I/O error.
    pub(crate) fn run(self) -> Result<()> {
        let mut buffer = vec![0; self.config.readers.read_bytes as usize];
        match self.kind {
            ReaderKind::Tailing => self.tail(&mut buffer),
            ReaderKind::CatchUp(rate) => self.catch_up(&mut buffer, rate),
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Polls all partitions every `TAIL_NANOSECONDS` and reads the records acknowledged since the last poll.
    fn tail(&self, buffer: &mut [u8]) -> Result<()> {
        let mut places: Vec<ReadPosition> = (0..self.catalogue.count()).map(|_| ReadPosition::default()).collect();
        for (log, place) in places.iter_mut().enumerate() {
            let segments = self.catalogue.segments(log);
            let end = segments.active.or(segments.full.back().copied());
            (place.base, place.position) = end.map_or((0, 0), |segment| (segment.base, segment.bytes));
        }
        let mut due = self.start;
        while !self.is_over() {
            for (log, place) in places.iter_mut().enumerate() {
                while let Some(bytes) = self.available(log, place) {
                    let wanted = buffer.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
                    if !self.read(log, place, &mut buffer[..wanted], due)? || self.is_over() {
                        break;
                    }
                }
            }
            due += TAIL_NANOSECONDS;
            due = due.max(self.clock.now());
            self.clock.sleep_until(due);
        }
        Ok(())
    }

    /// Returns the number of bytes that a tailing consumer can read, None if there are none; at the end of a full
    /// segment moves it to the next.
    fn available(&self, log: usize, place: &mut ReadPosition) -> Option<u64> {
        let segments = self.catalogue.segments(log);
        let all = || segments.full.iter().chain(&segments.active);
        let here = all().find(|segment| segment.base == place.base).filter(|segment| segment.bytes > place.position);
        if let Some(here) = here {
            return Some(here.bytes - place.position);
        }
        let next = all().find(|segment| segment.base > place.base || place.file.is_none() && place.position == 0)?;
        (place.base, place.position, place.file) = (next.base, 0, None);
        (next.bytes > 0).then_some(next.bytes)
    }

    /// Reads the oldest segments, log after log, at `rate` bytes per second.
    fn catch_up(&self, buffer: &mut [u8], rate: f64) -> Result<()> {
        let steps = [Step { after_seconds: 0.0, per_second: rate / buffer.len() as f64 }];
        let mut pacer = Pacer::new(Schedule::new(self.start, &steps)?, nanoseconds(self.config.burst_seconds));
        let (mut log, mut place) = (0, ReadPosition::default());
        while !self.is_over() {
            let due = match pacer.turn(self.clock.now()) {
                NextStep::Due { due, .. } => due,
                NextStep::Wait(until) => {
                    self.clock.sleep_until(until.min(self.clock.now() + LOOK_NANOSECONDS));
                    continue;
                }
            };
            for _ in 0..=self.catalogue.count() {
                if self.cold(log, &mut place) {
                    self.read(log, &mut place, buffer, due)?;
                    break;
                }
                log = (log + 1) % self.catalogue.count();
                place = ReadPosition::default();
            }
        }
        Ok(())
    }

    /// Moves a catching-up consumer to the next unread bytes of a log's full segments; returns false at their end.
    fn cold(&self, log: usize, place: &mut ReadPosition) -> bool {
        let segments = self.catalogue.segments(log);
        let unread = |segment: &&Segment| {
            segment.base > place.base || segment.base == place.base && segment.bytes > place.position
        };
        let Some(next) = segments.full.iter().find(unread) else { return false };
        if next.base != place.base {
            (place.base, place.position, place.file) = (next.base, 0, None);
        }
        true
    }

    /// Executes one read and records it. Returns false if retention has deleted the segment or it has no more bytes.
    fn read(&self, log: usize, place: &mut ReadPosition, buffer: &mut [u8], due: u64) -> Result<bool> {
        let path = || segment_path(self.catalogue.directory(log), place.base, RECORDS);
        let begun = self.clock.now();
        if place.file.is_none() {
            match File::open(path()) {
                Ok(file) => place.file = Some(file),
                // Retention has deleted the segment.
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    place.position = u64::MAX / 2;
                    return Ok(false);
                }
                Err(error) => return Err(Error::file(path(), "open it")(error)),
            }
        }
        let Some(file) = &place.file else { return Ok(false) };
        let count = file.read_at(buffer, place.position).map_err(Error::file(path(), "read it"))?;
        let now = self.clock.now();
        let mut tally = self.recorder.lock();
        tally.latency(figures::READ, now.saturating_sub(due), 1);
        tally.latency(figures::READ_SERVICE, now - begun.min(now), 1);
        tally.add(figures::READS, 1);
        tally.add(figures::READ_BYTES, count as u64);
        if let (ReaderKind::Tailing, Some(stamp)) = (self.kind, self.stamp(place.position, &buffer[..count])) {
            tally.latency(figures::END_TO_END, now.saturating_sub(stamp), 1);
        }
        drop(tally);
        place.position += count as u64;
        Ok(count > 0)
    }

    /// Returns the due time, in nanoseconds since the epoch, of the first record that begins in `bytes`; None if record
    /// lengths vary or no header is in `bytes`.
    fn stamp(&self, position: u64, bytes: &[u8]) -> Option<u64> {
        let record = u64::from(self.config.fixed_record()?);
        let at = usize::try_from(position.next_multiple_of(record) - position).ok()?;
        let header = bytes.get(at..at + HEADER_BYTES)?;
        let stamp: [u8; 8] = header[24..32].try_into().ok()?;
        Some(u64::from_le_bytes(stamp) * 1_000)
    }
}
