"""Detection over a whole series, after the run."""
