"""The database: an index over journals, and the tokens, schedules and workloads that journals do not hold."""
