//! Test kit of the Kafka client: a null broker, a load on it, and a reference client for comparison.

// Helpers may panic: a failure fails the test.
#![allow(clippy::unwrap_used, clippy::panic)]

pub mod load;
pub mod null_broker;
pub mod reference_client;
