//! Names of the latencies, counters and gauges in the windows, by index.

use cliffwatch_measure::recorder::{Merge, Names};

macro_rules! names {
    ($(#[$doc:meta])* $name:ident: $($variant:ident = $text:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)] // Each is described in docs/engines/kafka.md, which a test holds against this list.
        #[repr(usize)]
        pub(crate) enum $name { $($variant),+ }
        impl $name {
            /// Names as the windows report them, in order of index.
            pub(crate) const NAMES: &'static [&'static str] = &[$($text),+];
        }
    };
}

names! {
    /// Latency histograms: from due time (`publish`, `end_to_end`) or from first sending (`publish_service`).
    Latency:
    Publish = "publish",
    PublishService = "publish_service",
    EndToEnd = "end_to_end",
}

names! {
    /// Counters; each window reports the increment.
    Counter:
    Operations = "operations",
    Bytes = "bytes",
    Errors = "errors",
    ProducedRecords = "produced_records",
    ProducedBytes = "produced_bytes",
    ConsumedRecords = "consumed_records",
    ConsumedBytes = "consumed_bytes",
    ProduceRequests = "produce_requests",
    ProduceBatches = "produce_batches",
    FetchRequests = "fetch_requests",
    UnsentRecords = "unsent_records",
    Retries = "retries",
    Disconnects = "disconnects",
    Reconnects = "reconnects",
    LeaderChanges = "leader_changes",
    BrokerErrors = "broker_errors",
    ThrottleMilliseconds = "throttle_milliseconds",
    ProducerIdResets = "producer_id_resets",
    DuplicatesRejected = "duplicates_rejected",
    DuplicatedRecords = "duplicated_records",
    ReorderedRecords = "reordered_records",
    CorruptedRecords = "corrupted_records",
    CorruptedBatches = "corrupted_batches",
    ForeignRecords = "foreign_records",
    NegativeLatencies = "negative_latencies",
    OffsetResets = "offset_resets",
}

names! {
    /// Gauges; each window reports the value at its end.
    Gauge:
    TargetRate = "target_rate",
    BufferedBytes = "buffered_bytes",
    BacklogRecords = "backlog_records",
    BacklogBytes = "backlog_bytes",
    MissingRecords = "missing_records",
    LeaderlessPartitions = "leaderless_partitions",
    ConsumersPaused = "consumers_paused",
    RoundTrip = "round_trip_seconds",
    WallClockOffset = "wall_clock_offset_seconds",
    ClockOffset = "clock_offset_seconds",
    ClockOffsetBound = "clock_offset_bound_seconds",
}

/// Names of all latencies, counters and gauges, with how each gauge is merged.
pub(crate) const NAMES: Names = Names {
    latencies: Latency::NAMES,
    counters: Counter::NAMES,
    gauges: &[
        (Gauge::NAMES[Gauge::TargetRate as usize], Merge::Sum),
        (Gauge::NAMES[Gauge::BufferedBytes as usize], Merge::Sum),
        (Gauge::NAMES[Gauge::BacklogRecords as usize], Merge::Largest),
        (Gauge::NAMES[Gauge::BacklogBytes as usize], Merge::Largest),
        (Gauge::NAMES[Gauge::MissingRecords as usize], Merge::Sum),
        (Gauge::NAMES[Gauge::LeaderlessPartitions as usize], Merge::Largest),
        (Gauge::NAMES[Gauge::ConsumersPaused as usize], Merge::Largest),
        (Gauge::NAMES[Gauge::RoundTrip as usize], Merge::Measured),
        (Gauge::NAMES[Gauge::WallClockOffset as usize], Merge::Measured),
        (Gauge::NAMES[Gauge::ClockOffset as usize], Merge::Measured),
        (Gauge::NAMES[Gauge::ClockOffsetBound as usize], Merge::Measured),
    ],
};

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn gauges_stand_where_their_names_say() {
        let names: Vec<&str> = NAMES.gauges.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, Gauge::NAMES);
    }

    /// Names in the first column of the documentation's table whose first heading is `heading`.
    fn documented(heading: &str) -> BTreeSet<&'static str> {
        let page = include_str!("../../../docs/engines/kafka.md");
        let rows = page.lines().skip_while(|line| !line.starts_with(&format!("| {heading} |"))).skip(2);
        rows.map_while(|line| line.strip_prefix("| ")?.split(" | ").next())
            .flat_map(|cell| cell.split('`').skip(1).step_by(2))
            .collect()
    }

    #[test]
    fn the_tables_of_the_documentation_have_what_is_counted_and_nothing_else() {
        assert_eq!(documented("counter"), BTreeSet::from_iter(Counter::NAMES.iter().copied()));
        let every_engines = ["oldest_outstanding_seconds", "schedule_debt_seconds"];
        assert_eq!(documented("gauge"), BTreeSet::from_iter(Gauge::NAMES.iter().copied().chain(every_engines)));
    }

    #[test]
    fn every_latency_is_documented() {
        let page = include_str!("../../../docs/engines/kafka.md");
        for name in Latency::NAMES {
            assert!(page.contains(&format!("`{name}`")), "{name}");
        }
    }
}
