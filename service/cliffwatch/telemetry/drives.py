"""Drives of other hosts, from node_exporter's series in Prometheus: find them and read their counters.

A drive is named HOST/DEVICE: the host of the label `instance` without its port, and the label `device`.
"""

import json
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from cliffwatch.base.clock import Clock
from cliffwatch.base.errors import Code, FieldFault, Problem
from cliffwatch.base.units import format_duration
from cliffwatch.machine.diskstats import DeviceCounters
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.prometheus import Prometheus, PrometheusAnswer, QueryFailed

#: Series that the selector is matched against: node_exporter has it for every drive.
WRITES = "node_disk_writes_completed_total"
INFO = "node_disk_info"
#: Counter of each series, and the factor from the series' unit to the counter's.
COUNTERS: Mapping[str, tuple[str, int]] = {
    "node_disk_reads_completed_total": ("read_operations", 1),
    "node_disk_read_bytes_total": ("read_bytes", 1),
    "node_disk_read_time_seconds_total": ("read_milliseconds", 1000),
    WRITES: ("write_operations", 1),
    "node_disk_written_bytes_total": ("write_bytes", 1),
    "node_disk_write_time_seconds_total": ("write_milliseconds", 1000),
    "node_disk_discards_completed_total": ("discard_operations", 1),
    "node_disk_discarded_sectors_total": ("discard_bytes", 512),
    "node_disk_discard_time_seconds_total": ("discard_milliseconds", 1000),
    "node_disk_flush_requests_total": ("flush_operations", 1),
    "node_disk_flush_requests_time_seconds_total": ("flush_milliseconds", 1000),
    "node_disk_io_time_weighted_seconds_total": ("weighted_milliseconds", 1000),
}
#: Series that kernels before 5.5 do not have.
_NEWER = frozenset(name for name in COUNTERS if "discard" in name or "flush" in name)
#: Maximum number of drives: each has counters of its own in every window.
DRIVES_LIMIT = 64
_PATIENCE_SECONDS = 5.0
#: Range over which the scrape interval is measured, and the number of scrapes in it that are too few for that.
_RECENT, _FEW_SCRAPES = "5m", 2
#: Factor by which scrapes may be farther apart than windows, since single scrapes come late.
_SCRAPE_TOLERANCE = 1.2
#: A smaller difference between clocks may be the time that an answer takes.
CLOCK_TOLERANCE_SECONDS = 0.5
_NAMED_AT_MOST = 20


@dataclass(frozen=True, slots=True)
class RemoteDrive:
    """A drive of another host. `number` replaces major:minor in its counters' names; its major, 0, is of no drive of
    this machine. `instance` is that label of its series. Texts are empty where Prometheus does not have them."""

    name: str
    number: str
    instance: str = ""
    model: str = ""
    serial: str = ""
    wwn: str = ""
    firmware: str = ""


@dataclass(frozen=True, slots=True)
class FoundDrives:
    """Drives in order of name; seconds by which the clock of their Prometheus is ahead of this machine's; and seconds
    between their scrapes, None where there are too few."""

    drives: list[RemoteDrive]
    clock_ahead_seconds: float
    scrape_seconds: float | None = None

    def scrape_trouble(self, window_seconds: float) -> str | None:
        """Sentence that windows are shorter than the time between scrapes; None where they are not."""
        if self.scrape_seconds is None or self.scrape_seconds <= window_seconds * _SCRAPE_TOLERANCE:
            return None
        apart = format_duration(round(self.scrape_seconds))
        return (
            f"the drives are scraped every {apart}, and a window lasts {format_duration(window_seconds)}: most windows "
            f"have no counters of theirs, and findings are less sure; make the window {apart} or scrape more often"
        )

    def clock_trouble(self, window_seconds: float) -> str | None:
        """Sentence that the clocks differ by more than both the tolerance and a tenth of a window; else None."""
        return clock_trouble(self.clock_ahead_seconds, window_seconds, "the Prometheus that knows the drives")


def clock_trouble(ahead_seconds: float, window_seconds: float, whose: str) -> str | None:
    """Sentence that a clock differs from this machine's by more than both the tolerance and a tenth of a window; else
    None."""
    if abs(ahead_seconds) <= max(CLOCK_TOLERANCE_SECONDS, window_seconds / 10):
        return None
    where = "ahead of" if ahead_seconds > 0 else "behind"
    return (
        f"the clock of {whose} is {abs(ahead_seconds):.1f} s {where} this machine's, and what it knows stands in "
        "windows that are off by as much; set both by NTP"
    )


def drive_name(labels: Mapping[str, str]) -> str:
    """Name HOST/DEVICE of a drive, from the labels of its series."""
    host, port, number = labels.get("instance", "").rpartition(":")
    is_address = bool(port) and number.isdigit() and (":" not in host or host.endswith("]"))
    return f"{host if is_address else labels.get('instance', '')}/{labels.get('device', '')}"


