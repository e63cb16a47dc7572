"""What each event of the service and of its worker holds, and how it reads."""

import re
from typing import Any

#: Names of the journal: `how_much`, `publish.p99`.
RAW = re.compile(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b|\b[a-z_]+\.p\d{2,4}\b")
FINDING = {"kind": "cliff", "series": "end_to_end.p999", "onset": 1.5, "summary": "The end to end p99.9 rose 5.0×."}
AT_15, TEN_LATER = 1_790_002_800.0, 1_790_002_810.0
#: What each event of the service and of its worker holds, and how it reads.
SAMPLES: dict[tuple[str, str], tuple[dict[str, Any], str]] = {
    ("clock", "machine_suspended"): ({"seconds": 3600.0}, "the machine was suspended for 1h; the run goes on"),
    ("clock", "wall_clock_jumped"): ({"seconds": -3.25}, "the wall clock jumped by -3.25 s"),
    ("device", "flushed"): (
        {"device_written_bytes": 2048, "device_flush_operations": 2, "seconds": 3.5},
        "drive caches flushed in 3.5 s: device written 2.0 KiB, device flush operations 2",
    ),
    ("device", "directory_claimed"): (
        {"path": "/data/run-1", "directory": "inode 7 of 8:1, born 2026-11-01"},
        "the run's files go to /data/run-1 (inode 7 of 8:1, born 2026-11-01)",
    ),
    ("engine", "cannot_end"): (
        {"pid": 12, "what": "process 12 (fio)"},
        "process 12 (fio) was killed and does not end",
    ),
    ("engine", "died"): ({"message": "signal 9", "restarts": 2}, "the engine died: signal 9; restarts so far: 2"),
    ("engine", "events_dropped"): ({"of": "fetch_error", "count": 1200}, "events left out: 1,200 of fetch error"),
    ("engine", "exited"): ({"status": 0, "end": "completed"}, "the engine exited with status 0, load completed"),
    ("engine", "frozen"): ({"since": AT_15}, "the engine has been stopped since 15:00:00 UTC"),
    ("engine", "killed"): ({"reason": "did not stop in time"}, "the engine was killed: it did not stop in time"),
    ("engine", "load_ended"): ({"how": "completed", "message": None}, "the load ended as planned"),
    ("engine", "checkpoint_begun"): (
        {"requested": True},
        "the server began a checkpoint, which the amount of WAL asked for",
    ),
    ("engine", "checkpoint_completed"): ({"seconds": 12.5}, "the server completed a checkpoint, which took 12.5 s"),
    ("engine", "metrics_missing"): (
        {"reason": "Prometheus does not answer"},
        "the system's metrics could not be read: Prometheus does not answer",
    ),
    ("engine", "metrics_resumed"): ({}, "the system's metrics are read again, and windows missed are made up for"),
    ("engine", "prepared"): ({"seconds": 75.2}, "the target was prepared in 1m15s"),
    ("engine", "silent"): (
        {"since": AT_15, "what": "process 12 (fio)"},
        "the engine has reported nothing since 15:00:00 UTC, and waits: process 12 (fio)",
    ),
    ("engine", "started"): ({"command": ["fio", "job"], "start": 1.0}, "the engine was started: fio job"),
    ("engine", "window_dropped"): (
        {"start": AT_15, "end": TEN_LATER, "operations": 4, "bytes": 4096, "errors": 0},
        "a window with the engine stopped was not kept: start 15:00:00 UTC, end 15:00:10 UTC, operations 4, 4.0 KiB, "
        "errors 0",
    ),
    ("engine", "worker_cost"): (
        {"cpu_seconds": 3.25, "max_resident_bytes": 1 << 20},
        "the worker used 3.25 s of CPU time and 1.0 MiB of memory",
    ),
    ("journal", "disk_was_full"): (
        {"start": 1.0, "seconds": 12.0, "lost": 3},
        "the disk of the journal was full for 12 s; windows lost: 3",
    ),
    ("journal", "window_in_progress_discarded"): ({"bytes": 512}, "the window in progress was discarded (512 B)"),
    ("journal", "file_displaced"): (
        {"file": "windows.jsonl"},
        "windows.jsonl was taken out of the journal, and is begun again",
    ),
    ("journal", "window_refused"): ({"message": "no"}, "a window could not be stored: no"),
    ("journal", "windows_damaged"): (
        {"kept_bytes": 512},
        "lines of windows.jsonl are damaged; 512 B of histograms are kept",
    ),
    ("note", "annotated"): (
        {"labels": {"release": "26.1"}, "note": "with the\nnew firmware", "pinned": True, "by": "ops"},
        "ops annotated the run: label release=26.1; pinned; note: with the new firmware",
    ),
    ("note", "marked"): (
        {"start": AT_15, "end": AT_15 + 60, "message": "pulled a drive", "by": "ann"},
        "marked from 15:00:00 UTC to 15:01:00 UTC: pulled a drive",
    ),
    ("note", "names_limited"): (
        {"kind": "latency", "limit": 64},
        "the run has 64 names of latencies: what has another one is not recorded",
    ),
    ("note", "alerts_limited"): ({"limit": 2000}, "the run has 2,000 alerts: more that begin are not recorded"),
    ("note", "baseline"): (
        {"start": 1.0, "levels": {"end_to_end.p999": 0.006, "operations_per_second": 100.0}},
        "baseline: end to end p99.9 6 ms",
    ),
    ("note", "detection_failed"): ({"message": "OSError: no", "where": "x"}, "detection failed: OSError: no"),
    ("note", "drives_clock_off"): ({"message": "the clock is off"}, "the clock is off"),
    ("note", "drives_missing"): (
        {"drives": ["broker-1/nvme0n1"], "reason": "no answer"},
        "no counters of broker-1/nvme0n1: no answer",
    ),
    ("note", "drives_resumed"): ({}, "the counters of all drives are there again"),
    ("note", "files_kept"): ({"target": "directory:/data"}, "the run's files were kept on directory:/data"),
    ("note", "files_left_behind"): (
        {"path": "/data/r1", "message": "no"},
        "files of the run were left behind in /data/r1: no",
    ),
    ("note", "finding_ended"): (FINDING, str(FINDING["summary"])),
    ("note", "finding_updated"): (FINDING, str(FINDING["summary"])),
    ("note", "load_moved"): (
        {"load_start": 1.0, "load_stop": 2.0, "seconds": 2.0},
        "the load began 2 s later than planned",
    ),
    ("note", "refused"): (
        {"code": "target_unsafe", "message": "sda is mounted"},
        "the run was refused: sda is mounted",
    ),
    ("note", "report_failed"): ({"message": "no"}, "the report could not be made: no"),
    ("note", "steady_state_not_reached"): ({"why": "it rises"}, "steady state was not reached: it rises"),
    ("note", "steady_state_reached"): ({"rounds": 5}, "steady state was reached after 5 rounds"),
    ("note", "target_displaced"): ({"message": "/data was removed"}, "the target was displaced: /data was removed"),
    ("note", "target_hangs"): (
        {"run": "soak-1", "what": "process 12 (fio)"},
        "the run waits: process 12 (fio) of soak-1 was killed and does not end",
    ),
    ("note", "telemetry_missing"): ({"reason": "no answer"}, "Prometheus could not be read: no answer"),
    ("note", "telemetry_resumed"): ({"rows": 1200}, "Prometheus is read again; 1,200 rows collected"),
    ("note", "verdict_mended"): ({"verdict": "degraded", "reasons": []}, "the run was judged again: degraded"),
    ("note", "watcher_back"): ({"watcher": "drive_exporter"}, "watcher drive exporter is up again"),
    ("note", "watcher_down"): (
        {"watcher": "drive_exporter", "reason": "its process is gone"},
        "watcher drive exporter is down: its process is gone",
    ),
    ("note", "watchers"): (
        {"there": ["prometheus"], "without": {"drive_exporter": "no NVMe drive"}},
        "watchers up: prometheus; unavailable: drive exporter (no NVMe drive)",
    ),
    ("note", "worker_killed"): ({"reason": "no heartbeat"}, "the worker was killed: no heartbeat"),
}
#: Those that may stand in any journal: the others move its load, or say that a detector of ours failed.
HARMLESS = {key: detail for key, (detail, _) in SAMPLES.items() if key[1] not in {"load_moved", "detection_failed"}}
