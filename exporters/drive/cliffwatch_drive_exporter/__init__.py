"""The drive exporter: NVMe drive health for Prometheus. `python -m cliffwatch_drive_exporter`

    controllers.py   find the NVMe controllers
    commands.py      run nvme-cli on a drive, which may hang
    logs.py          parse nvme-cli's JSON, with pure functions
    media.py         choose one of the drive's logs that count bytes written to flash
    limits.py        time over the limits of a cloud volume
    poll.py          poll each drive in its own thread, so that none waits for another
    metrics.py       Prometheus metrics of the last polls

It imports only the standard library, prometheus_client and cliffwatch.base.clock, so that it is small.
"""
