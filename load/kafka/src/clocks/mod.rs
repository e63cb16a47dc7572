//! Clock offset between producing and consuming processes.
//!
//! A run's time is the wall clock, read once at the start, plus the monotonic clock since. Where one process produces
//! and another consumes, their times differ: on one machine by how the wall clock was set between their starts, on two
//! by any amount. The producing process stores a note with the brokers each second (`mailbox`), which states when, by
//! its own time, the previous notes were begun and acknowledged. From a note that a fetch returns, or does not return
//! yet, a consuming process derives bounds of the offset (`estimate`). On one machine the offset follows from one note.

pub(crate) mod estimate;
pub(crate) mod mailbox;
pub(crate) mod note;
pub(crate) mod peers;
pub(crate) mod wall;
mod watch;

pub(crate) use watch::{ClockContext, NoteReader, NoteWriter};
