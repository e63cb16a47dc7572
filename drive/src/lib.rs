//! A flash drive that garbage-collects, to think with and to test on.
//!
//! [`ftl`] is the drive's translation layer.

pub mod error;
pub mod ftl;
mod memory;
pub mod random;
