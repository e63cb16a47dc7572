//! Simulation plan of a seed: load, cluster, and fault schedule.

use cliffwatch_measure::NANOSECONDS;
use serde_json::{Value, json};

use super::random::Random;

const MILLISECOND: u64 = 1_000_000;
/// Delivery timeout that is longer than all faults last.
const PATIENT_SECONDS: u64 = 120;

/// Kind of fault; the broker, connections or partition that it affects are chosen when it happens.
#[derive(Debug, Clone, Copy)]
pub(super) enum Fault {
    /// Resets the connections of one broker, or of all.
    Reset,
    /// Gives a partition another leader, at once or after 1 to 400 ms without one.
    Election,
    /// Truncates the last 1 to 4 batches of a partition, acknowledged or not.
    Truncation,
    /// Stops all processing of requests for 1 to 1500 ms.
    Silence,
}

/// Settings and faults of one simulation.
#[derive(Debug)]
pub(super) struct Plan {
    pub(super) producers: u32,
    pub(super) consumers: u32,
    pub(super) brokers: i32,
    /// Partition count of each topic.
    pub(super) topics: Vec<i32>,
    pub(super) load_nanoseconds: u64,
    pub(super) drain_nanoseconds: u64,
    pub(super) producer: Value,
    pub(super) is_strict: bool,
    pub(super) keeps_sessions: bool,
    /// Rate of rejected batches, per mille.
    pub(super) refusals: u64,
    pub(super) latency_nanoseconds: (u64, u64),
    pub(super) room_bytes: usize,
    pub(super) piece_bytes: usize,
    /// Faults with their time after the load's start, in nanoseconds, in order.
    pub(super) faults: Vec<(u64, Fault)>,
}

impl Plan {
    pub(super) fn of(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let load_nanoseconds = random.between(200, 1_500) * MILLISECOND;
        let is_idempotent = random.per_mille(700);
        let delivery_seconds = if random.per_mille(300) { random.between(1, 3) } else { PATIENT_SECONDS };
        let key = if random.per_mille(300) { "round_robin" } else { "none" };
        let room_bytes = random.pick(&[300, 5_000, 1 << 20]);
        let producers = random.between(1, 2) as u32;
        let producer = json!({
            "producers": producers,
            "rate": random.pick(&[200.0, 1_000.0, 3_000.0]),
            "record_sizes": [{"size_bytes": random.pick(&[40, 200])}],
            "key": {"distribution": key, "count": 16},
            "acks": "all",
            "idempotence": is_idempotent,
            "linger_seconds": random.pick(&[0.0, 0.005, 0.05]),
            "batch_size_bytes": random.pick(&[600, 4_000]),
            "request_size_bytes": random.pick(&[1_000, 1_000_000]),
            "max_in_flight": random.between(1, if is_idempotent { 5 } else { 8 }),
            "buffer_bytes": random.pick(&[20_000, 1_000_000]),
            // A small socket buffer makes requests slow, so they need a longer timeout.
            "request_timeout_seconds": if room_bytes < 1_000 { 5.0 } else { random.pick(&[0.2, 1.0, 5.0]) },
            "delivery_timeout_seconds": delivery_seconds,
            "retry_backoff_seconds": 0.02,
            "retry_backoff_max_seconds": 0.2,
        });
        let truncates = random.per_mille(150);
        let kinds = [Fault::Reset, Fault::Election, Fault::Silence, Fault::Reset];
        let mut faults: Vec<(u64, Fault)> = (0..random.between(0, 12))
            .map(|_| (random.between(0, load_nanoseconds + 300 * MILLISECOND), random.pick(&kinds)))
            .collect();
        if truncates {
            faults.push((random.between(0, load_nanoseconds), Fault::Truncation));
        }
        faults.sort_by_key(|(at, _)| *at);
        Self {
            producers,
            consumers: random.between(1, 2) as u32,
            brokers: random.between(1, 3) as i32,
            topics: (0..random.between(1, 2)).map(|_| random.between(1, 3) as i32).collect(),
            load_nanoseconds,
            drain_nanoseconds: 120 * NANOSECONDS,
            producer,
            is_strict: random.per_mille(500),
            keeps_sessions: random.per_mille(700),
            refusals: random.pick(&[0, 0, 10, 100]),
            latency_nanoseconds: random.pick(&[(50_000, 300_000), (100_000, 20 * MILLISECOND)]),
            room_bytes,
            piece_bytes: random.pick(&[61, 500, 1 << 20]),
            faults,
        }
    }

    /// Whether producers are idempotent: each record is in the log at most once, in order.
    pub(super) fn is_idempotent(&self) -> bool {
        self.producer["idempotence"] == json!(true)
    }

    /// Whether records may stay unacknowledged: with a short delivery timeout, after a truncation, or where brokers
    /// reject an unknown producer id, so that it is not known what they have of it.
    pub(super) fn may_give_up(&self) -> bool {
        let is_patient = self.producer["delivery_timeout_seconds"].as_u64() >= Some(PATIENT_SECONDS);
        !is_patient || self.truncates() || (self.is_strict && self.is_idempotent())
    }

    pub(super) fn truncates(&self) -> bool {
        self.faults.iter().any(|(_, fault)| matches!(fault, Fault::Truncation))
    }
}
