//! Produces to and consumes from a Kafka broker and measures latency from due times.

pub mod batch;
pub mod config;
pub mod error;
