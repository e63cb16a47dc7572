//! What tests and benchmarks of the Kafka client share: a broker that keeps nothing, a load on it, and a client to compare.

// What a helper of tests cannot do fails them.
#![allow(clippy::unwrap_used, clippy::panic)]

pub mod load;
pub mod null_broker;
pub mod reference_client;
