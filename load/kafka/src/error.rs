//! Errors of the engine, worded for the user who started the load.

/// Result with the engine's [`Error`].
pub type Result<T> = std::result::Result<T, Error>;

/// Error of the engine.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Invalid setting; the text names the field and the remedy.
    #[error("{0}")]
    Config(String),
    /// No bootstrap server could be reached; the text lists the reasons.
    #[error("bootstrap_servers: none of them could be reached: {0}")]
    Unreachable(String),
    /// Error code returned by the broker; `name` is Kafka's name for it.
    #[error("{doing}: the broker says {name}{}{advice}", if advice.is_empty() { "" } else { ": " })]
    Broker {
        /// Operation that failed.
        doing: String,
        /// Kafka's name of the error code, such as `NOT_LEADER_OR_FOLLOWER`.
        name: &'static str,
        /// The broker's message or a remedy; may be empty.
        advice: String,
    },
    /// I/O error of a connection or of starting the run.
    #[error("{doing}: {source}")]
    Connection {
        /// Operation that failed.
        doing: String,
        /// Error of the operating system or the TLS library.
        source: std::io::Error,
    },
    /// Response that is not valid Kafka protocol.
    #[error("{0}: the answer is not one of the Kafka protocol")]
    Protocol(&'static str),
    /// Verification failed: acknowledged records were lost, or records were corrupted.
    #[error(
        "{lost} acknowledged records are lost and {corrupted} are not as they were written; `verification` says where"
    )]
    Unproven {
        /// Acknowledged records that were not read, in partitions that were read to their end.
        lost: u64,
        /// Records read whose contents are not as they were written.
        corrupted: u64,
    },
    /// Error of the measurement library.
    #[error(transparent)]
    Measure(#[from] cliffwatch_measure::error::Error),
}

impl Error {
    /// True when a retry may succeed.
    #[must_use]
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Connection { .. } | Self::Protocol(_) => true,
            Self::Broker { name, .. } => TRANSIENT.contains(name),
            Self::Config(_) | Self::Unproven { .. } | Self::Measure(_) => false,
        }
    }
}

const TRANSIENT: [&str; 10] = [
    "OFFSET_NOT_AVAILABLE",
    "LEADER_NOT_AVAILABLE",
    "NOT_CONTROLLER",
    "REQUEST_TIMED_OUT",
    "COORDINATOR_LOAD_IN_PROGRESS",
    "COORDINATOR_NOT_AVAILABLE",
    "NOT_COORDINATOR",
    "UNKNOWN_TOPIC_OR_PARTITION",
    "NOT_LEADER_OR_FOLLOWER",
    "BROKER_NOT_AVAILABLE",
];

/// Kafka error codes that the engine handles individually.
pub(crate) mod code {
    #![allow(missing_docs)] // The names are the protocol's.
    pub(crate) const NONE: i16 = 0;
    pub(crate) const OFFSET_OUT_OF_RANGE: i16 = 1;
    pub(crate) const CORRUPT_MESSAGE: i16 = 2;
    pub(crate) const UNKNOWN_TOPIC_OR_PARTITION: i16 = 3;
    pub(crate) const NOT_ENOUGH_REPLICAS: i16 = 19;
    pub(crate) const TOPIC_ALREADY_EXISTS: i16 = 36;
    pub(crate) const OUT_OF_ORDER_SEQUENCE_NUMBER: i16 = 45;
    pub(crate) const DUPLICATE_SEQUENCE_NUMBER: i16 = 46;
    pub(crate) const INVALID_PRODUCER_EPOCH: i16 = 47;
    pub(crate) const REBALANCE_IN_PROGRESS: i16 = 27;
    pub(crate) const UNKNOWN_PRODUCER_ID: i16 = 59;
    pub(crate) const MEMBER_ID_REQUIRED: i16 = 79;
    pub(crate) const THROTTLING_QUOTA_EXCEEDED: i16 = 89;
}

/// How to handle a Kafka error code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// Refresh the metadata, then retry.
    Refresh,
    /// Retry.
    Retry,
    /// Give up: a retry cannot succeed.
    Give,
}

