//! What became of the records of one partition: lost, duplicated, reordered or corrupted, and what proves it.

use serde::Serialize;

/// Gaps remembered for each producer; a record that fills an older one counts as duplicated.
const GAPS_MAX: usize = 4_096;

/// Sequences without their end.
pub(crate) type Sequences = (u64, u64);

/// The records of one producer in one partition, as they were read.
#[derive(Debug, Default, Clone)]
struct ProducerStream {
    producer: u32,
    next: u64,
    gaps: Vec<Sequences>,
    /// Sequences in gaps that are no longer remembered.
    forgotten: u64,
}

/// What a record turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The one that was to come.
    InOrder,
    /// Later than one with a higher sequence.
    Reordered,
    /// There before.
    Duplicated,
}

/// Follows the records of one partition.
#[derive(Debug, Default, Clone)]
pub(crate) struct Track {
    streams: Vec<ProducerStream>,
    /// What was found so far.
    pub(crate) found: RecordCounts,
}

/// How many records of a partition turned out to be what.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct RecordCounts {
    /// Read, intact, duplicates included.
    pub(crate) read: u64,
    /// There before.
    pub(crate) duplicated: u64,
    /// Later than one with a higher sequence.
    pub(crate) reordered: u64,
    /// Not as they were written.
    pub(crate) corrupted: u64,
}

impl Track {
    /// A record was read.
    #[inline]
    pub(crate) fn arrive(&mut self, producer: u32, sequence: u64) -> Arrival {
        self.found.read += 1;
        let at = match self.streams.iter().position(|stream| stream.producer == producer) {
            Some(at) => at,
            None => {
                self.streams.push(ProducerStream { producer, ..ProducerStream::default() });
                self.streams.len() - 1
            }
        };
        let stream = &mut self.streams[at];
        if sequence == stream.next {
            stream.next += 1;
            return Arrival::InOrder;
        }
        if sequence > stream.next {
            stream.skip_to(sequence);
            stream.next = sequence + 1;
            return Arrival::InOrder;
        }
        if stream.fill(sequence) {
            self.found.reordered += 1;
            Arrival::Reordered
        } else {
            self.found.duplicated += 1;
            Arrival::Duplicated
        }
    }

    /// Reading begins with this record of a producer whose earlier ones nobody will read.
    pub(crate) fn begins(&mut self, producer: u32, sequence: u64) {
        if self.streams.iter().all(|stream| stream.producer != producer) {
            self.streams.push(ProducerStream { producer, next: sequence, ..ProducerStream::default() });
        }
    }

    /// How many records have been passed over and not been read since.
    #[must_use]
    pub(crate) fn missing(&self) -> u64 {
        self.streams.iter().map(ProducerStream::missing).sum()
    }

    /// How many records of `producer` before `end` were not read, those in `unacknowledged` (in order) not counted.
    #[must_use]
    pub(crate) fn lost(&self, producer: u32, end: u64, unacknowledged: &[Sequences]) -> u64 {
        let nothing = ProducerStream::default();
        let stream = self.streams.iter().find(|stream| stream.producer == producer).unwrap_or(&nothing);
        let tail = (stream.next, end.max(stream.next));
        let gaps = stream.gaps.iter().chain(std::iter::once(&tail));
        let excused = |gap: &Sequences| -> u64 {
            unacknowledged.iter().map(|other| gap.1.min(other.1).saturating_sub(gap.0.max(other.0))).sum()
        };
        gaps.map(|gap| gap.1 - gap.0 - excused(gap)).sum::<u64>() + stream.forgotten
    }
}

impl ProducerStream {
    fn missing(&self) -> u64 {
        self.gaps.iter().map(|(from, to)| to - from).sum::<u64>() + self.forgotten
    }

    fn skip_to(&mut self, sequence: u64) {
        if self.gaps.len() == GAPS_MAX {
            let (from, to) = self.gaps.remove(0);
            self.forgotten += to - from;
        }
        self.gaps.push((self.next, sequence));
    }

    fn fill(&mut self, sequence: u64) -> bool {
        let Some(at) = self.gaps.iter().position(|(from, to)| (*from..*to).contains(&sequence)) else { return false };
        let (from, to) = self.gaps.remove(at);
        if sequence + 1 < to {
            self.gaps.insert(at, (sequence + 1, to));
        }
        if from < sequence {
            self.gaps.insert(at, (from, sequence));
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(sequences: &[u64]) -> Track {
        let mut track = Track::default();
        for &sequence in sequences {
            track.arrive(9, sequence);
        }
        track
    }

    #[test]
    fn loss_duplication_and_reordering_are_distinguished() {
        assert_eq!((read(&[0, 1, 2]).missing(), read(&[0, 1, 2]).found.read), (0, 3));
        assert_eq!(read(&[0, 1, 4]).missing(), 2);
        assert_eq!(read(&[0, 3, 2, 1, 4]).found, RecordCounts { read: 5, reordered: 2, ..RecordCounts::default() });
        assert_eq!(read(&[0, 1, 1, 0]).found, RecordCounts { read: 4, duplicated: 2, ..RecordCounts::default() });
    }

    #[test]
    fn what_was_never_acknowledged_is_not_lost() {
        let track = read(&[0, 1, 4, 8]);
        assert_eq!(track.lost(9, 10, &[]), 6);
        assert_eq!(track.lost(9, 10, &[(2, 3), (6, 10)]), 2);
        assert_eq!(track.lost(7, 5, &[]), 5);
        assert_eq!(track.lost(9, 5, &[]), 5);
    }

    #[test]
    fn gaps_that_are_forgotten_stay_missing() {
        let mut track = Track::default();
        for sequence in 0..2 * GAPS_MAX as u64 + 10 {
            track.arrive(9, 2 * sequence + 1);
        }
        assert_eq!(track.missing(), 2 * GAPS_MAX as u64 + 10);
        assert_eq!(track.streams[0].gaps.len(), GAPS_MAX);
        assert_eq!(track.arrive(9, 0), Arrival::Duplicated);
    }
}
