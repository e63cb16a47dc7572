"""Systems that a Prometheus has metrics of, by the built-in workloads that only observe (`observe-*.yaml`)."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cliffwatch.base.units import format_duration
from cliffwatch.engines.observe import BUCKET, ObserveLoad, selector_parts
from cliffwatch.engines.registry import load_of
from cliffwatch.labs.look_back.drives import HostDrives, drives_of_hosts
from cliffwatch.model.workload import BUILT_IN_WORKLOADS, Workload, parse_workload
from cliffwatch.observer.bounded import SAMPLES_LIMIT, BoundedQueries
from cliffwatch.observer.past import WINDOWS_BEFORE
from cliffwatch.telemetry.prometheus import PrometheusAnswer

#: Labels that tell systems of one kind apart.
_BY = ("job", "cluster", "namespace")
#: Moments at which it is seen which systems there were, and how many series each source had.
_MOMENTS, _COUNTS = 100, 4
_WINDOW_LEAST, _WINDOW_MOST = 10.0, 60.0
#: Beyond this, windows are as long as they can be: a report of more of them takes minutes.
_LONG_SECONDS = 36 * 3600.0
_SCRAPES_PER_WINDOW, _TOLERANCE = 2, 1.05
#: Over which it is counted how often a system is scraped, in seconds.
_COUNTED_SECONDS = 600
_CHUNK_LEAST = 5


@dataclass(frozen=True, slots=True)
class System:
    """System that can be looked back on. `workload` reads its series alone, from `start` to `stop` (epoch), in windows
    of `workload.window`, of which each query is for `chunk`. `scraped` selects the `up` of its `instances`. `hosts`:
    drives of their hosts, None where none are known."""

    name: str
    workload: Workload
    scraped: str
    instances: tuple[str, ...]
    start: float
    stop: float
    chunk: int
    hosts: HostDrives | None

    @property
    def windows(self) -> int:
        return round((self.stop - self.start) / self.workload.window)

    @property
    def queries(self) -> int:
        """Number of queries that read all windows: of each source and of the scrapes, by chunk, and of the drives."""
        sources = len(self.load.latency) + len({"operations", "bytes", "errors"} & self.workload.load.keys())
        quantiles = sum(max(0, len(each.quantiles) - 1) for each in self.load.latency.values())
        drives = 0 if self.hosts is None else self.hosts.queries(self.windows)
        return math.ceil(self.windows / self.chunk) * (1 + sources + quantiles) + drives

    @property
    def load(self) -> ObserveLoad:
        load = load_of(self.workload)
        assert isinstance(load, ObserveLoad), "the workload is of the engine observe"
        return load


@dataclass(frozen=True, slots=True)
class LeftOut:
    """System that cannot be looked back on, and why, with what would help."""

    name: str
    reason: str


def systems_in(prometheus: BoundedQueries, start: float, stop: float) -> tuple[list[System], list[LeftOut]]:
    """The systems of which there are samples between two moments (epoch), and those that cannot be looked back on.

    Raises QueryFailed.
    """
    found: list[System] = []
    left_out: list[LeftOut] = []
    for workload in _families():
        load = load_of(workload)
        selector = _seen_by(load)
        step = max(1000, round((stop - start) * 1000 / _MOMENTS))
        query = f"count by ({', '.join((*_BY, 'instance'))}) ({selector})"
        answers = prometheus.query_range(query, round(stop * 1000) - _MOMENTS * step, round(stop * 1000), step)
        for labels, same in _grouped(answers).items():
            one = _system(prometheus, workload, load, dict(labels), same, (start, stop))
            (found if isinstance(one, System) else left_out).append(one)  # type: ignore[arg-type]
    return found, left_out


def _families() -> Iterable[Workload]:
    workloads = [parse_workload(path.read_text(encoding="utf-8")) for path in sorted(BUILT_IN_WORKLOADS.glob("*.yaml"))]
    return [each for each in workloads if each.engine == "observe"]


def _seen_by(load: ObserveLoad) -> str:
    """Selector of a series that each instance has once or a few times, of the latency that clients wait for first."""
    source = next(iter(load.latency.values()))
    if source.histogram is None:
        return next(iter(source.quantiles.values()))
    name, matchers = selector_parts(source.histogram)
    bare = name.removesuffix(BUCKET)
    more = f",{matchers[1:-1]}" if matchers[1:-1].strip() else ""
    return f'{{__name__=~"{bare}|{bare}_count"{more}}}'


def _grouped(answers: Iterable[PrometheusAnswer]) -> Mapping[frozenset[tuple[str, str]], list[PrometheusAnswer]]:
    groups: dict[frozenset[tuple[str, str]], list[PrometheusAnswer]] = {}
    for answer in answers:
        by = frozenset((name, answer.labels[name]) for name in _BY if answer.labels.get(name))
        groups.setdefault(by, []).append(answer)
    return dict(sorted(groups.items(), key=lambda item: sorted(item[0])))


def _system(
    prometheus: BoundedQueries,
    workload: Workload,
    load: ObserveLoad,
    labels: Mapping[str, str],
    answers: list[PrometheusAnswer],
    asked: tuple[float, float],
) -> System | LeftOut:
    kind = workload.name.removeprefix("observe-")
    name = "-".join([kind, *(_slug(labels[each]) for each in _BY if each in labels)])
    matchers = ",".join(f"{each}={_quoted(value)}" for each, value in labels.items())
    instances = tuple(sorted({answer.labels.get("instance", "?") for answer in answers}))
    begin = max(asked[0], _first_seen(prometheus, _with(_seen_by(load), matchers), answers))
    # Other labels may be of the metrics alone, and not of the scrapes.
    job = f"job={_quoted(labels['job'])}," if "job" in labels else ""
    scraped = f"up{{{job}instance=~{_quoted('|'.join(map(re.escape, instances)))}}}"
    end = _last_scrape(prometheus, scraped, max(int(answer.times[-1]) for answer in answers))
    scrape_seconds = _scrape_seconds(prometheus, scraped, _with(_seen_by(load), matchers), end)
    if scrape_seconds > _WINDOW_MOST * _TOLERANCE:
        often = format_duration(round(scrape_seconds))
        return LeftOut(name, f"it is scraped every {often}, and a window lasts a minute at most; scrape it more often")
    document, most = _narrowed(prometheus, workload, matchers, begin, end)
    chunk = SAMPLES_LIMIT // max(1, most) - WINDOWS_BEFORE
    if chunk < _CHUNK_LEAST:
        return LeftOut(
            name, f"one of its sources has {most:,} series, too many for queries of {SAMPLES_LIMIT:,} samples"
        )
    usual = math.ceil(_SCRAPES_PER_WINDOW * scrape_seconds / 5 - 0.1) * 5.0
    window = _WINDOW_MOST if end - begin > _LONG_SECONDS else min(_WINDOW_MOST, max(_WINDOW_LEAST, usual))
    start, until = math.ceil(begin / window) * window, math.floor(min(end, asked[1]) / window) * window
    if until - start < window:
        return LeftOut(name, f"there are samples of less than a window of {format_duration(window)}")
    document |= {"window": format_duration(window), "phases": {"soak": format_duration(until - start)}}
    step = max(1000, round((until - start) * 1000 / _COUNTS))
    hosts = drives_of_hosts(prometheus, instances, (round(start * 1000), round(until * 1000), step))
    return System(name, Workload.model_validate(document), scraped, instances, start, until, chunk, hosts)


def _first_seen(prometheus: BoundedQueries, selector: str, answers: list[PrometheusAnswer]) -> float:
    """Time of a system's first samples, in seconds: those of `answers` are far apart."""
    seen = min(int(answer.times[0]) for answer in answers)
    apart = min((int(answer.times[1] - answer.times[0]) for answer in answers if len(answer.times) > 1), default=0)
    step = max(1000, apart // _MOMENTS)
    closer = prometheus.query_range(f"count({selector})", seen - apart, seen, step) if apart else []
    return min([seen, *(int(answer.times[0]) for answer in closer if len(answer.times))]) / 1000


def _last_scrape(prometheus: BoundedQueries, scraped: str, seen: int) -> float:
    """Time of the last scrape of the system's targets, in seconds, by its samples of up to `seen` (milliseconds):
    Prometheus shows the last one for five minutes."""
    answers = prometheus.query_range(f"max(timestamp({scraped}))", seen, seen, 1000)
    return float(answers[0].values[0]) if answers and len(answers[0].values) else seen / 1000


def _scrape_seconds(prometheus: BoundedQueries, scraped: str, seen_by: str, at: float) -> float:
    """Median time between two scrapes of the system's targets before a moment, in seconds."""
    moment = round(at * 1000)
    for selector in (scraped, seen_by):
        query = f"quantile(0.5, count_over_time({selector}[{_COUNTED_SECONDS}s]))"
        answers = prometheus.query_range(query, moment, moment, 1000)
        if answers and len(answers[0].values) and answers[0].values[0] > 0:
            return _COUNTED_SECONDS / float(answers[0].values[0])
    return _WINDOW_MOST


def _narrowed(
    prometheus: BoundedQueries, workload: Workload, matchers: str, begin: float, end: float
) -> tuple[dict[str, Any], int]:
    """The workload's document with the system's labels in each source, without sources that have no series; and the
    most series of one source."""
    document: dict[str, Any] = workload.model_dump(mode="json", exclude={"phases", "window"})
    load, most = dict(document["load"]), 0
    first = next(iter(load["latency"]))
    step = max(1000, round((end - begin) * 1000 / _COUNTS))

    def series(selector: str) -> int:
        stop = round(end * 1000)
        answers = prometheus.query_range(f"count({selector})", stop - _COUNTS * step, stop, step)
        return max((int(answer.values.max()) for answer in answers if len(answer.values)), default=0)

    for operation in list(load["latency"]):
        source = dict(load["latency"][operation])
        if source.get("histogram"):
            source["histogram"] = _with(source["histogram"], matchers)
        else:
            source["quantiles"] = {name: _with(each, matchers) for name, each in source["quantiles"].items()}
        load["latency"][operation] = {name: value for name, value in source.items() if value}
        model = ObserveLoad.model_validate(load | {"latency": {operation: load["latency"][operation]}}).latency
        one = next(iter(model.values()))
        count = max(map(series, [one.buckets] if one.histogram else one.quantiles.values()))
        most = max(most, count)
        if not count and operation != first:
            del load["latency"][operation]
    for name in ("operations", "bytes", "errors"):
        if load.get(name) is None:
            load.pop(name, None)
            continue
        load[name] = _with(load[name], matchers)
        count = series(load[name])
        most = max(most, count)
        if not count and name != "operations":
            del load[name]
    return document | {"load": load}, most


def _with(selector: str, matchers: str) -> str:
    """A selector with more matchers."""
    if not matchers:
        return selector
    body, _, rest = selector.partition("{")
    inside = rest.rstrip().removesuffix("}").strip().rstrip(",")
    return f"{body}{{{inside},{matchers}}}" if inside else f"{body}{{{matchers}}}"


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _slug(text: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:30] or "x"
