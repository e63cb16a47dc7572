"""A recorded run that detection lives through window by window, as it does in a worker, and its report."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from testkit.recorded_runs import JournalPlan, make_journal

from cliffwatch.coordinator.detection import Detection
from cliffwatch.coordinator.detection_metrics import DetectionFigures
from cliffwatch.journal import Event, EventType, JournalReader
from cliffwatch.report.build import Report, build


@dataclass
class ExecutedRun:
    """What detection recorded, what it showed after each window, and where the journal with all of it is."""

    directory: Path
    events: list[Event] = field(default_factory=list)
    figures: list[DetectionFigures | None] = field(default_factory=list)

    @property
    def report(self) -> Report:
        return build(self.directory)

    def events_named(self, type_: EventType, name: str) -> list[dict[str, Any]]:
        return [event.detail for event in self.events if (event.type, event.name) == (type_, name)]

    def p99(self, operation: str, choose: Callable[[int], bool]) -> list[float]:
        """Of the windows as the journal has them, by number."""
        windows = JournalReader(self.directory).windows()
        values = [window.latency[operation]["p99"] for window in windows if choose(window.seq)]
        return [value for value in values if value is not None]


def execute_plan(base: Path, plan: JournalPlan) -> ExecutedRun:
    """`base`: an empty directory for the journals."""
    empty = base / "live"
    empty.mkdir()
    (empty / "events.jsonl").touch()
    found, now = ExecutedRun(base / "run"), [0.0]

    def record_event(type_: EventType, name: str, /, **detail: Any) -> Event:
        found.events.append(Event(now[0], type_, name, detail))
        return found.events[-1]

    detection = Detection(empty, plan.window_seconds, record_event, {"259:0": "nvme0n1"})
    for window in JournalReader(make_journal(base / "recorded", plan)).windows():
        now[0] = window.end
        detection.take(window)
        found.figures.append(detection.figures)
    detection.finish()
    assert not detection.has_failed
    make_journal(found.directory, replace(plan, events=tuple(found.events)))
    return found
