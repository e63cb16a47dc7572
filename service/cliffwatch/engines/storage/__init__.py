"""Storage engine (`cliffwatch-load storage`): the file-system load of a log-structured broker, without the broker."""
