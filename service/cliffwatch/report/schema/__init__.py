"""Types of report.json, from which `python -m cliffwatch.report.schema` generates report.schema.json."""
