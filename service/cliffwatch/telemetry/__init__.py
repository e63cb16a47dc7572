"""Telemetry of a run: its Prometheus series, archived in the journal's `telemetry/` before Prometheus expires them.

    part-000001.parquet   samples of one interval: time, series, labels, value (see `parts`)
    index.json            which interval each part holds, and which could not be collected and why

`cliffwatch.telemetry.reader.read` reads them; docs/telemetry.md describes their content.
"""
