//! State file with the drive's age, kept from one mount to the next.
//!
//! The file is a line of JSON (all but the mapping table), the mapping table as 32-bit little-endian numbers, and a
//! checksum over both. It is written under a temporary name and then renamed, so that there is always a whole one.
//! After a crash the last one is used: the data is complete in the backing file; only the drive's modelled age is as
//! old as the state file.

use crate::error::{Error, Result};
use crate::ftl::SavedLayer;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// Writes the state file durably: synced, and replaced by a rename.
///
/// # Errors
/// [`Error::File`] if that fails; the previous state is then still there.
pub fn write(path: &Path, state: &SavedLayer) -> Result<()> {
    let beside = path.with_extension("state-new");
    let attempt = || -> std::io::Result<()> {
        let mut file = BufWriter::with_capacity(1 << 20, File::create(&beside)?);
        let mut head = serde_json::to_vec(state)?;
        head.push(b'\n');
        let mut checksum = Checksum::default();
        checksum.add(&head);
        file.write_all(&head)?;
        for chunk in state.map.chunks(1 << 16) {
            let bytes: Vec<u8> = chunk.iter().flat_map(|address| address.to_le_bytes()).collect();
            checksum.add(&bytes);
            file.write_all(&bytes)?;
        }
        file.write_all(&checksum.0.to_le_bytes())?;
        file.into_inner()?.sync_all()?;
        std::fs::rename(&beside, path)?;
        // Without this sync, the name may refer to the previous state after a loss of power.
        let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
        File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
    };
    attempt().map_err(Error::file(path))
}

/// Reads the state file, `None` if there is none yet.
///
/// # Errors
/// [`Error::File`] if it cannot be read, [`Error::State`] if it is damaged.
pub fn read(path: &Path) -> Result<Option<SavedLayer>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(Error::file(path))?,
    };
    let damaged = || Error::State { path: path.into(), reason: "is damaged" };
    let mut file = BufReader::with_capacity(1 << 20, file);
    let (mut head, mut rest) = (Vec::new(), Vec::new());
    file.read_until(b'\n', &mut head).map_err(Error::file(path))?;
    file.read_to_end(&mut rest).map_err(Error::file(path))?;
    let mut state: SavedLayer = serde_json::from_slice(&head).map_err(|_| damaged())?;
    let (map, stored) = rest.split_last_chunk::<8>().ok_or_else(damaged)?;
    let mut checksum = Checksum::default();
    checksum.add(&head);
    checksum.add(map);
    if checksum.0 != u64::from_le_bytes(*stored) {
        return Err(damaged());
    }
    state.map = map.as_chunks::<4>().0.iter().map(|bytes| u32::from_le_bytes(*bytes)).collect();
    Ok(Some(state))
}

/// FNV-1a checksum of 64 bits: detects damage, not manipulation.
struct Checksum(u64);

impl Default for Checksum {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Checksum {
    fn add(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
