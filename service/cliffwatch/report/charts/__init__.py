"""Data of the report's charts: from windows and telemetry to columns, before anything is drawn."""
