"""The use cases: runs, schedules, alerts, imports, and what keeps the index true. Every way in calls these."""
