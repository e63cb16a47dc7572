//! Emulated drive: one file, served through FUSE, whose requests take as long as on the modelled drive.
//!
//! The file's content lies in a sparse backing file at the same offsets; the translation layer decides only how long
//! requests take. Attach a loop device with direct I/O to the file and the kernel sees a block device.
//!
//! [`drive`] is the modelled drive behind one lock, [`filesystem`] answers the kernel, [`delay`] holds replies back
//! until they are due, [`health`] reports metrics and the health log, [`faults`] are injected on request, [`power`]
//! emulates a power cut, [`serve`] offers these over HTTP, `backing` opens the backing file, [`saved`] keeps the
//! drive's age from one mount to the next, and [`cleanup`] removes what a killed process left.

mod backing;
pub mod cleanup;
pub mod delay;
pub mod drive;
pub mod faults;
pub mod filesystem;
pub mod health;
pub mod mount;
mod mount_source;
pub mod power;
pub mod saved;
pub mod serve;
