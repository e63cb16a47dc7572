//! Produces to and consumes from a Kafka broker and measures latency from due times.

pub mod admin;
pub mod batch;
pub mod check;
pub mod clocks;
mod conduct;
pub mod config;
pub mod consumer;
pub mod error;
pub mod hot;
pub mod names;
pub mod producer;
pub mod run;
pub mod security;
pub mod session;
pub mod shared;
mod topics;
pub mod track;
mod trips;
mod verdict;
pub mod wire;

pub use check::check;
pub use run::{BAD_INPUT, COMPLETED, FAILED, carry_out, kafka};
