//! An offset index and a time index beside a segment, as small writes to mapped memory.
//!
//! Only the page that is being written is mapped, so that memory does not grow with the segment. The files are as long as
//! a broker makes them, sparse, and cut to their entries when the segment is full.

use crate::error::{Error, Result};
use crate::segments::{OFFSET_INDEX, TIME_INDEX, segment_path};
use memmap2::{MmapMut, MmapOptions};
use rustix::fs::{FallocateFlags, fallocate};
use rustix::io::Errno;
use std::fs::File;
use std::path::{Path, PathBuf};

const PAGE_BYTES: u64 = 4_096;
/// Kafka's segment.index.bytes.
const FILE_BYTES: u64 = 10 << 20;
/// A relative offset and a position, 4 bytes each.
const OFFSET_ENTRY_BYTES: usize = 8;
/// A timestamp of 8 bytes and a relative offset of 4.
const TIME_ENTRY_BYTES: usize = 12;

/// Both indexes of one segment.
pub(crate) struct Indexes {
    offsets: Index,
    times: Index,
    unindexed_bytes: u64,
}

impl Indexes {
    /// Makes the files of segment `base`.
    pub(crate) fn make(directory: &Path, base: u64) -> Result<Self> {
        Ok(Self {
            offsets: Index::make(segment_path(directory, base, OFFSET_INDEX))?,
            times: Index::make(segment_path(directory, base, TIME_INDEX))?,
            unindexed_bytes: 0,
        })
    }

    /// `bytes` were appended at `position`, beginning with the record so many after the segment's first. Adds an entry when
    /// more than `interval_bytes` have come in since the last.
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

    /// Cuts the files to their entries, and syncs them where that is asked for.
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
        // Touching a page that the volume has no room for would kill the process.
        match fallocate(&file, FallocateFlags::KEEP_SIZE, number * PAGE_BYTES, PAGE_BYTES) {
            Ok(()) | Err(Errno::OPNOTSUPP) => {}
            Err(error) => return Err(Error::file(&self.path, "allocate a page of it")(error)),
        }
        // SAFETY: the page lies within the file, which is as long as it was made until it is sealed, when nothing of it is
        // mapped any more; it is in a directory of the run's own, where no other process writes.
        unsafe { MmapOptions::new().offset(number * PAGE_BYTES).len(PAGE_BYTES as usize).map_mut(&file) }
            .map_err(Error::file(&self.path, "map it"))
    }

    fn seal(mut self, sync: bool) -> Result<()> {
        self.page = None;
        let file = match File::options().write(true).open(&self.path) {
            // Retention was faster.
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            opened => opened.map_err(Error::file(&self.path, "open it"))?,
        };
        file.set_len(self.length).map_err(Error::file(&self.path, "cut it"))?;
        if sync { file.sync_all().map_err(Error::file(&self.path, "sync it")) } else { Ok(()) }
    }
}