def find_drives(server: PrometheusAddress | None, selector: str, clock: Clock) -> FoundDrives:
    """Find the drives that a selector matches. Raises Problem: bad_request where these are none, too many, or two of
    one name; not_ready where Prometheus does not answer."""
    if server is None:
        fault = FieldFault("drives", "telemetry is turned off: set CLIFFWATCH_PROMETHEUS_URL")
        raise Problem(Code.BAD_REQUEST, "no Prometheus is known", [fault])
    try:
        prometheus = Prometheus(server, time.monotonic() + _PATIENCE_SECONDS)
        try:
            asked_at = clock.wall()
            ahead = prometheus.now() - (asked_at + clock.wall()) / 2
            wall_seconds = clock.wall()
            found = prometheus.query(f"{WRITES}{{{selector}}}", wall_seconds)
            if not found:
                raise _nothing_found(prometheus.query(WRITES, wall_seconds), selector)
            recent = prometheus.query_samples(f"{WRITES}{{{selector}}}[{_RECENT}]", wall_seconds)
            described = {
                drive_name(each.labels): each.labels for each in prometheus.query(f"{INFO}{{{selector}}}", wall_seconds)
            }
        finally:
            prometheus.close()
    except QueryFailed as error:
        raise Problem(Code.NOT_READY, f"the drives {selector} cannot be looked up: {error}") from error
    _require_distinct(found)
    drives = numbered({drive_name(each.labels): each.labels.get("instance", "") for each in found}, described)
    apart = [float(np.median(np.diff(each.times))) / 1000 for each in recent if len(each.times) > _FEW_SCRAPES]
    return FoundDrives(drives, ahead, max(apart, default=None))


def numbered(instances: Mapping[str, str], described: Mapping[str, Mapping[str, str]]) -> list[RemoteDrive]:
    """Drives in order of their names, each with a number of its own. By name: the label `instance` of its series, and
    the labels of `node_disk_info`."""
    drives = []
    for number, name in enumerate(sorted(instances), 1):
        labels = described.get(name, {})
        texts = {word: labels.get(word, "").strip() for word in ("model", "serial", "wwn")}
        firmware = labels.get("revision", "").strip()
        drives.append(RemoteDrive(name, f"0:{number}", instances[name], firmware=firmware, **texts))
    return drives


def _nothing_found(present: Iterable[PrometheusAnswer], selector: str) -> Problem:
    names = sorted({drive_name(each.labels) for each in present})
    known = "it has no series of node_exporter's disks at all"
    if names:
        more = f" and {len(names) - _NAMED_AT_MOST} more" if len(names) > _NAMED_AT_MOST else ""
        known = f"it knows {', '.join(names[:_NAMED_AT_MOST])}{more}, by their labels instance and device"
    return Problem(
        Code.BAD_REQUEST, "no drive was found", [FieldFault("drives", f"Prometheus has none with {selector}; {known}")]
    )


def _require_distinct(found: list[PrometheusAnswer]) -> None:
    """Check the number and the names of drives. Raises Problem(bad_request) for too many, or two of one name."""
    if len(found) > DRIVES_LIMIT:
        fault = FieldFault("drives", f"{len(found)} drives are found; choose at most {DRIVES_LIMIT} of them")
        raise Problem(Code.BAD_REQUEST, "too many drives", [fault])
    seen: dict[str, dict[str, str]] = {}
    for each in found:
        name = drive_name(each.labels)
        other = seen.setdefault(name, each.labels)
        if other is not each.labels:
            differing = sorted(
                label for label in other.keys() | each.labels.keys() if other.get(label) != each.labels.get(label)
            )
            words = ", ".join(
                f"{label}={json.dumps(labels.get(label, ''))}" for label in differing for labels in (other, each.labels)
            )
            fault = FieldFault("drives", f"{name} is there twice ({words}); name one of them in the selector")
            raise Problem(Code.BAD_REQUEST, "a drive is ambiguous", [fault])


def read_counters(
    prometheus: Prometheus, selector: str, until: float, span_seconds: float
) -> dict[str, dict[float, DeviceCounters]]:
    """Counters by drive and by time of the scrape (seconds since the epoch), of the last `span_seconds` before `until`.

    Raises QueryFailed.
    """
    return counters_in(prometheus.query_samples(f"{counters_of(selector)}[{max(1, round(span_seconds))}s]", until))


def counters_of(selector: str) -> str:
    """Selector of all counters of the drives that a selector matches."""
    return f'{{__name__=~"{"|".join(COUNTERS)}",{selector}}}'


def counters_in(answers: Iterable[PrometheusAnswer]) -> dict[str, dict[float, DeviceCounters]]:
    """Counters by drive and by time (seconds since the epoch) in what Prometheus has of `counters_of` a selector.

    Raises QueryFailed for values that are no counters.
    """
    scrapes: dict[str, dict[float, dict[str, int]]] = {}
    try:
        for answer in answers:
            field, factor = COUNTERS[answer.name]
            of_drive = scrapes.setdefault(drive_name(answer.labels), {})
            for moment, value in zip(answer.times, answer.values, strict=True):
                of_drive.setdefault(moment / 1000, {})[field] = round(value * factor)
    except (KeyError, ValueError, OverflowError) as error:
        raise QueryFailed(f"Prometheus' counters of the drives make no sense: {error!r}") from error
    needed = {field for name, (field, _) in COUNTERS.items() if name not in _NEWER}
    return {
        drive: {moment: DeviceCounters(**counted) for moment, counted in of_drive.items() if needed <= counted.keys()}
        for drive, of_drive in scrapes.items()
    }
