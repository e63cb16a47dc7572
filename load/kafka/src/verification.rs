//! End-to-end verification of a run's records, once producing and consuming have ended.

use serde_json::{Value, json};

use crate::consumer::PartitionRead;
use crate::error::Error;
use crate::producer::Produced;
use crate::shared::Shared;
use crate::track::{RecordCounts, Sequences, Track};

/// Most partitions that are listed individually.
const LISTED_MAX: usize = 1_000;

/// Compares produced with consumed records; returns the body of the `verification` event. `begins` are start offsets.
#[must_use]
pub(crate) fn verification(
    shared: &Shared,
    reports: &[Produced],
    reads: &[PartitionRead],
    begins: &[Option<i64>],
) -> Value {
    let mut total = RecordCounts::default();
    let (mut lost, mut lost_where_drained, mut expired, mut not_drained, mut in_log, mut listed) =
        (0, 0, 0, 0, 0, Vec::new());
    for read in reads {
        let found = read.track.found;
        let lost_here = if reports.is_empty() { read.track.missing() } else { sum_of(Track::lost, read, reports) };
        let expired_here = found.expired + sum_of(Track::expired_at_the_end, read, reports);
        let is_drained = matches!((read.position, read.end), (Some(position), Some(end)) if position >= end);
        if is_drained {
            lost_where_drained += lost_here;
        } else {
            not_drained += 1;
        }
        lost += lost_here;
        expired += expired_here;
        total.read += found.read;
        total.duplicated += found.duplicated;
        total.reordered += found.reordered;
        total.corrupted += found.corrupted;
        if let (Some(end), Some(begin)) = (read.end, begins.get(read.partition).copied().flatten()) {
            in_log += end - begin;
        }
        let is_clean =
            lost_here + expired_here + found.duplicated + found.reordered + found.corrupted == 0 && is_drained;
        if !is_clean && listed.len() < LISTED_MAX {
            let found_in = &shared.partitions[read.partition];
            listed.push(json!({
                "topic": shared.topics[found_in.topic], "partition": found_in.index, "lost": lost_here,
                "expired": expired_here, "duplicated": found.duplicated, "reordered": found.reordered, "corrupted": found.corrupted,
                "position": read.position, "end_offset": read.end,
            }));
        }
    }
    let made: u64 = reports.iter().flat_map(|report| &report.partitions).map(|(made, _)| made).sum();
    let failed = reports.iter().flat_map(|report| &report.partitions).flat_map(|(_, failed)| failed);
    let failed: u64 = failed.map(|(from, to)| to - from).sum();
    let unsent: u64 = reports.iter().map(|report| report.unsent).sum();
    let (acknowledged, _) = shared.acknowledged.get();
    json!({
        "made": made, "acknowledged": acknowledged, "unacknowledged": failed, "unsent": unsent, "read": total.read, "lost": lost,
        "lost_where_drained": lost_where_drained, "expired": expired, "duplicated": total.duplicated, "reordered": total.reordered, "corrupted": total.corrupted,
        "in_log": in_log, "partitions_not_drained": not_drained, "partitions": listed,
    })
}

/// Error when records were corrupted, or lost in partitions that were read to their end; None when verification passed.
pub(crate) fn unproven(account: &Value) -> Option<Error> {
    let count = |name: &str| account[name].as_u64().unwrap_or_default();
    let (lost, corrupted) = (count("lost_where_drained"), count("corrupted"));
    (lost + corrupted > 0).then_some(Error::Unproven { lost, corrupted })
}

/// Sums `count` over all producers, each up to the number of records that it made in this partition.
fn sum_of(count: fn(&Track, u32, u64, &[Sequences]) -> u64, read: &PartitionRead, reports: &[Produced]) -> u64 {
    let of = |report: &Produced| {
        let nothing: (u64, Vec<Sequences>) = (0, Vec::new());
        let (made, failed) = report.partitions.get(read.partition).unwrap_or(&nothing);
        count(&read.track, report.identity, *made, failed)
    };
    reports.iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_that_was_not_read_to_its_end_excuses_only_its_own_losses() {
        let account = |lost: u64, lost_where_drained: u64| json!({"lost": lost, "lost_where_drained": lost_where_drained, "corrupted": 0, "partitions_not_drained": 1});
        assert!(unproven(&account(7, 0)).is_none());
        assert!(matches!(unproven(&account(7, 3)), Some(Error::Unproven { lost: 3, corrupted: 0 })));
    }
}
