"""Cliffwatch: soak tests that say, while they run, when, where and why latency fell off a cliff."""
