"""The use cases: runs, reports, workloads, schedules, tokens, drives, alerts, and what keeps the index true.

Every way in calls these, and decides and changes nothing by itself.
"""
