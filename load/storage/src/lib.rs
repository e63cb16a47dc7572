//! Does to a file system what log-structured brokers do.
