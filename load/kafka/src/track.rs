//! Verification of one partition's records: counts lost, duplicated, reordered and expired ones by sequence.

use std::collections::BTreeMap;

use serde::Serialize;

/// Gaps remembered individually per producer; a late record that belongs to an older gap counts as duplicated.
const GAPS_MAX: usize = 65_536;

/// Range of record sequences: the first, and one after the last.
pub(crate) type Sequences = (u64, u64);

/// Sequences of one producer in one partition, as read so far.
#[derive(Debug, Default, Clone)]
struct ProducerStream {
    producer: u32,
    next: u64,
    /// Gaps not read yet: the end of each (exclusive) by its start.
    gaps: BTreeMap<u64, u64>,
    forgotten: ForgottenGaps,
    /// `Track::skips` as of this producer's latest record.
    skips: u32,
}

/// Oldest gaps, no longer remembered individually once there are more than `GAPS_MAX`.
#[derive(Debug, Default, Clone, Copy)]
struct ForgottenGaps {
    /// Number of sequences in these gaps.
    count: u64,
    span: Sequences,
}

/// Classification of a record by its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// The expected sequence, or a higher one, which leaves a gap.
    InOrder,
    /// Late: a record with a higher sequence was read before; fills a gap.
    Reordered,
    /// Duplicate: the sequence was read before.
    Duplicated,
}

/// Tracks the sequences of one partition's records, for each producer.
#[derive(Debug, Default, Clone)]
pub(crate) struct Track {
    streams: Vec<ProducerStream>,
    /// How often reading had to skip records that were no longer retained.
    skips: u32,
    /// Counts so far.
    pub(crate) found: RecordCounts,
}

/// Numbers of records of one partition, by what verification found.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct RecordCounts {
    /// Records read intact, duplicates included.
    pub(crate) read: u64,
    /// Records whose sequence was read before.
    pub(crate) duplicated: u64,
    /// Records read after one with a higher sequence.
    pub(crate) reordered: u64,
    /// Records read that are not as they were written.
    pub(crate) corrupted: u64,
    /// Records not read because they were no longer retained.
    pub(crate) expired: u64,
}

impl Track {
    /// Counts a record that was read and classifies it by its sequence.
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
        if stream.skips != self.skips {
            stream.skips = self.skips;
            self.found.expired += sequence.saturating_sub(stream.next);
            stream.next = stream.next.max(sequence);
        }
        if sequence == stream.next {
            stream.next = stream.next.saturating_add(1);
            return Arrival::InOrder;
        }
        if sequence > stream.next {
            stream.skip_to(sequence);
            stream.next = sequence.saturating_add(1);
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

    /// Starts tracking a producer at `sequence`, where reading begins: its earlier records do not count as missing.
    pub(crate) fn begins(&mut self, producer: u32, sequence: u64) {
        if self.streams.iter().all(|stream| stream.producer != producer) {
            self.streams.push(ProducerStream { producer, next: sequence, ..ProducerStream::default() });
        }
    }

    /// Notes that reading skipped records that are no longer retained: what is missing before the next record of each
    /// producer counts as expired, not as lost.
    pub(crate) fn skip(&mut self) {
        self.skips += 1;
    }

    /// Number of records in gaps: a later one was read and they were not.
    #[must_use]
    pub(crate) fn missing(&self) -> u64 {
        self.streams.iter().map(ProducerStream::missing).fold(0, u64::saturating_add)
    }

    /// Number of lost records of `producer` with sequences below `end`: not read though retained, without those in
    /// `unacknowledged` (sorted, disjoint).
    #[must_use]
    pub(crate) fn lost(&self, producer: u32, end: u64, unacknowledged: &[Sequences]) -> u64 {
        let Some(stream) = self.stream(producer) else {
            return if self.skips == 0 { end - within((0, end), unacknowledged) } else { 0 };
        };
        let gaps = stream.gaps.iter().map(|(&from, &to)| (from, to));
        let tail = (stream.skips == self.skips).then(|| stream.tail(end));
        let remembered: u64 = gaps.chain(tail).map(|gap| gap.1 - gap.0 - within(gap, unacknowledged)).sum();
        // Only the span of these gaps is known: unacknowledged records within it are taken to be among those missing.
        let ForgottenGaps { count, span } = stream.forgotten;
        remembered + count.saturating_sub(within(span, unacknowledged))
    }

    /// Number of records of `producer` below `end` that expired: reading skipped records after its last record read.
    #[must_use]
    pub(crate) fn expired_at_the_end(&self, producer: u32, end: u64, unacknowledged: &[Sequences]) -> u64 {
        let (skips, tail) = self.stream(producer).map_or((0, (0, end)), |stream| (stream.skips, stream.tail(end)));
        if skips == self.skips { 0 } else { tail.1 - tail.0 - within(tail, unacknowledged) }
    }

    fn stream(&self, producer: u32) -> Option<&ProducerStream> {
        self.streams.iter().find(|stream| stream.producer == producer)
    }
}

/// Number of sequences of `of` that lie within `others`, which are sorted and disjoint.
fn within(of: Sequences, others: &[Sequences]) -> u64 {
    let first = others.partition_point(|other| other.1 <= of.0);
    let touching = others[first..].iter().take_while(|other| other.0 < of.1);
    touching.map(|other| of.1.min(other.1) - of.0.max(other.0)).sum()
}

impl ProducerStream {
    /// Range from the next expected sequence up to `end`.
    fn tail(&self, end: u64) -> Sequences {
        (self.next, end.max(self.next))
    }

