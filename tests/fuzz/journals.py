"""A small run's journal as files, to be damaged and put into a directory of its own."""

import json
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from testkit.recorded_runs import LOAD_START, GapEvent, JournalPlan, make_journal

from cliffwatch.base.histogram import Histogram
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import EventLog
from cliffwatch.journal.checksum import opened, sealed
from cliffwatch.journal.state import change_state
from cliffwatch.model.run_state import RunState

FACTS: dict[str, Any] = {
    "target": {"kind": "directory", "path": "/data"},
    "drives": [{"name": "nvme0n1", "major_minor": "259:0", "serial": "S1", "model": "M"}],
    "file_system": {"type": "ext4", "mount_point": "/data", "options": "rw"},
    "engine": {"versions": {"fio": "3.33"}, "warnings": []},
    "kernel": "6.1.0",
}


def _latency(index: int) -> dict[str, Histogram]:
    histogram = Histogram.from_values({(index + 1) * 1_000_000: 100, 9_000_000_000: 1})
    return {"publish": histogram, "publish_service": Histogram.from_values({1_000_000: 101})}


def _gauges(index: int) -> dict[str, float]:
    return {"oldest_outstanding_seconds": 0.25, "host_cpu_busy_ratio": 0.5}


def _counters(index: int) -> dict[str, int]:
    return {"device_written_bytes": 4096 * index, "device_write_operations": index, "device_write_milliseconds": index}


PLAN = JournalPlan(
    windows=8,
    missing=(3,),
    gaps=(GapEvent(3, 3, "engine_restart"),),
    warm_up_windows=1,
    target="directory:/data",
    facts=FACTS,
    latency=_latency,
    gauges=_gauges,
    counters=_counters,
    limits=("p99 <= 2ms over any 10s",),
)


@cache
def journal_files() -> Mapping[str, bytes]:
    """What a finished run left, by name."""
    with tempfile.TemporaryDirectory(prefix="cliffwatch-fuzz-") as place:
        directory = make_journal(Path(place) / PLAN.run_id, PLAN)
        detail = {"verdict": "degraded", "reasons": ["as it was recorded"]}
        change_state(EventLog(directory), RunState.FINISHED, LOAD_START + 110, detail)
        Heartbeat.of_this_process().write(directory)
        return {path.name: path.read_bytes() for path in directory.iterdir() if path.is_file()}


@contextmanager
def journal(**changed: bytes | None) -> Iterator[Path]:
    """The journal with other files in the place of its own: `windows_jsonl` stands for windows.jsonl."""
    with tempfile.TemporaryDirectory(prefix="cliffwatch-fuzz-") as place:
        directory = Path(place) / PLAN.run_id
        directory.mkdir()
        files: dict[str, bytes | None] = {**journal_files()}
        files |= {name.replace("_", "."): content for name, content in changed.items()}
        for name, content in files.items():
            if content is not None:
                (directory / name).write_bytes(content)
        yield directory


def bodies(name: str) -> list[Any]:
    """The JSON object of each line of a file, without its checksum."""
    return [json.loads(opened(line)) for line in journal_files()[name].splitlines()]


def resealed(text: str) -> str:
    """A line with an honest checksum of whatever it says."""
    try:
        return sealed(text)
    except UnicodeEncodeError:
        return text + "\n"
