"""Offline detection: changes in a whole series, after the run."""
