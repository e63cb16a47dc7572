//! Workload of many append-only segment files with retention, as a log-structured broker writes.

use super::extents::Extents;
use super::pick::Picker;
use super::{Operation, OperationKind, Workload};
use crate::error::{Error, Result};
use crate::random::{Purpose, Random};
use std::collections::VecDeque;

/// Policy by which appends are flushed, that is, made to survive a loss of power.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sync {
    /// No flushes: the operating system gathers writes up to the given size before the drive receives them.
    WriteBack {
        /// Bytes that the operating system gathers per file.
        gathered_bytes: u64,
    },
    /// A flush after every write.
    EveryWrite,
    /// A flush after so many bytes of one file.
    Every {
        /// Bytes of one file between flushes.
        bytes: u64,
    },
}

/// Settings of the stream workload. All sizes are in bytes.
#[derive(Clone, Debug)]
pub struct StreamSettings {
    /// Segment files written at the same time.
    pub streams: u32,
    /// Size of one append to a segment.
    pub write_bytes: u64,
    /// Policy by which appends are flushed.
    pub sync: Sync,
    /// Size at which a segment is closed.
    pub segment_bytes: u64,
    /// Share of the volume that files may hold; beyond it the oldest closed segments are deleted.
    pub retention: f64,
    /// Whether the pages of deleted segments are trimmed.
    pub trim: bool,
    /// Size of an extent: the space that the file system allocates to a file at a time.
    pub extent_bytes: u64,
    /// Disorder in the reuse of freed extents: 0 in the order in which they were freed, 1 at random.
    pub disorder: f64,
    /// Stream i is written at a rate of (i + 1)^-skew.
    pub rate_skew: f64,
    /// Bytes per page of the drive.
    pub page_bytes: u64,
    /// Pages in the volume.
    pub volume_pages: u32,
}

/// Open segment file of a stream.
#[derive(Clone, Copy)]
struct StreamSegment {
    /// Next page to write, and number of pages left in its extent from there.
    page: u32,
    extent_pages: u32,
    /// Pages left until the segment is full.
    segment_pages: u32,
    /// Number of parts already written to the page at `page`.
    parts: u32,
    first_extent: u32,
    last_extent: u32,
    extents: u32,
    unflushed_bytes: u64,
}

struct Closed {
    first_extent: u32,
    extents: u32,
}

/// Workload of many append-only segment files.
pub struct Streams {
    random: Random,
    picker: Picker,
    extents: Extents,
    open: Vec<StreamSegment>,
    closed: VecDeque<Closed>,
    extent_limit: usize,
    extent_pages: u32,
    segment_pages: u32,
    /// Whole pages per write, 0 where a write is a part of a page.
    write_pages: u32,
    parts_per_page: u32,
    write_bytes: u64,
    flush_bytes: Option<u64>,
    trim: bool,
}

