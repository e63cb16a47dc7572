"""Base modules without knowledge of runs: clock, units, errors, files, processes, histograms."""
