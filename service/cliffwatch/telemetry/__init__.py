"""What Prometheus knew about a run, collected into its journal before it expires: `telemetry/` of the run's directory.

    part-000001.parquet   samples of one interval: time, series, labels, value (see `parts`)
    index.json            which interval each part holds, and which could not be asked for and why

`cliffwatch.telemetry.reader.read` gives them back; docs/telemetry.md says what is in them.
"""
