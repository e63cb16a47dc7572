"""The spans before and after an onset, the drive that slowed down between them, and quantities over both."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cliffwatch.analysis.causes.measures import Change
from cliffwatch.analysis.causes.thresholds import DEVICE_ROSE
from cliffwatch.analysis.finding import Finding, FindingKind
from cliffwatch.base.units import format_duration
from cliffwatch.journal import JournalWindow
from cliffwatch.model.drive_id import DriveId, mean_request_seconds
from cliffwatch.model.phase import Phase
from cliffwatch.model.window import DRIVES_SPAN
from cliffwatch.report.collect import Collected
from cliffwatch.telemetry.catalogue import HOST_WRITTEN
from cliffwatch.telemetry.increases import sum_of_increases
from cliffwatch.telemetry.reader import Samples

#: Number of windows compared on each side of an onset, and of those skipped next to it, since the onset is in them.
SPAN_WINDOWS, GUARD_WINDOWS = 30, 1

Windows = Sequence[JournalWindow]


@dataclass(frozen=True, slots=True)
class RunDrive:
    """A drive below a target: kernel name, identity, and serial (or WWN, or backing file), empty without any.

    `counted_as`: how the windows name its figures, which is not by its part in a part's own windows, and in journals of
    earlier versions.
    """

    name: str
    id: DriveId
    counted_as: str
    serial: str


@dataclass(frozen=True, slots=True)
class Spans:
    """Windows before and after an onset that are compared; either may be empty.

    `is_at_end`: `after` holds the last windows of the change. `since` is `after` with the windows that the onset lies
    in; single incidents, such as broken connections, are counted over it.
    """

    before: Windows
    after: Windows
    since: Windows
    is_at_end: bool = False

    @property
    def words(self) -> tuple[str, str]:
        """Text for the length of each span, for sentences about what was measured in it."""
        before, after = (
            format_duration(round(sum(window.seconds for window in windows))) for windows in (self.before, self.after)
        )
        following = f"over the last {after}" if self.is_at_end else f"over {after} after it"
        return f"over {before} before the onset", following


def drives_of(run: Collected) -> list[RunDrive]:
    """Drives in the facts. A drive without serial or WWN there gets the serial that its exporter reports."""
    found = run.facts.get("drives")
    reported = run.telemetry.of(HOST_WRITTEN) if run.telemetry is not None else ()
    serials = {samples.labels.get("device"): samples.labels.get("serial") for samples in reported}
    drives = []
    for each in found if isinstance(found, list) else ():
        if isinstance(each, dict) and isinstance(each.get("name"), str):
            own = each.get("serial") or each.get("wwn")
            identity = own or serials.get(each["name"]) or each.get("backing_file") or ""
            drive = DriveId(str(each.get("major_minor", "")), str(each.get("part", "")))
            drives.append(RunDrive(each["name"], drive, _counted_as(drive, run.windows), str(identity)))
    return drives


def _counted_as(drive: DriveId, windows: Windows) -> str:
    is_by_part = any(f"{drive}.write_operations" in window.counters for window in windows) if drive.part else False
    return str(drive) if is_by_part else drive.number


def spans_around(windows: Windows, finding: Finding) -> Spans:
    """Windows shortly before and after the onset; for a drift, the first after warm-up and the last of the drift."""
    until = float("inf") if finding.until is None else finding.until
    loaded = [window for window in windows if window.phase != Phase.WARM_UP]
    before = [window for window in loaded if window.end <= finding.onset + 1e-6]
    after = [window for window in windows if window.start >= finding.onset - 1e-6 and window.end <= until + 1e-6]
    if finding.kind is FindingKind.DRIFT:
        return Spans(before[:SPAN_WINDOWS], after[-SPAN_WINDOWS:], after, is_at_end=True)
    guarded = before[-SPAN_WINDOWS - GUARD_WINDOWS : -GUARD_WINDOWS] if len(before) > GUARD_WINDOWS else before
    rest = after[GUARD_WINDOWS : SPAN_WINDOWS + GUARD_WINDOWS] if len(after) > GUARD_WINDOWS else after
    first = guarded[-1].end if guarded else finding.onset
    last = rest[-1].end if rest else finding.onset
    return Spans(guarded, rest, [window for window in windows if first <= window.start and window.end <= last])


class SpanSource:
    """Quantities before and after an onset: from windows, or from telemetry where windows do not have them."""

    def __init__(self, run: Collected, spans: Spans, drive: RunDrive | None) -> None:
        self.spans = spans
        self.drive = drive
        self._telemetry = run.telemetry

    def change(self, of_windows: Callable[[Windows], float | None]) -> Change:
        return Change(*(of_windows(windows) if windows else None for windows in (self.spans.before, self.spans.after)))

    def rate(self, name: str, zero_with: str = "") -> Change:
        """Rate of a counter, per second; 0 where windows have only the counter `zero_with`."""
        return self.change(lambda windows: rate_of(windows, name, zero_with))

    def rate_since(self, name: str) -> Change:
        """Rate per second, before the onset and since, of a counter of single incidents, such as broken connections."""
        before, since = (
            rate_of(windows, name) if windows else None for windows in (self.spans.before, self.spans.since)
        )
        return Change(before, since)

    def mean(self, name: str) -> Change:
        """Mean of the windows' gauge over each span."""
        return self.change(lambda windows: mean_of([w.gauges[name] for w in windows if name in w.gauges]))

    def highest(self, name: str) -> Change:
        return self.change(lambda windows: max((w.gauges[name] for w in windows if name in w.gauges), default=None))

    def samples(self, name: str, **labels: str) -> list[Samples]:
        """Telemetry samples of a series with these labels: of the drive that slowed down, or else of all drives."""
        found = self._telemetry.of(name) if self._telemetry is not None else ()
        if self.drive is not None:
            labels |= {"device": self.drive.name}
        return [
            samples
            for samples in found
            if all(samples.labels.get(key, wanted) == wanted for key, wanted in labels.items())
        ]

    def level(self, name: str) -> Change:
        """Mean of a telemetry gauge over each span; with several drives, the lowest mean."""
        found = self.samples(name)

        def of_windows(windows: Windows) -> float | None:
            start, end = windows[0].start, windows[-1].end
            means = [
                mean_of(list(samples.values[(samples.times >= start - 1e-6) & (samples.times <= end + 1e-6)]))
                for samples in found
            ]
            return min((mean for mean in means if mean is not None), default=None)

        return self.change(of_windows)

    def increase(self, windows: Windows, samples: list[Samples]) -> float | None:
        """Sum of the increases of telemetry counters over a span, clipped to the time with samples."""
        found = self._increase(windows, samples)
        return None if found is None else found[0]

    def rate_of_samples(self, windows: Windows, samples: list[Samples]) -> float | None:
        """Rate of telemetry counters over a span, per second."""
        found = self._increase(windows, samples)
        return None if found is None else found[0] / found[1]

    def _increase(self, windows: Windows, samples: list[Samples]) -> tuple[float, float] | None:
        """Increase of telemetry counters over a span, and the seconds in which it was counted."""
        found = [each for each in samples if len(each.times) > 1]
        if not found or self._telemetry is None:
            return None
        first = max(each.times[0] for each in found)
        last = min(each.times[-1] for each in found)
        start, end = max(windows[0].start, first), min(windows[-1].end, last)
        if end <= start:
            return None
        total, _ = sum_of_increases(found, np.array([start]), np.array([end]), np.inf)
        return None if np.isnan(total[0]) else (float(total[0]), float(end - start))


