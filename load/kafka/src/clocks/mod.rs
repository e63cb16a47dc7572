//! By how much the time of another process differs from ours.
//!
//! A run's time is the wall clock's, read once, and the monotonic clock's from then on. Where one process produces and
//! another consumes, their times differ: by what happened to the wall clock between their starts on one machine, by anything
//! on two. The producing process leaves a note with the brokers each second (`mailbox`), which says when, by its own
//! time, the notes before were begun and acknowledged. A consuming process that finds a note, or does not find it yet,
//! knows an earliest and a latest difference (`estimate`). On one machine the note itself says what the difference is.

pub(crate) mod estimate;
pub(crate) mod mailbox;
pub(crate) mod note;
pub(crate) mod peers;
pub(crate) mod wall;
mod watch;

pub(crate) use watch::{ClockContext, NoteReader, NoteWriter};