/// Kafka's name of an error code, and how to handle it; unknown codes are retried.
#[must_use]
pub(crate) fn describe(code: i16) -> (&'static str, Remedy) {
    use Remedy::{Give, Refresh, Retry};
    match code {
        -1 => ("UNKNOWN_SERVER_ERROR", Retry),
        0 => ("NONE", Give),
        1 => ("OFFSET_OUT_OF_RANGE", Give),
        2 => ("CORRUPT_MESSAGE", Retry),
        3 => ("UNKNOWN_TOPIC_OR_PARTITION", Refresh),
        5 => ("LEADER_NOT_AVAILABLE", Refresh),
        6 => ("NOT_LEADER_OR_FOLLOWER", Refresh),
        7 => ("REQUEST_TIMED_OUT", Retry),
        8 => ("BROKER_NOT_AVAILABLE", Refresh),
        9 => ("REPLICA_NOT_AVAILABLE", Refresh),
        10 => ("MESSAGE_TOO_LARGE", Give),
        13 => ("NETWORK_EXCEPTION", Refresh),
        14 => ("COORDINATOR_LOAD_IN_PROGRESS", Retry),
        15 => ("COORDINATOR_NOT_AVAILABLE", Retry),
        16 => ("NOT_COORDINATOR", Retry),
        17 => ("INVALID_TOPIC_EXCEPTION", Give),
        18 => ("RECORD_LIST_TOO_LARGE", Give),
        19 => ("NOT_ENOUGH_REPLICAS", Retry),
        20 => ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", Retry),
        21 => ("INVALID_REQUIRED_ACKS", Give),
        22 => ("ILLEGAL_GENERATION", Retry),
        25 => ("UNKNOWN_MEMBER_ID", Retry),
        27 => ("REBALANCE_IN_PROGRESS", Retry),
        29 => ("TOPIC_AUTHORIZATION_FAILED", Give),
        30 => ("GROUP_AUTHORIZATION_FAILED", Give),
        31 => ("CLUSTER_AUTHORIZATION_FAILED", Give),
        33 => ("UNSUPPORTED_SASL_MECHANISM", Give),
        34 => ("ILLEGAL_SASL_STATE", Give),
        35 => ("UNSUPPORTED_VERSION", Give),
        36 => ("TOPIC_ALREADY_EXISTS", Give),
        37 => ("INVALID_PARTITIONS", Give),
        38 => ("INVALID_REPLICATION_FACTOR", Give),
        40 => ("INVALID_CONFIG", Give),
        41 => ("NOT_CONTROLLER", Refresh),
        42 => ("INVALID_REQUEST", Give),
        44 => ("POLICY_VIOLATION", Give),
        45 => ("OUT_OF_ORDER_SEQUENCE_NUMBER", Retry),
        46 => ("DUPLICATE_SEQUENCE_NUMBER", Give),
        47 => ("INVALID_PRODUCER_EPOCH", Give),
        54 => ("SECURITY_DISABLED", Give),
        56 => ("KAFKA_STORAGE_ERROR", Refresh),
        58 => ("SASL_AUTHENTICATION_FAILED", Give),
        59 => ("UNKNOWN_PRODUCER_ID", Give),
        70 => ("FETCH_SESSION_ID_NOT_FOUND", Retry),
        71 => ("INVALID_FETCH_SESSION_EPOCH", Retry),
        74 => ("FENCED_LEADER_EPOCH", Refresh),
        75 => ("UNKNOWN_LEADER_EPOCH", Refresh),
        76 => ("UNSUPPORTED_COMPRESSION_TYPE", Give),
        78 => ("OFFSET_NOT_AVAILABLE", Retry),
        79 => ("MEMBER_ID_REQUIRED", Retry),
        87 => ("INVALID_RECORD", Give),
        89 => ("THROTTLING_QUOTA_EXCEEDED", Retry),
        100 => ("UNKNOWN_TOPIC_ID", Refresh),
        _ => ("an error that this engine does not know", Retry),
    }
}
