//! Trial of a load's I/O setup: determines the I/O method without writing files.

use crate::buffers::Buffers;
use crate::config::Config;
use crate::error::Result;
use crate::io::{Inbox, Io, IoMethod};
use crate::memory::buffers;
use std::sync::Arc;

/// I/O method that a load would use, and the reason if its setup differs from the configured one.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub(crate) struct IoTrial {
    /// I/O method in effect.
    pub io: IoMethod,
    /// Reason for a setup other than configured; None if it is as configured.
    pub reason: Option<String>,
}

/// Sets up the I/O of all threads at once, since the kernel's limits apply to a user's total, and returns the method in
/// effect.
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
