"""What everything stands on: clock, units, errors, files, processes, histograms. It knows nothing of runs."""
