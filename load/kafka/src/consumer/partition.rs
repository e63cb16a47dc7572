//! Read state of one partition: leader, position, and the check of its records.

use cliffwatch_measure::record::{self, Fault};

use crate::batch::compress::decompress;
use crate::batch::read::{ReceivedBatch, ReceivedRecord};
use crate::hot::leaders::HasLeader;
use crate::track::{Arrival, Track};

/// A partition assigned to a consumer, with its read position and record checks.
pub(crate) struct Partition {
    /// Partition id: its index among all partitions of the run.
    pub(crate) id: usize,
    /// Index of its topic among the run's topics.
    pub(crate) topic: usize,
    /// Partition number within the topic.
    pub(crate) index: i32,
    /// Index of its leader among the client's brokers; None while it has none.
    pub(crate) leader: Option<usize>,
    /// Offset of the next record to fetch; None while unknown.
    pub(crate) position: Option<i64>,
    /// Position that the broker rejected as out of range, until reading resumes.
    pub(crate) refused: Option<i64>,
    /// High watermark in the last fetch response; -1 before the first.
    pub(crate) high_watermark: i64,
    /// End offset, requested once all writing has ended.
    pub(crate) end: Option<i64>,
    /// Not fetched before this time, in nanoseconds since the epoch, after an error; 0 when not held back.
    pub(crate) held_until: u64,
    /// The position has changed since it was last sent in the fetch session.
    pub(crate) is_moved: bool,
    /// Sequences read of each producer, gaps, and record counts.
    pub(crate) track: Track,
}

/// Filter for the records that are counted as ours rather than foreign.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Only records with this value in the upper 24 bits of their producer are counted as ours; None accepts every
    /// intact record.
    pub(crate) incarnation: Option<u32>,
}

/// Record counts and due times of one examined batch.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Due time of each of our records, in microseconds since the epoch.
    pub(crate) due_microseconds: Vec<u64>,
    /// Producer of the last of our records.
    pub(crate) producer: Option<u32>,
    /// Value bytes of our records.
    pub(crate) value_bytes: u64,
    /// Our records that were read after one with a higher sequence.
    pub(crate) reordered: u64,
    /// Our records that had been read before.
    pub(crate) duplicated: u64,
    /// Our records with a wrong checksum or in the wrong partition.
    pub(crate) corrupted: u64,
    /// Records not written by the expected producers.
    pub(crate) foreign: u64,
    /// True when the batch has a wrong CRC, cannot be decompressed, or holds a malformed record.
    pub(crate) is_damaged: bool,
}

impl Contents {
    fn clear(&mut self) {
        let mut due_microseconds = std::mem::take(&mut self.due_microseconds);
        due_microseconds.clear();
        *self = Self { due_microseconds, ..Self::default() };
    }
}

impl HasLeader for Partition {
    fn topic_partition(&self) -> (usize, i32) {
        (self.topic, self.index)
    }

    fn leader(&self) -> Option<usize> {
        self.leader
    }

    fn set_leader(&mut self, leader: Option<usize>) {
        // A hold after an error of the previous leader does not apply to the new one.
        (self.leader, self.held_until) = (leader, 0);
    }
}

impl Partition {
    /// Creates a partition without leader or position.
    #[must_use]
    pub(crate) fn new(id: usize, topic: usize, index: i32) -> Self {
        Self {
            id,
            topic,
            index,
            leader: None,
            position: None,
            refused: None,
            high_watermark: -1,
            end: None,
            held_until: 0,
            is_moved: true,
            track: Track::default(),
        }
    }

    /// True when the position has reached the end offset.
    #[must_use]
    pub(crate) fn is_drained(&self) -> bool {
        matches!((self.position, self.end), (Some(position), Some(end)) if position >= end)
    }

    /// Resumes reading at the log's first offset after an out-of-range error. An offset above the rejected position
    /// means that retention deleted the records in between, which count as expired. Otherwise the log was truncated,
    /// and missing records count as lost.
    pub(crate) fn go_on_at(&mut self, offset: i64) {
        if self.refused.take().is_some_and(|refused| offset > refused) {
            self.track.skip();
        }
        (self.position, self.is_moved) = (Some(offset), true);
    }

    /// Checks the records of a batch from offset `from` on and counts them in `contents`; `room` is the buffer for
    /// decompression.
    pub(crate) fn examine(
        &mut self,
        batch: &ReceivedBatch<'_>,
        from: i64,
        expected: Expected,
        room: &mut Vec<u8>,
        contents: &mut Contents,
    ) {
        contents.clear();
        if batch.is_control() {
            return;
        }
        if !batch.is_intact() {
            contents.is_damaged = true;
            self.track.found.corrupted += u64::try_from(batch.count).unwrap_or(0);
            return;
        }
        let mut records = batch.records();
        if batch.compression() != 0 {
            if decompress(batch.compression(), records, room).is_err() {
                contents.is_damaged = true;
                self.track.found.corrupted += u64::try_from(batch.count).unwrap_or(0);
                return;
            }
            records = room;
        }
        for _ in 0..batch.count {
            let Ok(record) = ReceivedRecord::take(&mut records) else {
                contents.is_damaged = true;
                return;
            };
            if batch.base_offset.saturating_add(record.offset_delta) >= from {
                self.examine_value(record.value.unwrap_or_default(), expected, contents);
            }
        }
    }

    #[inline]
    fn examine_value(&mut self, value: &[u8], expected: Expected, contents: &mut Contents) {
        let identity = match record::check(value) {
            Ok((identity, length)) if length == value.len() => identity,
            // A wrong checksum, but a header that states the right length: one of our records, corrupted.
            Err(Fault::Checksum) if says_length(value) => {
                contents.corrupted += 1;
                self.track.found.corrupted += 1;
                return;
            }
            _ => {
                contents.foreign += 1;
                return;
            }
        };
        match expected.incarnation {
            Some(incarnation) if identity.producer >> 8 != incarnation => {
                contents.foreign += 1;
                return;
            }
            Some(_) if identity.partition as usize != self.id => {
                contents.corrupted += 1;
                self.track.found.corrupted += 1;
                return;
            }
            Some(_) => {}
            // The producer may have begun before this consumer: its first record read counts as its first.
            None => self.track.begins(identity.producer, identity.sequence),
        }
        match self.track.arrive(identity.producer, identity.sequence) {
            Arrival::InOrder => {}
            Arrival::Reordered => contents.reordered += 1,
            Arrival::Duplicated => contents.duplicated += 1,
        }
        contents.producer = Some(identity.producer);
        contents.due_microseconds.push(identity.timestamp_microseconds);
        contents.value_bytes += value.len() as u64;
    }
}

fn says_length(value: &[u8]) -> bool {
    let length = value.get(4..8).and_then(|field| field.first_chunk::<4>());
    length.is_some_and(|length| u32::from_le_bytes(*length) as usize == value.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_records_that_went_from_the_log_s_beginning_are_excused() {
        for (offset, lost) in [(30, 0), (0, 20)] {
            let mut partition = Partition::new(0, 0, 0);
            (0..10).for_each(|sequence| _ = partition.track.arrive(1, sequence));
            (partition.refused, partition.position) = (Some(10), None);
            partition.go_on_at(offset);
            partition.track.arrive(1, 30);
            assert_eq!((partition.position, partition.track.lost(1, 31, &[])), (Some(offset), lost));
        }
    }
}
