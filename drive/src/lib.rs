//! A flash drive that garbage-collects, to think with and to test on.
//!
//! One direction: [`settings`] (flags and profiles) become a [`plan`], which [`simulate`] executes by feeding a
//! [`workload`] to the translation layer (`ftl`) and to a clock (`timing`); what comes out is a [`report`].
//! The translation layer decides by page counts alone and never by time, so a run with the timing model and one without
//! do the same things in the same order. [`emulate`] puts the same layer and the same clock behind a file that the kernel
//! can use as a disk.

mod cliff;
pub mod emulate;
pub mod error;
mod ftl;
#[cfg(feature = "fuzzing")]
pub mod fuzzing;
pub mod interval;
mod memory;
pub mod plan;
mod random;
pub mod report;
pub mod settings;
pub mod simulate;
mod spans;
mod steady;
mod sync;
mod timing;
pub mod units;
pub mod workload;
