"""A workload's limits on a run: judged over the whole run, and their current values during the run."""
