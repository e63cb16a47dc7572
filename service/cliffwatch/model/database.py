"""Names of what windows and events of a database load hold."""

#: Counter of how often the sessions of the load were sampled.
SAMPLES = "database_samples"
#: Counters of sessions in a transaction, by what they waited for; each sample counts each such session once.
WAL, DATA, LOCK, CLIENT, CPU, OTHER = (
    f"database_{state}_sessions" for state in ("wal", "data", "lock", "client", "cpu", "other")
)
#: Counters of the server's WAL flushes, and of the time that writing and flushing it took the load's sessions.
WAL_FLUSHES = "database_wal_flushes"
WAL_WRITE_TIME, WAL_FLUSH_TIME = "database_wal_write_milliseconds", "database_wal_flush_milliseconds"
#: Events of the server's checkpoints.
CHECKPOINT_BEGUN, CHECKPOINT_COMPLETED = "checkpoint_begun", "checkpoint_completed"
