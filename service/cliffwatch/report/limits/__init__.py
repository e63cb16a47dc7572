"""A workload's limits on a run: judged over the whole run, and as they stand while it goes on."""
