//! Hot path shared by producers and consumers: one thread each, which blocks only in `Poller::wait`.

pub(crate) mod background;
pub(crate) mod backoff;
pub(crate) mod broker;
pub(crate) mod client;
pub(crate) mod events;
pub(crate) mod leaders;
pub(crate) mod link;
pub(crate) mod poll;
pub(crate) mod prompt;
pub(crate) mod refresh;
pub(crate) mod thread;
pub(crate) mod wake_up;
