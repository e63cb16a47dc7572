//! How a load would write its files here, found out without a file.

use crate::buffers::Buffers;
use crate::config::Config;
use crate::error::Result;
use crate::io::{Inbox, Io, IoMethod};
use crate::memory::buffers;
use std::sync::Arc;

/// How files would be written, and why not as it was asked for.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct IoTrial {
    /// How.
    pub io: IoMethod,
    /// What is otherwise than asked for; nothing when all is as asked for.
    pub reason: Option<String>,
}

/// Sets up what every thread of the load writes with, all of it at once, because limits count what a user has in all.
pub(crate) fn try_io(config: &Config) -> Result<IoTrial> {
    let (count, chunk_bytes) = (buffers(config)?, config.log.chunk_bytes as usize);
    let depth = u32::try_from(count + (config.logs() / config.threads) as usize + 1).unwrap_or(u32::MAX);
    let mut set_up = Vec::new();
    for _ in 0..config.threads {
        let buffers = Buffers::new(count, chunk_bytes, config.record.randomness, 0)?;
        set_up.push(Io::new(config.io, depth, &buffers, Arc::new(Inbox::new(64)?))?);
    }
    let differing = set_up.iter().find(|(_, reason)| reason.is_some());
    let found = differing.or(set_up.first()).map(|(io, reason)| IoTrial { io: io.method(), reason: reason.clone() });
    Ok(found.unwrap_or(IoTrial { io: config.io, reason: None }))
}
