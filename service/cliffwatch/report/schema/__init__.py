"""The types of report.json, of which report.schema.json is made: `python -m cliffwatch.report.schema`."""