impl Streams {
    /// Creates the workload, with segments that are at first filled to random degrees.
    ///
    /// # Errors
    /// [`Error::Setting`] where sizes do not divide one another or the volume is too small for the open segments.
    pub fn new(settings: &StreamSettings, seed: u64) -> Result<Self> {
        let page_bytes = settings.page_bytes;
        let (write_bytes, flush_bytes) = match settings.sync {
            Sync::WriteBack { gathered_bytes } => (settings.write_bytes.max(gathered_bytes), None),
            Sync::EveryWrite => (settings.write_bytes, Some(settings.write_bytes)),
            Sync::Every { bytes } => (settings.write_bytes, Some(bytes)),
        };
        let divides = |part: u64, whole: u64| part > 0 && whole > 0 && whole.is_multiple_of(part);
        if !divides(page_bytes, write_bytes) && !divides(write_bytes, page_bytes) {
            let advice = format!("{write_bytes} bytes is neither a multiple nor a divisor of the page of {page_bytes}");
            return Err(Error::setting("write-size", advice));
        }
        if !divides(page_bytes, settings.extent_bytes) {
            return Err(Error::setting("extent-size", format!("must be a multiple of the page of {page_bytes} bytes")));
        }
        if !divides(settings.extent_bytes, settings.segment_bytes) {
            let advice = format!("must be a multiple of the extent of {} bytes", settings.extent_bytes);
            return Err(Error::setting("segment-size", advice));
        }
        if settings.streams == 0 || settings.streams > 65_536 {
            return Err(Error::setting("streams", "must be between 1 and 65536"));
        }
        let in_pages = |bytes: u64| u32::try_from(bytes / page_bytes).unwrap_or(u32::MAX);
        let (extent_pages, segment_pages) = (in_pages(settings.extent_bytes), in_pages(settings.segment_bytes));
        let extents = settings.volume_pages / extent_pages;
        let extent_limit = (f64::from(extents) * settings.retention) as usize;
        let open_extents = settings.streams as usize * (segment_pages / extent_pages) as usize;
        if extent_limit < open_extents + 1 {
            let advice = format!(
                "{} open segments of {} bytes do not fit in the retained share of the volume: use fewer streams, smaller \
                 segments (--segment-size, --extent-size) or a larger drive",
                settings.streams, settings.segment_bytes
            );
            return Err(Error::setting("streams", advice));
        }
        let mut streams = Self {
            random: Random::new(seed, Purpose::Workload),
            picker: Picker::zipf(settings.streams, settings.rate_skew),
            extents: Extents::new(extents, settings.disorder, seed),
            open: Vec::with_capacity(settings.streams as usize),
            closed: VecDeque::new(),
            extent_limit,
            extent_pages,
            segment_pages,
            write_pages: in_pages(write_bytes),
            parts_per_page: (page_bytes / write_bytes).max(1) as u32,
            write_bytes,
            flush_bytes,
            trim: settings.trim,
        };
        for _ in 0..settings.streams {
            // Random lengths at first, so that segments do not all fill at the same time.
            let segment_pages = 1 + streams.random.below(segment_pages);
            streams.open.push(StreamSegment::new(segment_pages));
        }
        Ok(streams)
    }

    fn step(&mut self, batch: &mut Vec<Operation>) {
        let stream = self.picker.pick(&mut self.random);
        if self.open[stream as usize].extent_pages == 0 {
            self.extend(stream as usize, batch);
        }
        let segment = &mut self.open[stream as usize];
        let flushed = self.flush_bytes.is_some_and(|flush_bytes| segment.flushes(self.write_bytes, flush_bytes));
        if self.write_pages == 0 {
            let part = Operation::part(stream as u16, segment.page, self.write_bytes as u32);
            batch.push(Operation { flushed, ..part });
            segment.parts += 1;
            if segment.parts == self.parts_per_page {
                segment.parts = 0;
                segment.advance(1);
            }
        } else {
            let pages = self.write_pages.min(segment.extent_pages);
            batch.push(Operation {
                flushed,
                ..Operation::new(OperationKind::Write, stream as u16, segment.page, pages)
            });
            segment.advance(pages);
        }
    }

    /// Allocates the next extent of a stream's file, the first of a new file where the old one is full; deletes the
    /// oldest closed files above the retention limit.
    fn extend(&mut self, stream: usize, batch: &mut Vec<Operation>) {
        if self.open[stream].segment_pages == 0 {
            let StreamSegment { first_extent, extents, .. } = self.open[stream];
            self.closed.push_back(Closed { first_extent, extents });
            self.open[stream] = StreamSegment::new(self.segment_pages);
        }
        while self.extents.used() >= self.extent_limit {
            let Some(oldest) = self.closed.pop_front() else { break };
            self.delete(&oldest, batch);
        }
        // The limit leaves room for all open segments and one extent more, so one is free by now.
        let Some(extent) = self.extents.allocate() else { return };
        let segment = &mut self.open[stream];
        if segment.extents == 0 {
            segment.first_extent = extent;
        } else {
            self.extents.link(segment.last_extent, extent);
        }
        segment.last_extent = extent;
        segment.extents += 1;
        segment.page = extent * self.extent_pages;
        segment.extent_pages = self.extent_pages.min(segment.segment_pages);
    }

