"""The drive exporter: NVMe drive health for Prometheus. `python -m cliffwatch_drive_exporter`

    controllers.py   which drives there are
    commands.py      asking one with nvme-cli, which may hang
    logs.py          what its answers mean: pure functions of JSON
    media.py         which of a drive's logs counts what was written to the flash
    poll.py          one thread a drive, so that none waits for another
    metrics.py       what is exposed, without asking any drive

It imports nothing but the standard library and prometheus_client, so that it is small.
"""
