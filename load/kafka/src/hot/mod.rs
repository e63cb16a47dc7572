//! What both hot paths, producing and consuming, are made of: one thread each that never waits but in `Poller::wait`.

pub mod errands;
pub mod link;
pub mod poll;
pub mod prompt;
pub mod tell;
