//! Offset index and time index of a segment, updated by small writes to mapped memory.
//!
//! Only the page being written is mapped, so that memory does not grow with the segment. The files are sparse, as long
//! as a broker's, and truncated to their entries when the segment is full.

use crate::error::{Error, Result};
use crate::segments::{OFFSET_INDEX, TIME_INDEX, segment_path};
use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};

const PAGE_BYTES: u64 = 4_096;
/// Length of an index file until it is sealed, in bytes: the default of Kafka's segment.index.bytes.
const FILE_BYTES: u64 = 10 << 20;
/// Length of an offset index entry in bytes: relative offset (4) and file position (4).
const OFFSET_ENTRY_BYTES: usize = 8;
/// Length of a time index entry in bytes: timestamp (8) and relative offset (4).
const TIME_ENTRY_BYTES: usize = 12;

/// Offset index and time index of one segment.
pub(crate) struct Indexes {
    offsets: Index,
    times: Index,
    unindexed_bytes: u64,
}

impl Indexes {
    /// Creates both index files of segment `base`; fails if one exists.
    pub(crate) fn make(directory: &Path, base: u64) -> Result<Self> {
        Ok(Self {
            offsets: Index::make(segment_path(directory, base, OFFSET_INDEX))?,
            times: Index::make(segment_path(directory, base, TIME_INDEX))?,
            unindexed_bytes: 0,
        })
    }

    /// Accounts for `bytes` appended at `position`, whose first record has the relative offset `record`. Adds an entry
    /// to both indexes when more than `interval_bytes` were appended since the last entry.
    pub(crate) fn appended(
        &mut self,
        record: u64,
        position: u64,
        bytes: u64,
        milliseconds: u64,
        interval_bytes: u32,
    ) -> Result<()> {
        if self.unindexed_bytes > u64::from(interval_bytes) {
            self.unindexed_bytes = 0;
            let record = (record as u32).to_be_bytes();
            let mut entry = [0; TIME_ENTRY_BYTES];
            entry[..4].copy_from_slice(&record);
            entry[4..8].copy_from_slice(&(position as u32).to_be_bytes());
            self.offsets.append(&entry[..OFFSET_ENTRY_BYTES])?;
            entry[..8].copy_from_slice(&milliseconds.to_be_bytes());
            entry[8..].copy_from_slice(&record);
            self.times.append(&entry)?;
        }
        self.unindexed_bytes += bytes;
        Ok(())
    }

    /// Truncates both files to their entries and, if `sync`, syncs them.
    pub(crate) fn seal(self, sync: bool) -> Result<()> {
        self.offsets.seal(sync)?;
        self.times.seal(sync)
    }
}

struct Index {
    path: PathBuf,
    page: Option<(u64, MmapMut)>,
    length: u64,
}

impl Index {
    fn make(path: PathBuf) -> Result<Self> {
        let file = File::create_new(&path).map_err(Error::file(&path, "make it"))?;
        file.set_len(FILE_BYTES).map_err(Error::file(&path, "make it so long"))?;
        Ok(Self { path, page: None, length: 0 })
    }

    fn append(&mut self, mut entry: &[u8]) -> Result<()> {
        while !entry.is_empty() && self.length < FILE_BYTES {
            let (number, within) = (self.length / PAGE_BYTES, (self.length % PAGE_BYTES) as usize);
            if self.page.as_ref().is_none_or(|(mapped, _)| *mapped != number) {
                self.page = Some((number, self.map(number)?));
            }
            let Some((_, page)) = &mut self.page else { return Ok(()) };
            let fits = entry.len().min(page.len() - within);
            page[within..within + fits].copy_from_slice(&entry[..fits]);
            entry = &entry[fits..];
            self.length += fits as u64;
        }
        Ok(())
    }

    fn map(&self, number: u64) -> Result<MmapMut> {
        let opened = File::options().read(true).write(true).open(&self.path);
        let file = opened.map_err(Error::file(&self.path, "open it"))?;
        // Allocate the page first: writing to a mapped page for which the volume has no space raises SIGBUS.
        match fallocate(&file, FallocateFlags::KEEP_SIZE, number * PAGE_BYTES, PAGE_BYTES) {
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(Error::file(&self.path, "allocate a page of it")(error)),
        }
        // SAFETY: the page lies within the file, whose length changes only in `seal`, when no page is mapped any more;
        // the file is in the run's own directory, where no other process writes.
        unsafe { MmapOptions::new().offset(number * PAGE_BYTES).len(PAGE_BYTES as usize).map_mut(&file) }
            .map_err(Error::file(&self.path, "map it"))
    }

    fn seal(mut self, sync: bool) -> Result<()> {
        self.page = None;
        let file = match File::options().write(true).open(&self.path) {
            // Retention has deleted the file.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(Error::file(&self.path, "open it"))?,
        };
        file.set_len(self.length).map_err(Error::file(&self.path, "cut it"))?;
        if sync { file.sync_all().map_err(Error::file(&self.path, "sync it")) } else { Ok(()) }
    }
}
