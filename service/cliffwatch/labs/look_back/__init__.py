"""Look back: runs made of the past that a Prometheus kept of systems that others load.

`systems` finds which of the built-in workloads that only observe have metrics there, and `journal` makes a finished
run of one of them, with its report.
"""
