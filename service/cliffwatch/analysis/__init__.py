"""Analysis of a run's windows: detection, causes, limits, verdict. Pure functions, no I/O."""
