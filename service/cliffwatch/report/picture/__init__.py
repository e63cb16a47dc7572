"""report.png: the report in one picture."""
