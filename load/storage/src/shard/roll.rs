//! Roll from a full segment to the next.

use super::{OPEN, Shard, token};
use crate::error::{Error, Result};
use crate::figures;
use crate::files::FileTask;
use crate::log::LogState;
use std::sync::Arc;

impl Shard {
    /// Closes the active segment, deletes old segments by retention, and submits the creation of the next segment.
    pub(super) fn roll(&mut self, at: usize) -> Result<()> {
        self.close_segment(at)?;
        let shape = self.shape(at).clone();
        let log = &mut self.plan.logs[at];
        log.base = if let [sequence] = log.sequences[..] { sequence } else { log.base + 1 };
        log.limit = shape.limit(log.number, log.base);
        (log.length, log.tail) = (0, None);
        let expired = log.expire(shape.retention_bytes, log.limit);
        for segment in &expired {
            self.plan.file_threads.submit(FileTask::Delete(log.paths(segment.base, &shape)));
        }
        if shape.start_checkpoint && !expired.is_empty() {
            let (path, sequence) = log.start();
            self.plan.file_threads.submit(FileTask::Replace(path, format!("{sequence}\n")));
        }
        log.allocated = shape.preallocate_bytes.min(log.limit.next_multiple_of(4096));
        log.state = LogState::Opening;
        let (path, inbox) = (log.path(), Arc::clone(&self.inbox));
        let (direct, allocate_bytes, token) = (shape.direct, log.allocated, token(OPEN, 0, at));
        self.plan.file_threads.submit(FileTask::Create { path, direct, allocate_bytes, token, inbox });
        let mut tally = self.plan.recorder.lock();
        tally.add(figures::ROLLS, 1);
        tally.add(figures::DELETIONS, expired.len() as u64);
        Ok(())
    }

    pub(super) fn close_segment(&mut self, at: usize) -> Result<()> {
        let (sync, snapshot_bytes) = (self.shape(at).sync_on_roll, self.shape(at).snapshot_bytes);
        let log = &mut self.plan.logs[at];
        let (path, snapshot_path) = (log.path(), log.snapshot_path());
        let indexes = log.indexes.take();
        let Some((file, full)) = log.fill_up() else { return Ok(()) };
        let snapshot = (snapshot_bytes > 0).then_some(snapshot_path);
        if let Some(path) = &snapshot {
            // Create the file here, before its deletion can be submitted.
            std::fs::write(path, vec![0; snapshot_bytes as usize]).map_err(Error::file(path, "write it"))?;
        }
        self.plan.file_threads.submit(FileTask::Seal { file, path, bytes: full.bytes, indexes, snapshot, sync });
        Ok(())
    }
}
