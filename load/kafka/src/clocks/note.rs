//! What a producing process says of its time.

use std::num::NonZeroU64;

use cliffwatch_measure::clock::Clock;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::wall;

/// Notes remembered: a reader that looks less often than this many notes come does not need the older ones.
const REMEMBERED: usize = 8;
const READINGS: usize = 16;
const NANOSECONDS: i64 = 1_000_000_000;

/// The clock that all times of a process hang on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Of the kernel since it started; the monotonic clock is one for all who have the same.
    boot: String,
    /// … unless they live in another time namespace.
    namespace: String,
    /// The run's time less the monotonic clock's, in nanoseconds.
    base: i64,
}

/// When a note was started and acknowledged, in nanoseconds of its writer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AcknowledgedNote {
    /// Notes are counted from 1.
    pub(crate) number: u64,
    /// It cannot have been read before.
    pub(crate) begun: u64,
    /// Everybody who asked later has read it.
    pub(crate) acknowledged: u64,
}

/// A note, as it lies with the brokers.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClockNote {
    /// Its number.
    pub(crate) number: u64,
    /// When it was started, in nanoseconds of its writer's time.
    pub(crate) begun: u64,
    /// Notes before it.
    pub(crate) before: Vec<AcknowledgedNote>,
    /// What its writer's wall clock was ahead of its time, in nanoseconds.
    pub(crate) wall_ahead: i64,
    /// Where its writer is.
    pub(crate) machine: Machine,
}

/// Writes the notes of a process.
pub(crate) struct NoteSequence {
    machine: Machine,
    number: u64,
    before: Vec<AcknowledgedNote>,
}

impl Machine {
    /// Where this process is. None where the kernel does not say.
    #[must_use]
    pub(crate) fn here(clock: Clock) -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace = std::fs::read_link("/proc/self/ns/time").ok()?.to_string_lossy().into_owned();
        Some(Self { boot, namespace, base: base(clock) })
    }

    /// What the time of a process there is ahead of ours, where that follows from the monotonic clock alone.
    #[must_use]
    pub(crate) fn ahead_of(&self, ours: &Self) -> Option<i64> {
        (self.boot == ours.boot && self.namespace == ours.namespace).then_some(self.base - ours.base)
    }
}

/// The run's time less the monotonic clock's: the reading that was least disturbed.
fn base(clock: Clock) -> i64 {
    let monotonic = || {
        let now = clock_gettime(ClockId::Monotonic);
        now.tv_sec * NANOSECONDS + now.tv_nsec
    };
    let reading = |_| {
        let (before, time, after) = (monotonic(), clock.now().cast_signed(), monotonic());
        (after - before, time - before - (after - before) / 2)
    };
    (0..READINGS).map(reading).min().map_or(0, |(_, base)| base)
}

impl NoteSequence {
    /// For the process at `machine`.
    #[must_use]
    pub(crate) fn new(machine: Machine) -> Self {
        Self { machine, number: 0, before: Vec::new() }
    }

    /// The next note.
    pub(crate) fn next(&mut self, clock: Clock) -> ClockNote {
        self.number += 1;
        ClockNote {
            number: self.number,
            begun: clock.now(),
            before: self.before.clone(),
            wall_ahead: wall::ahead_of(clock).unwrap_or(0),
            machine: self.machine.clone(),
        }
    }

    /// A note was acknowledged.
    pub(crate) fn acknowledged(&mut self, note: &ClockNote, at: u64) {
        if self.before.len() == REMEMBERED {
            self.before.remove(0);
        }
        self.before.push(AcknowledgedNote { number: note.number, begun: note.begun, acknowledged: at });
    }
}

/// Half of what reading two clocks at once may be off by.
pub(crate) const READING_ERROR_NANOSECONDS: NonZeroU64 = NonZeroU64::new(1_000).unwrap();
