"""Telemetry of a run: its Prometheus series, archived in the journal's `telemetry/` before Prometheus expires them.

    part-000001.parquet   samples of one interval: time, series, labels, value (see `parts`)
    index.json            which interval each part holds, and which could not be asked for and why

`cliffwatch.telemetry.reader.read` gives them back; docs/telemetry.md says what is in them.
"""
