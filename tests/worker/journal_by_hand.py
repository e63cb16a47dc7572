"""A journal whose windows the test makes, one by one, as a worker would: hours of a run in a second."""

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testkit.worker_runs import events

from cliffwatch.coordinator.detection import Detection
from cliffwatch.journal import Event, EventLog, EventType, JournalWindow, files
from cliffwatch.model.limits import parse_limit

START = 1_790_000_000.0
WINDOW_SECONDS = 10.0
#: Windows of an hour.
HOUR = 360
HEALTHY_SECONDS = {"p50": 0.002, "p90": 0.003, "p99": 0.004, "p999": 0.005, "p9999": 0.006}
DEVICE_OPERATIONS = 9_000


@dataclass(slots=True)
class Journal:
    directory: Path
    noise: random.Random = field(default_factory=lambda: random.Random(7))
    windows: list[JournalWindow] = field(default_factory=list)
    #: Windows that were not measured: they move all later ones.
    missed: int = 0

    def __post_init__(self) -> None:
        (self.directory / files.EVENTS).touch()

    def commit(
        self,
        times: float = 1.0,
        others: Mapping[str, float] | None = None,
        device_times: float | None = None,
        phase: str = "soak",
        rate: float = 1.0,
        oldest_seconds: float | None = None,
    ) -> JournalWindow:
        """A window whose latencies, of `publish` and of the drive, are `times` what is healthy; `others` by name.

        `rate` is the part of the usual operations that were completed: with 0 there are no latencies.
        """
        start = START + (len(self.windows) + self.missed) * WINDOW_SECONDS
        device = (times if device_times is None else device_times) * self.noise.lognormvariate(0.0, 0.03)
        window = JournalWindow(
            seq=len(self.windows),
            start=start,
            end=start + WINDOW_SECONDS,
            phase=phase,
            counters={
                "operations": round(10_000 * rate * self.noise.lognormvariate(0.0, 0.005)),
                "device_write_operations": DEVICE_OPERATIONS,
                "device_write_milliseconds": round(DEVICE_OPERATIONS * device),
            },
            gauges={} if oldest_seconds is None else {"oldest_outstanding_seconds": oldest_seconds},
            latency={
                name: self._summary(each)
                for name, each in ({"publish": times} | dict(others or {})).items()
                if rate > 0
            },
            latency_range=(0, 0),
        )
        with (self.directory / files.WINDOWS).open("a") as file:
            file.write(window.to_line())
        self.windows.append(window)
        return window

    def record_event(self, type_: EventType, name: str, /, **detail: Any) -> Event:
        at = self.windows[-1].end if self.windows else START
        event = Event(at, type_, name, json.loads(json.dumps(detail)))
        EventLog(self.directory).append(event)
        return event

    def events_named(self, type_: EventType, name: str | None = None) -> list[Event]:
        found = [event for event in events(self.directory) if event.type is type_]
        return [event for event in found if name is None or event.name == name]

    def detection(self, *limits: str) -> Detection:
        """Detection of this run, whose workload has these limits."""
        parsed = [parse_limit(limit) for limit in limits]
        return Detection(self.directory, WINDOW_SECONDS, self.record_event, {"259:0": "nvme0n1"}, parsed)

    def _summary(self, times: float) -> dict[str, float | None]:
        summary: dict[str, float | None] = {"count": 10_000, "max": 1.0}
        for name, level in HEALTHY_SECONDS.items():
            summary[name] = level * times * self.noise.lognormvariate(0.0, 0.03)
        return summary
