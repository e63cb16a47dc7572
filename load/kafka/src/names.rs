//! What is counted, by its place in a window.

use cliffwatch_measure::recorder::{Merge, Names};

macro_rules! places {
    ($(#[$doc:meta])* $name:ident: $($place:ident = $text:literal),+ $(,)?) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)] // Each is described in docs/engines/kafka.md, which a test holds against this list.
        #[repr(usize)]
        pub enum $name { $($place),+ }
        impl $name {
            /// Names in the windows, in order of place.
            pub const NAMES: &'static [&'static str] = &[$($text),+];
        }
    };
}

places! {
    /// Latencies.
    Latency:
    Publish = "publish",
    PublishService = "publish_service",
    EndToEnd = "end_to_end",
}

places! {
    /// Counters.
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

places! {
    /// Gauges.
    Gauge:
    ScheduleDebt = "schedule_debt_seconds",
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

/// Everything that is counted.
pub const NAMES: Names = Names {
    latencies: Latency::NAMES,
    counters: Counter::NAMES,
    gauges: &[
        ("schedule_debt_seconds", Merge::Largest),
        ("target_rate", Merge::Sum),
        ("buffered_bytes", Merge::Sum),
        ("backlog_records", Merge::Largest),
        ("backlog_bytes", Merge::Largest),
        ("missing_records", Merge::Sum),
        ("leaderless_partitions", Merge::Largest),
        ("consumers_paused", Merge::Largest),
        ("round_trip_seconds", Merge::Measured),
        ("wall_clock_offset_seconds", Merge::Measured),
        ("clock_offset_seconds", Merge::Measured),
        ("clock_offset_bound_seconds", Merge::Measured),
    ],
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gauges_stand_where_their_names_say() {
        let names: Vec<&str> = NAMES.gauges.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, Gauge::NAMES);
    }

    #[test]
    fn every_name_stands_in_a_table_of_the_documentation() {
        let page = include_str!("../../../docs/engines/kafka.md");
        let first_cells: String =
            page.lines().filter_map(|line| line.strip_prefix("| ")?.split(" | ").next()).collect();
        for name in Latency::NAMES.iter().chain(Counter::NAMES).chain(Gauge::NAMES) {
            assert!(first_cells.contains(&format!("`{name}`")), "{name}");
        }
    }
}
