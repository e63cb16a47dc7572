"""Build report.json and report.html from a run's journal: at any time, and with the same result each time."""
