//! Simulator and emulator of a flash drive with garbage collection.
//!
//! Data flows one way: [`settings`] (flags and profiles) become a [`plan`], which [`simulate`] executes by feeding a
//! [`workload`] to the translation layer (`ftl`) and to a clock (`timing`); the result is a [`report`]. The translation
//! layer depends on page counts alone and never on time, so a run with the timing model and one without execute the
//! same operations in the same order. [`emulate`] puts the same layer and the same clock behind a file that the kernel
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