    fn delete(&mut self, file: &Closed, batch: &mut Vec<Operation>) {
        let mut extent = file.first_extent;
        for _ in 0..file.extents {
            if self.trim {
                batch.push(Operation::new(OperationKind::Trim, 0, extent * self.extent_pages, self.extent_pages));
            }
            let following = self.extents.following(extent);
            self.extents.free(extent);
            extent = following;
        }
    }
}

impl StreamSegment {
    fn new(segment_pages: u32) -> Self {
        Self {
            page: 0,
            extent_pages: 0,
            segment_pages,
            parts: 0,
            first_extent: 0,
            last_extent: 0,
            extents: 0,
            unflushed_bytes: 0,
        }
    }

    #[inline]
    fn advance(&mut self, pages: u32) {
        self.page += pages;
        self.extent_pages -= pages;
        self.segment_pages -= pages;
    }

    /// Counts a write of `write_bytes`; returns whether a flush is due, one after each `flush_bytes`.
    #[inline]
    fn flushes(&mut self, write_bytes: u64, flush_bytes: u64) -> bool {
        self.unflushed_bytes += write_bytes;
        let flushes = self.unflushed_bytes >= flush_bytes;
        if flushes {
            self.unflushed_bytes = 0;
        }
        flushes
    }
}

impl Workload for Streams {
    fn fill(&mut self, batch: &mut Vec<Operation>, count: usize) {
        (0..count).for_each(|_| self.step(batch));
    }

    fn memory_bytes(&self) -> usize {
        self.extents.memory_bytes() + self.closed.capacity() * size_of::<Closed>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings() -> StreamSettings {
        StreamSettings {
            streams: 5,
            write_bytes: 16 << 10,
            sync: Sync::EveryWrite,
            segment_bytes: 1 << 20,
            retention: 0.75,
            trim: true,
            extent_bytes: 256 << 10,
            disorder: 0.3,
            rate_skew: 0.5,
            page_bytes: 16 << 10,
            volume_pages: 4096,
        }
    }

    #[test]
    fn holds_no_more_than_is_retained_and_never_writes_what_it_holds() {
        let mut streams = Streams::new(&settings(), 1).unwrap();
        let mut held = vec![false; 4096];
        let mut batch = Vec::new();
        for _ in 0..1000 {
            batch.clear();
            streams.fill(&mut batch, 64);
            for operation in &batch {
                for page in operation.page..operation.page + operation.pages {
                    let was_held = std::mem::replace(&mut held[page as usize], operation.kind == OperationKind::Write);
                    assert!(operation.kind == OperationKind::Trim || !was_held, "page {page} was overwritten");
                }
            }
            let used = held.iter().filter(|&&held| held).count();
            assert!(used <= 4096 * 3 / 4, "{used} pages held");
        }
    }

    #[test]
    fn flushes_as_often_as_it_says() {
        let count = |sync| {
            let mut streams = Streams::new(&StreamSettings { sync, trim: false, ..settings() }, 1).unwrap();
            let mut batch = Vec::new();
            streams.fill(&mut batch, 1000);
            batch.iter().filter(|operation| operation.flushed).count()
        };
        assert_eq!(count(Sync::EveryWrite), 1000);
        assert_eq!(count(Sync::WriteBack { gathered_bytes: 1 << 20 }), 0);
        assert!((240..=250).contains(&count(Sync::Every { bytes: 64 << 10 })));
    }

    #[test]
    fn small_appends_are_parts_of_a_page() {
        let mut streams = Streams::new(&StreamSettings { write_bytes: 4096, streams: 1, ..settings() }, 1).unwrap();
        let mut batch = Vec::new();
        streams.fill(&mut batch, 8);
        let pages: Vec<u32> = batch
            .iter()
            .filter(|operation| operation.kind == OperationKind::WritePart)
            .map(|operation| operation.page)
            .collect();
        assert_eq!(pages, [0, 0, 0, 0, 1, 1, 1, 1]);
    }

    #[test]
    fn a_volume_too_small_for_the_open_segments_is_refused() {
        let Err(error) = Streams::new(&StreamSettings { streams: 48, ..settings() }, 1) else { panic!("accepted") };
        assert!(error.to_string().contains("fewer streams"), "{error}");
    }
}
