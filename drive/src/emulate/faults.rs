//! Faults that can be injected into an emulated drive.

use super::drive::RequestKind;
use super::power::PowerCut;
use serde::{Deserialize, Serialize};
use std::time::{Duration, Instant};

/// Faults in force on an emulated drive. The default is none.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Faults {
    /// Seconds added to every request, by operation.
    pub added_latency_seconds: AddedLatency,
    /// Fails writes and trims with EROFS, as on a drive that has used up its spare blocks.
    pub read_only: bool,
    /// Operations that fail with a media error (EIO).
    pub failing: Vec<RequestKind>,
    /// Seconds, from when this fault is set, in which no request is answered.
    pub stall_seconds: f64,
    /// Temperature that the drive reports in °C, instead of the modelled one.
    pub temperature_celsius: Option<f64>,
    /// Power cut; power returns when this fault is removed.
    pub power_cut: Option<PowerCut>,
}

/// Latency added to each request, by operation, in seconds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct AddedLatency {
    /// Seconds added to reads.
    pub read: f64,
    /// Seconds added to writes.
    pub write: f64,
    /// Seconds added to trims.
    pub trim: f64,
    /// Seconds added to flushes.
    pub flush: f64,
}

/// Largest time of a fault, in seconds; longer ones are rejected.
const LONGEST_SECONDS: f64 = 3600.0;

impl Faults {
    /// Parses faults from JSON.
    ///
    /// # Errors
    /// A sentence that names what is invalid.
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

    /// Returns the error number with which a request of this operation fails, `None` if no such fault is in force.
    #[must_use]
    pub fn error(&self, operation: RequestKind) -> Option<i32> {
        if self.failing.contains(&operation) {
            return Some(libc::EIO);
        }
        (self.read_only && matches!(operation, RequestKind::Write | RequestKind::Trim)).then_some(libc::EROFS)
    }

    /// Returns the delay of a request at `now` beyond its modelled time: added latency, and the rest of a stall set at
    /// `set_at`.
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
