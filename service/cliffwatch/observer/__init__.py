"""Observer: windows of a load that others make, from the metrics that a Prometheus has of it.

`increases` computes what counters counted in a window, `buckets` makes latency histograms of it, `system` queries
Prometheus for both, and `python -m cliffwatch.observer` prints windows in the lines of the engine contract.
"""
