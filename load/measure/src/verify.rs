//! Verification of records: finds lost, duplicated, reordered and corrupted ones by their sequences in read order.

use std::collections::HashMap;

/// Gaps kept per stream: a record that fills an older one counts as duplicated, and stays counted as lost.
const GAPS_LIMIT: usize = 1_024;

/// Counts of a verification. A record is either `intact` or `corrupted`; the other counts concern the order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Findings {
    /// Records with the right checksum.
    pub intact: u64,
    /// Records that were expected and not read.
    pub lost: u64,
    /// Records that were read before.
    pub duplicated: u64,
    /// Records that were read after one with a higher sequence.
    pub reordered: u64,
    /// Records whose bytes are not those that were written.
    pub corrupted: u64,
}

impl Findings {
    /// Whether no record was lost, duplicated, reordered or corrupted.
    pub fn are_clean(&self) -> bool {
        (self.lost, self.duplicated, self.reordered, self.corrupted) == (0, 0, 0, 0)
    }

    /// Adds the counts of another verification.
    pub fn add(&mut self, other: &Self) {
        self.intact += other.intact;
        self.lost = self.lost.saturating_add(other.lost);
        self.duplicated += other.duplicated;
        self.reordered += other.reordered;
        self.corrupted += other.corrupted;
    }
}

/// Producer and partition of a stream: all records of one producer in one partition.
pub type StreamId = (u32, u32);

#[derive(Debug, Default)]
struct Progress {
    next: u64,
    /// Skipped sequences, as ranges without their end, in ascending order.
    gaps: Vec<(u64, u64)>,
}

/// Checks the sequences of any number of streams. A stream starts with the first sequence read, unless
/// [`Verifier::begins`] sets it before.
#[derive(Debug, Default)]
pub struct Verifier {
    streams: HashMap<StreamId, Progress>,
    findings: Findings,
}

impl Verifier {
    /// Sets the sequence with which a stream has to start; to be called before its first record.
    pub fn begins(&mut self, stream: StreamId, sequence: u64) {
        self.streams.entry(stream).or_insert_with(|| Progress { next: sequence, gaps: Vec::new() });
    }

    /// Counts an intact record, and checks its place in the stream.
    pub fn intact(&mut self, stream: StreamId, sequence: u64) {
        self.findings.intact += 1;
        let progress = self.streams.entry(stream).or_insert_with(|| Progress { next: sequence, gaps: Vec::new() });
        if sequence >= progress.next {
            if sequence > progress.next {
                self.findings.lost = self.findings.lost.saturating_add(sequence - progress.next);
                if progress.gaps.len() == GAPS_LIMIT {
                    progress.gaps.remove(0);
                }
                progress.gaps.push((progress.next, sequence));
            }
            progress.next = sequence.saturating_add(1);
        } else if progress.fill(sequence) {
            self.findings.lost -= 1;
            self.findings.reordered += 1;
        } else {
            self.findings.duplicated += 1;
        }
    }

    /// Counts a corrupted record. If it is known to be the next of a stream, it is not counted as lost too.
    pub fn corrupted(&mut self, stream: Option<StreamId>) {
        self.findings.corrupted += 1;
        if let Some(progress) = stream.and_then(|stream| self.streams.get_mut(&stream)) {
            progress.next = progress.next.saturating_add(1);
        }
    }

    /// Sets the end of a stream: records missing before this sequence are counted as lost.
    pub fn ends(&mut self, stream: StreamId, sequence: u64) {
        let progress = self.streams.entry(stream).or_insert_with(|| Progress { next: sequence, gaps: Vec::new() });
        if sequence > progress.next {
            self.findings.lost = self.findings.lost.saturating_add(sequence - progress.next);
            progress.next = sequence;
        }
    }

    /// Returns the counts so far.
    pub fn findings(&self) -> Findings {
        self.findings
    }
}

impl Progress {
    /// Removes a sequence from the gap that holds it; returns false if none does.
    fn fill(&mut self, sequence: u64) -> bool {
        let Some(at) = self.gaps.iter().position(|&(from, to)| (from..to).contains(&sequence)) else { return false };
        let (from, to) = self.gaps[at];
        let rest = [(from, sequence), (sequence + 1, to)];
        self.gaps.splice(at..=at, rest.into_iter().filter(|(from, to)| from < to));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: StreamId = (0, 7);

    fn read(sequences: &[u64]) -> Findings {
        let mut verifier = Verifier::default();
        for &sequence in sequences {
            verifier.intact(STREAM, sequence);
        }
        verifier.findings()
    }

    #[test]
    fn a_stream_may_begin_anywhere_and_is_clean_in_order() {
        assert_eq!(read(&[40, 41, 42]), Findings { intact: 3, ..Findings::default() });
        assert!(read(&[40, 41, 42]).are_clean());
    }

    #[test]
    fn loss_duplication_and_reordering_are_distinguished() {
        assert_eq!(read(&[0, 1, 4]), Findings { intact: 3, lost: 2, ..Findings::default() });
        assert_eq!(read(&[0, 1, 1, 0]), Findings { intact: 4, duplicated: 2, ..Findings::default() });
        assert_eq!(read(&[0, 3, 2, 1, 4]), Findings { intact: 5, reordered: 2, ..Findings::default() });
        assert_eq!(read(&[0, 3, 1, 1]), Findings { intact: 4, lost: 1, duplicated: 1, reordered: 1, corrupted: 0 });
    }

    #[test]
    fn what_is_missing_at_either_end_is_lost() {
        let mut verifier = Verifier::default();
        verifier.begins(STREAM, 10);
        verifier.intact(STREAM, 12);
        verifier.ends(STREAM, 15);
        verifier.ends((1, 1), 15);
        assert_eq!(verifier.findings(), Findings { intact: 1, lost: 4, ..Findings::default() });
    }

    #[test]
    fn a_damaged_record_in_its_place_is_not_lost_too() {
        let mut verifier = Verifier::default();
        verifier.intact(STREAM, 0);
        verifier.corrupted(Some(STREAM));
        verifier.intact(STREAM, 2);
        verifier.corrupted(None);
        assert_eq!(verifier.findings(), Findings { intact: 2, corrupted: 2, ..Findings::default() });
    }

    #[test]
    fn sequences_that_no_producer_gives_are_counted_as_far_as_numbers_go() {
        let mut verifier = Verifier::default();
        for stream in [STREAM, (1, 1)] {
            verifier.begins(stream, 0);
            verifier.intact(stream, u64::MAX);
            verifier.corrupted(Some(stream));
        }
        let mut findings = verifier.findings();
        assert_eq!(findings, Findings { intact: 2, lost: u64::MAX, corrupted: 2, ..Findings::default() });
        findings.add(&verifier.findings());
        assert_eq!(findings.lost, u64::MAX);
    }

    #[test]
    fn gaps_that_are_remembered_are_bounded() {
        let mut verifier = Verifier::default();
        for sequence in (0..20_000).step_by(2) {
            verifier.intact(STREAM, sequence);
        }
        assert_eq!(verifier.streams[&STREAM].gaps.len(), GAPS_LIMIT);
        verifier.intact(STREAM, 1);
        assert_eq!(verifier.findings().duplicated, 1);
    }
}
