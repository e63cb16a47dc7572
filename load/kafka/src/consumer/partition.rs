//! A partition as its consumer sees it: how far it was read, and what its records turned out to be.

use cliffwatch_measure::record::{self, Fault};

use crate::batch::compress::decompress;
use crate::batch::read::{ReceivedBatch, ReceivedRecord};
use crate::hot::leaders::HasLeader;
use crate::track::{Arrival, Track};

/// A partition.
pub(crate) struct Partition {
    /// Its id: where it stands among all of the run.
    pub(crate) id: usize,
    /// Its topic, by index among the topics.
    pub(crate) topic: usize,
    /// Its number in the topic.
    pub(crate) index: i32,
    /// Its leader, by index among the brokers; None while it has none.
    pub(crate) leader: Option<usize>,
    /// The offset of the next record; None while it is not known.
    pub(crate) position: Option<i64>,
    /// The offset of a record that the broker did not have when it was asked for.
    pub(crate) refused: Option<i64>,
    /// The offset after the last record that could be read when the broker last answered.
    pub(crate) high_watermark: i64,
    /// The offset after the last record, once all writing has ended.
    pub(crate) end: Option<i64>,
    /// After an error it is not read before this moment.
    pub(crate) held_until: u64,
    /// The fetch session does not know its position.
    pub(crate) is_moved: bool,
    /// What became of its records.
    pub(crate) track: Track,
}

/// What is read of a run's own records and of others'.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Expected {
    /// Whose records are meant: those with this in the upper 24 bits of their producer. None for all that are intact.
    pub(crate) incarnation: Option<u32>,
}

/// What a batch held.
#[derive(Debug, Default)]
pub(crate) struct Contents {
    /// Microseconds since the epoch at which each of our records was due.
    pub(crate) due_microseconds: Vec<u64>,
    /// Whose they are: what the last of them says.
    pub(crate) producer: Option<u32>,
    /// Value bytes of our records.
    pub(crate) value_bytes: u64,
    /// Our records that came late.
    pub(crate) reordered: u64,
    /// Our records that were there before.
    pub(crate) duplicated: u64,
    /// Records that are not as they were written.
    pub(crate) corrupted: u64,
    /// Records that are not ours.
    pub(crate) foreign: u64,
    /// True when the batch itself is not as it was written.
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
        // What was wrong with the one before is not held against the new one.
        (self.leader, self.held_until) = (leader, 0);
    }
}

impl Partition {
    /// Nothing is known of it.
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

    /// True when everything was read that had been written when writing ended.
    #[must_use]
    pub(crate) fn is_drained(&self) -> bool {
        matches!((self.position, self.end), (Some(position), Some(end)) if position >= end)
    }

    /// Reading goes on at the first record that is kept. Where that comes after the one that was asked for, those between
    /// are no longer kept; where it does not, the log was cut off, and what was in it is lost.
    pub(crate) fn go_on_at(&mut self, offset: i64) {
        if self.refused.take().is_some_and(|refused| offset > refused) {
            self.track.skip();
        }
        (self.position, self.is_moved) = (Some(offset), true);
    }

    /// Reads a batch, from offset `from` on, into `contents`; `room` is for what is compressed.
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
            // What has a header of ours and the length that it says was ours.
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
            // Of a stream that began before us, what we see first is its beginning.
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
