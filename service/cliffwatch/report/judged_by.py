"""How much a verdict, a proof or a comparison had to go by: what was judged by nothing must not read like the rest."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from cliffwatch.journal import JournalWindow
from cliffwatch.report.collect import Collected
from cliffwatch.telemetry.catalogue import FREE_BLOCKS, HOST_WRITTEN, MEDIA_WRITTEN, TEMPERATURE

#: What drives say of themselves; the one with the most samples counts.
_OF_DRIVES = (MEDIA_WRITTEN, HOST_WRITTEN, FREE_BLOCKS, TEMPERATURE)


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """Windows that were measured, operations that were completed in them, how many of the windows have the counters of
    the drives, and how many samples there are of what a drive says of itself."""

    windows: int
    operations: int
    drive_windows: int
    drive_samples: int

    def document(self) -> dict[str, Any]:
        return {
            "windows": self.windows,
            "operations": self.operations,
            "drive_windows": self.drive_windows,
            "drive_samples": self.drive_samples,
        }


def judged_by(run: Collected, windows: Sequence[JournalWindow]) -> JudgedBy:
    """What there is in these windows of the run."""
    measured = [window for window in windows if window.seconds > 0]
    return JudgedBy(
        windows=len(measured),
        operations=sum(window.counters.get("operations", 0) for window in measured),
        drive_windows=sum("device_written_bytes" in window.counters for window in measured),
        drive_samples=_drive_samples(run, measured),
    )


def _drive_samples(run: Collected, windows: Sequence[JournalWindow]) -> int:
    if run.telemetry is None or not windows:
        return 0
    start, end = windows[0].start - 1e-6, windows[-1].end + 1e-6
    series = [samples for name in _OF_DRIVES for samples in run.telemetry.of(name)]
    return max((int(((each.times >= start) & (each.times <= end)).sum()) for each in series), default=0)