def device_latency(source: SpanSource, operation: str) -> Change:
    """Mean seconds of a read or write request: of the drive that slowed down where it has own counters, else of all."""
    prefixes = [f"{source.drive.counted_as}."] if source.drive is not None else []

    def of_windows(windows: Windows) -> float | None:
        for prefix in [*prefixes, "device_"]:
            found = _request_seconds(windows, prefix, operation)
            if found is not None:
                return found
        return None

    return source.change(of_windows)


def slowed_drive(spans: Spans, drives: list[RunDrive]) -> RunDrive | None:
    """Drive whose writes slowed down most, None where none did; the run's only drive in any case."""
    if len(drives) == 1:
        return drives[0]

    def ratio(drive: RunDrive) -> float:
        before, after = (_request_seconds(windows, f"{drive.counted_as}.") for windows in (spans.before, spans.after))
        return after / before if before and after else 0.0

    worst = max(drives, key=ratio, default=None)
    return worst if worst is not None and ratio(worst) > DEVICE_ROSE else None


def _request_seconds(windows: Windows, drive: str, kind: str = "write") -> float | None:
    """`mean_request_seconds` over windows."""
    names = (f"{drive}{kind}_operations", f"{drive}{kind}_milliseconds")
    total = {name: sum(window.counters.get(name, 0) for window in windows) for name in names}
    return mean_request_seconds(total, drive, kind)


def rate_of(windows: Windows, name: str, zero_with: str = "") -> float | None:
    seconds = _counted_seconds(windows, name)
    if seconds <= 0:
        return None
    found = [window.counters[name] for window in windows if name in window.counters]
    if found:
        return sum(found) / seconds
    return 0.0 if zero_with and any(zero_with in window.counters for window in windows) else None


def _counted_seconds(windows: Windows, name: str) -> float:
    """Seconds that a counter covers. For a drive counter, windows without drive counters are left out: these could not
    be read there, or are scraped less often."""
    drive = "device_" if name.startswith("device_") else f"{name.partition('.')[0]}."
    is_of_drive = name.startswith(drive)
    counted = [window for window in windows if not is_of_drive or f"{drive}write_operations" in window.counters]
    return sum(window.gauges.get(DRIVES_SPAN, window.seconds) if is_of_drive else window.seconds for window in counted)


def mean_of(values: Sequence[float]) -> float | None:
    return float(sum(values) / len(values)) if values else None


def quotient_of(windows: Windows, over: str, under: str) -> float | None:
    above = [window.counters.get(over, 0) for window in windows if under in window.counters]
    below = [window.counters[under] for window in windows if under in window.counters]
    return sum(above) / sum(below) if sum(below) > 0 else None
