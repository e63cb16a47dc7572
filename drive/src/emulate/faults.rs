//! What can be made to go wrong with an emulated drive.

use super::drive::RequestKind;
use super::power::PowerCut;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// The faults in force. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Seconds added to every request of an operation.
    pub added_latency_seconds: AddedLatency,
    /// Writes and trims fail as on a drive that has used up its spare blocks.
    pub read_only: bool,
    /// Operations that fail with a media error.
    pub failing: Vec<RequestKind>,
    /// No request is answered for so many seconds from when this fault is set.
    pub stall_seconds: f64,
    /// The temperature that the drive reports, instead of its own.
    pub temperature_celsius: Option<f64>,
    /// Power is cut, and comes back when this fault is gone.
    pub power_cut: Option<PowerCut>,
}

/// Added latency by operation, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AddedLatency {
    /// Added to reads.
    pub read: f64,
    /// Added to writes.
    pub write: f64,
    /// Added to trims.
    pub trim: f64,
    /// Added to flushes.
    pub flush: f64,
}

/// Faults longer than this are mistakes.
const LONGEST_SECONDS: f64 = 3600.0;

impl Faults {
    /// Reads faults from JSON.
    ///
    /// # Errors
    /// One sentence that says what is wrong with them.
    pub fn parse(json: &[u8]) -> Result<Self, String> {
        let faults: Self =
            serde_json::from_slice(json).map_err(|error| format!("faults must be a JSON object: {error}"))?;
        let AddedLatency { read, write, trim, flush } = faults.added_latency_seconds;
        let times = [read, write, trim, flush, faults.stall_seconds];
        match times.iter().find(|seconds| !(0.0..=LONGEST_SECONDS).contains(*seconds)) {
            Some(seconds) => Err(format!("{seconds} seconds is out of range: give 0 to {LONGEST_SECONDS}")),
            None => Ok(faults),
        }
    }

    /// The error that a request of this operation ends with, if one is in force.
    #[must_use]
    pub fn error(&self, operation: RequestKind) -> Option<i32> {
        if self.failing.contains(&operation) {
            return Some(libc::EIO);
        }
        (self.read_only && matches!(operation, RequestKind::Write | RequestKind::Trim)).then_some(libc::EROFS)
    }

    /// By how much a request of this operation at `now` is delayed beyond its own time, given when the faults were set.
    #[must_use]
    pub fn delay(&self, operation: RequestKind, set_at: Instant, now: Instant) -> Duration {
        let AddedLatency { read, write, trim, flush } = self.added_latency_seconds;
        let added = [read, write, trim, flush][operation as usize];
        let stalled_until = set_at + Duration::from_secs_f64(self.stall_seconds);
        Duration::from_secs_f64(added) + stalled_until.saturating_duration_since(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_and_mistakes_named() {
        let faults = Faults::parse(br#"{"added_latency_seconds": {"write": 0.5}, "failing": ["read"]}"#).unwrap();
        let now = Instant::now();
        assert_eq!(faults.delay(RequestKind::Write, now, now), Duration::from_millis(500));
        assert_eq!(faults.delay(RequestKind::Read, now, now), Duration::ZERO);
        assert_eq!((faults.error(RequestKind::Read), faults.error(RequestKind::Write)), (Some(libc::EIO), None));
        assert!(Faults::parse(br#"{"stal_seconds": 1}"#).unwrap_err().contains("stal_seconds"));
        assert!(Faults::parse(br#"{"stall_seconds": -1}"#).unwrap_err().contains("out of range"));
    }

    #[test]
    fn a_stall_ends_by_itself() {
        let faults = Faults { stall_seconds: 2.0, ..Faults::default() };
        let set_at = Instant::now();
        let later = |seconds| faults.delay(RequestKind::Flush, set_at, set_at + Duration::from_secs(seconds));
        assert_eq!((later(0), later(1), later(3)), (Duration::from_secs(2), Duration::from_secs(1), Duration::ZERO));
    }
}
