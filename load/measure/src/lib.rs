//! Measurement library of all load generators: schedules with due times that do not depend on the system under test,
//! windows on the wall clock's grid, latency histograms, and records that show when they were lost or changed.
//!
//! Order of use: create a [`clock::Clock`] and a [`schedule::Schedule`], give each thread a [`recorder::Recorder`], and
//! let [`windows::Windows`] print their counts, one line a window, on an [`output::Output`].

pub mod clock;
pub mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod histogram;
pub mod output;
pub mod record;
pub mod recorder;
pub mod schedule;
pub mod stop;
pub mod verify;
pub mod windows;

/// Nanoseconds in a second.
pub const NANOSECONDS: u64 = 1_000_000_000;
