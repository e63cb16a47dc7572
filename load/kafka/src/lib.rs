//! Kafka load engine: produces and consumes records and measures latency from their due times.

mod admin;
mod batch;
mod check;
mod clocks;
mod config;
mod consumer;
mod control;
mod error;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
mod hot;
mod names;
mod producer;
mod round_trip;
mod run;
mod security;
mod session;
mod shared;
#[cfg(test)]
mod simulation;
mod topics;
mod track;
mod verification;
mod wire;

pub use check::check;
pub use config::Config;
pub use error::{Error, Result};
pub use hot::prompt::take_short_turns;
pub use run::{BAD_INPUT, COMPLETED, FAILED, execute, kafka};
