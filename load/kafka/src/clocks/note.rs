//! Clock notes: a producing process's timestamps, published for consuming processes.

use std::num::NonZeroU64;

use cliffwatch_measure::clock::Clock;
use rustix::time::{ClockId, clock_gettime};
use serde::{Deserialize, Serialize};

use super::wall;

/// Previous notes included in each note; older ones are dropped.
const REMEMBERED: usize = 8;
const READINGS: usize = 16;
const NANOSECONDS: i64 = 1_000_000_000;

/// Identity of the monotonic clock that a process's times are based on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// Kernel boot id; processes with the same one share a monotonic clock,
    boot: String,
    /// … unless their time namespaces differ.
    namespace: String,
    /// Run time less monotonic time, in nanoseconds.
    base: i64,
}

/// Begin and acknowledgement time of a note, in nanoseconds of its writer's time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct AcknowledgedNote {
    /// Number of the note, from 1.
    pub(crate) number: u64,
    /// When its write began: no fetch can have returned it before.
    pub(crate) begun: u64,
    /// When its write was acknowledged: every fetch sent later returns it or a newer one.
    pub(crate) acknowledged: u64,
}

/// Clock note, as stored with the brokers in JSON.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct ClockNote {
    /// Number of the note, from 1.
    pub(crate) number: u64,
    /// When its write began, in nanoseconds of its writer's time.
    pub(crate) begun: u64,
    /// Previous notes that were acknowledged, oldest first, at most 8.
    pub(crate) before: Vec<AcknowledgedNote>,
    /// Nanoseconds that the writer's wall clock was ahead of its run time; 0 when it could not be read.
    pub(crate) wall_ahead: i64,
    /// Monotonic clock of the writer.
    pub(crate) machine: Machine,
}

/// Sequence of the notes of one process.
pub(crate) struct NoteSequence {
    machine: Machine,
    number: u64,
    before: Vec<AcknowledgedNote>,
}

impl Machine {
    /// Monotonic clock of this process; None when /proc does not provide boot id or time namespace.
    #[must_use]
    pub(crate) fn here(clock: Clock) -> Option<Self> {
        let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?.trim().to_owned();
        let namespace = std::fs::read_link("/proc/self/ns/time").ok()?.to_string_lossy().into_owned();
        Some(Self { boot, namespace, base: base(clock) })
    }

    /// Nanoseconds that a process with this clock is ahead of `ours`; None unless both share one monotonic clock.
    #[must_use]
    pub(crate) fn ahead_of(&self, ours: &Self) -> Option<i64> {
        (self.boot == ours.boot && self.namespace == ours.namespace).then_some(self.base - ours.base)
    }
}

/// Run time less monotonic time in nanoseconds, from the shortest of 16 readings.
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
    /// Creates the note sequence of the process with this clock.
    #[must_use]
    pub(crate) fn new(machine: Machine) -> Self {
        Self { machine, number: 0, before: Vec::new() }
    }

    /// Creates the next note, with the current time as its begin.
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

    /// Records the acknowledgement of a note, to be included in the next ones.
    pub(crate) fn acknowledged(&mut self, note: &ClockNote, at: u64) {
        if self.before.len() == REMEMBERED {
            self.before.remove(0);
        }
        self.before.push(AcknowledgedNote { number: note.number, begun: note.begun, acknowledged: at });
    }
}

/// Error bound of an offset from reading two clocks on one machine: 1 µs.
pub(crate) const READING_ERROR_NANOSECONDS: NonZeroU64 = NonZeroU64::new(1_000).unwrap();
