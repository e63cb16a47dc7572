"""Use cases of the service: runs, reports, workloads, schedules, tokens, drives, alerts, reconciliation of the index.

Entry points, such as the API and the pages, call these modules; they make no decisions and no changes themselves.
"""
