"""What log-structured brokers do to a file system, without the broker: `cliffwatch-load storage`."""
