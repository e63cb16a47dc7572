"""Detection while a run goes on: one window at a time, in memory that does not grow."""
