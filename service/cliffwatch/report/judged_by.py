"""Amount of data behind a verdict, a proof or a comparison, so that one made from no data is recognisable."""

from collections.abc import Sequence

from cliffwatch.journal import JournalWindow
from cliffwatch.report.collect import Collected
from cliffwatch.report.schema.findings import JudgedByDocument
from cliffwatch.telemetry.catalogue import FREE_BLOCKS, HOST_WRITTEN, MEDIA_WRITTEN, TEMPERATURE

#: Series that drives report about themselves; the one with the most samples counts.
_OF_DRIVES = (MEDIA_WRITTEN, HOST_WRITTEN, FREE_BLOCKS, TEMPERATURE)


def judged_by(run: Collected, windows: Sequence[JournalWindow]) -> JudgedByDocument:
    """Amount of data in these windows: windows, operations, windows with drive counters, samples from a drive."""
    measured = [window for window in windows if window.seconds > 0]
    return JudgedByDocument(
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
