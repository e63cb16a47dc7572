"""Use cases of the service: runs, reports, workloads, schedules, tokens, drives, alerts, reconciliation of the index.

Every entry point, such as the API or a page, calls these; it decides and changes nothing by itself.
"""