    fn missing(&self) -> u64 {
        self.gaps.iter().map(|(from, to)| to - from).sum::<u64>() + self.forgotten.count
    }

    fn skip_to(&mut self, sequence: u64) {
        if self.gaps.len() == GAPS_MAX
            && let Some((from, to)) = self.gaps.pop_first()
        {
            let ForgottenGaps { count, span } = &mut self.forgotten;
            *span = if *count == 0 { (from, to) } else { (span.0.min(from), to) };
            *count += to - from;
        }
        self.gaps.insert(self.next, sequence);
    }

    fn fill(&mut self, sequence: u64) -> bool {
        let Some((&from, &to)) = self.gaps.range(..=sequence).next_back().filter(|(_, to)| sequence < **to) else {
            return false;
        };
        self.gaps.remove(&from);
        if from < sequence {
            self.gaps.insert(from, sequence);
        }
        if sequence + 1 < to {
            self.gaps.insert(sequence + 1, to);
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
    fn the_last_sequence_of_all_is_no_reason_to_fail() {
        assert_eq!(read(&[0, u64::MAX, u64::MAX]).missing(), u64::MAX - 1);
    }

    #[test]
    fn what_was_no_longer_kept_is_expired_and_not_lost() {
        let mut track = read(&[0, 1, 3]);
        track.arrive(7, 0);
        track.skip();
        assert_eq!(track.arrive(9, 20), Arrival::InOrder);
        track.arrive(9, 22);
        assert_eq!(track.found.expired, 16);
        assert_eq!((track.lost(9, 25, &[]), track.expired_at_the_end(9, 25, &[])), (1 + 1 + 2, 0));
        assert_eq!((track.lost(7, 10, &[]), track.expired_at_the_end(7, 10, &[(8, 10)])), (0, 7), "not seen since");
        assert_eq!((track.lost(5, 10, &[]), track.expired_at_the_end(5, 10, &[])), (0, 10), "never seen");
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

    #[test]
    fn gaps_that_are_forgotten_are_excused_where_nothing_was_acknowledged() {
        let (mut track, count) = (Track::default(), 2 * GAPS_MAX as u64);
        for sequence in 0..count {
            track.arrive(9, 2 * sequence + 1);
        }
        let unacknowledged: Vec<Sequences> = (0..count).map(|gap| (2 * gap, 2 * gap + 1)).collect();
        assert_eq!(track.lost(9, 2 * count, &unacknowledged), 0);
        assert_eq!(track.lost(9, 2 * count, &unacknowledged[1..]), 1);
        assert_eq!(track.lost(9, 2 * count, &unacknowledged[..count as usize - 1]), 1);
    }
}
