"""Convert a run's committed windows and events into series, samples and notices for detection."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from cliffwatch.analysis.finding import Notice, Role, Sample, Series
from cliffwatch.journal.events import Event, EventType, moment_in
from cliffwatch.journal.windows import QUANTILE_NAMES, JournalWindow
from cliffwatch.model.drive_id import mean_request_seconds
from cliffwatch.model.window import OBSERVED_SERIES

#: Suffix of a latency measured from when an operation began; the latency of the same name without it, measured from
#: when the operation was due, is preferred.
SERVICE_SUFFIX = "_service"
QUANTILES = dict(zip(QUANTILE_NAMES, (0.5, 0.9, 0.99, 0.999, 0.9999), strict=True))
#: Key of a finding: its kind, series and onset as it was first raised.
FindingKey = tuple[str, str, float]
#: Names of the notes on a new size of a finding, on the end of a finding, and on a baseline.
UPDATED_NOTE, ENDED_NOTE = "finding_updated", "finding_ended"
BASELINE_NOTE = "baseline"
RATE = "operations_per_second"
DEVICE = "device"
AMPLIFICATION = "write_amplification"
#: Events of Kafka's engine when partitions of its topics change their leader or have none.
LEADER_EVENTS = ("leader_changed", "partitions_without_leader")
#: Events of an engine, or of the worker about its engine, that explain what is measured after them.
EXPLAINING = frozenset({"died", *LEADER_EVENTS})
#: Reason of a gap at the load's begin, which explains nothing that is measured after it: nothing had been running.
STARTED_LATE = "engine_started_late"


def key_in(detail: Mapping[str, Any]) -> FindingKey | None:
    """Key of the finding that an event's detail is about; for a restated finding, its first key, in `raised`.

    None where the detail has no complete key, as in a journal that is damaged or was made elsewhere.
    """
    named = detail.get("raised", detail)
    if not isinstance(named, Mapping):
        return None
    kind, series, onset = named.get("kind"), named.get("series"), moment_in(named, "onset")
    if not isinstance(kind, str) or not isinstance(series, str) or onset is None:
        return None
    return kind, series, onset


def samples_from_windows(windows: Sequence[JournalWindow]) -> tuple[list[Series], list[Sample]]:
    """Every series that the windows hold, and their samples in the same order."""
    seen: dict[str, Series] = {}
    for window in windows:
        for series in series_of(window):
            seen.setdefault(series.name, series)
    return list(seen.values()), [sample_of(window, seen.values()) for window in windows]


def series_of(window: JournalWindow) -> list[Series]:
    """The series that a window can have values of: latency quantiles, operations per second, devices."""
    series = [
        Series(f"{operation}.{name}", Role.LATENCY, operation=operation, quantile=quantile)
        for operation in preferred_latencies(window.latency)
        for name, quantile in QUANTILES.items()
    ]
    series.append(Series(RATE, Role.RATE))
    for device in _devices(window).values():
        suffix = "" if device is None else f".{device}"
        series.append(Series(f"{DEVICE}.write_latency{suffix}", Role.DEVICE_LATENCY, device=device))
        series.append(Series(f"{DEVICE}.queue_depth{suffix}", Role.QUEUE_DEPTH, device=device))
        series.append(Series(f"{DEVICE}.{AMPLIFICATION}{suffix}", Role.WRITE_AMPLIFICATION, device=device))
    return series


def sample_of(window: JournalWindow, known: Iterable[Series] = ()) -> Sample:
    """Sample with the values of a window; a series that was not measured is absent.

    `known` are the run's series. A window in which operations were outstanding and none completed is a stall: its
    latencies are the age of the oldest operation, a lower bound.
    """
    values: dict[str, float] = {}
    age = window.oldest_outstanding_seconds
    if age and window.stalled:
        values = {series.name: age for series in known if series.role is Role.LATENCY}
    for operation in preferred_latencies(window.latency):
        summary = window.latency[operation]
        for name in QUANTILES:
            value = summary.get(name)
            if value is not None:
                values[f"{operation}.{name}"] = value
    if "operations" in window.counters and window.seconds > 0:
        values[RATE] = window.counters["operations"] / window.seconds
    for prefix, device in _devices(window).items():
        suffix = "" if device is None else f".{device}"
        took = mean_request_seconds(window.counters, prefix)
        if took is not None:
            values[f"{DEVICE}.write_latency{suffix}"] = took
        depth = window.gauges.get(f"{prefix}queue_depth")
        if depth is not None:
            values[f"{DEVICE}.queue_depth{suffix}"] = depth
        amplification = window.gauges.get(f"{prefix}{AMPLIFICATION}")
        if amplification is not None:
            values[f"{DEVICE}.{AMPLIFICATION}{suffix}"] = amplification
    return Sample(window.start, window.end, values, window.phase, age, OBSERVED_SERIES not in window.gauges)


def preferred_latencies(names: Iterable[str]) -> list[str]:
    """Sorted latency names; of one measured from due time and from begin (`_service`), only the one from due time."""
    present = set(names)
    return sorted(
        name for name in present if not (name.endswith(SERVICE_SUFFIX) and name.removesuffix(SERVICE_SUFFIX) in present)
    )


def notices_from_events(events: Iterable[Event]) -> list[Notice]:
    """Notices in a run's events, which explain changes: an engine that died, a change of leader, gaps."""
    return [notice for event in events if (notice := notice_of(event)) is not None]


def notice_of(event: Event) -> Notice | None:
    """Convert an event of a run to a notice; None where the event explains no change."""
    is_gap = event.type is EventType.GAP
    if is_gap and event.name == STARTED_LATE:
        return None
    if not is_gap and not (event.type is EventType.ENGINE and event.name in EXPLAINING):
        return None
    # A gap is recorded after the window that ends it, and explains what follows its start.
    start = event.moment("start") if is_gap else None
    return Notice(event.at if start is None else round(start, 6), event.name)


def _devices(window: JournalWindow) -> dict[str, str | None]:
    """Each device's major:minor by the prefix of its counters' names; None by the prefix of the counters of all devices
    together, if the window has these."""
    together: dict[str, str | None] = {"device_": None} if "device_write_operations" in window.counters else {}
    each = sorted(name.partition(".")[0] for name in window.counters if name.endswith(".write_operations"))
    return together | {f"{number}.": number for number in each}
