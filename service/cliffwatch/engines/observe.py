"""The observe engine: makes no load, reads what a Prometheus knows of one that others make.

Its process is `python -m cliffwatch.observer`, which reads counters and latency histograms window by window.
"""

import re
import signal
import sys
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from cliffwatch.engines.check import run_check
from cliffwatch.engines.contract import EngineContext, EngineFacts, JsonLines, Launch, Probe, Translator
from cliffwatch.model.document import Name, Strict
from cliffwatch.model.operation import Operation
from cliffwatch.model.plan import LoadPlan

#: Three queries of five seconds each for a source, of which there are few.
_PATIENCE_SECONDS = 30.0
#: Its process, as people see it: its arguments are the whole load and times.
_SHOWN = ("python", "-m", "cliffwatch.observer")
_SELECTOR = re.compile(r"(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?P<matchers>\{.*\})?", re.DOTALL)
_SELECTOR_LIMIT = 2000
_UNIT_IN_NAME = re.compile(r"_(seconds|milliseconds|microseconds|nanoseconds)(?:_|$)")
UNITS = {"seconds": 1.0, "milliseconds": 1e-3, "microseconds": 1e-6, "nanoseconds": 1e-9}
BUCKET = "_bucket"


def selector_parts(selector: str) -> tuple[str, str]:
    """Metric name and label matchers with their braces, which may be empty. Raises ValueError."""
    found = _SELECTOR.fullmatch(selector.strip())
    if found is None:
        raise ValueError('write a metric and its labels, such as requests_total{job="broker"}; no function or operator')
    return found["name"], found["matchers"] or ""


def _checked(selector: str) -> str:
    return "".join(selector_parts(selector))


Selector = Annotated[str, Field(max_length=_SELECTOR_LIMIT), AfterValidator(_checked)]


class LatencySource(Strict):
    """A histogram of Prometheus, classic or native, whose series that match are added up, or gauges of single
    `quantiles`, of whose series the highest counts. `unit` is read from a histogram's name where that ends in one."""

    histogram: Selector | None = None
    quantiles: dict[Literal["p50", "p90", "p99", "p99.9", "p99.99", "max"], Selector] = Field(default_factory=dict)
    unit: Literal["seconds", "milliseconds", "microseconds", "nanoseconds"] | None = None

    @model_validator(mode="after")
    def _has_one_source_and_unit(self) -> Self:
        if (self.histogram is None) == (not self.quantiles):
            raise ValueError("give a `histogram`, or `quantiles` such as `{p99: METRIC}`; a histogram says more")
        name = None if self.histogram is None else selector_parts(self.histogram)[0]
        if self.unit is None and (name is None or _UNIT_IN_NAME.search(name) is None):
            what = "quantiles have none in their names" if name is None else f"{name} does not end in a unit"
            raise ValueError(f"{what}; add `unit: seconds`, or the one that its values are in")
        return self

    @property
    def buckets(self) -> str:
        """Selector of the histogram: of a classic one's buckets, and of a native one, which has the bare name."""
        assert self.histogram is not None, "called for a histogram"
        name, matchers = selector_parts(self.histogram)
        more = f",{matchers[1:-1]}" if matchers[1:-1].strip() else ""
        bare = name.removesuffix(BUCKET)
        return f'{{__name__=~"{bare}|{bare}{BUCKET}"{more}}}'

    @property
    def unit_seconds(self) -> float:
        """What 1 is in seconds."""
        found = None if self.histogram is None else _UNIT_IN_NAME.search(selector_parts(self.histogram)[0])
        assert self.unit is not None or found is not None, "validated"
        return UNITS[self.unit or found[1]]  # type: ignore[index]


class ObserveLoad(Strict):
    """What is read of a Prometheus: `latency` by operation, and counters of operations, bytes and errors.

    `prometheus` is the name of one of your own; the stack's own is asked otherwise. Without `operations`, the latencies
    of the operation that a client waits for first are counted.
    """

    prometheus: Name | None = None
    latency: Annotated[dict[Operation, LatencySource], Field(min_length=1)]
    operations: Selector | None = None
    bytes: Selector | None = None
    errors: Selector | None = None

    @model_validator(mode="after")
    def _counts_operations(self) -> Self:
        first = next(self.latency[each] for each in Operation if each in self.latency)
        if self.operations is None and first.histogram is None:
            raise ValueError("quantiles count nothing: name a counter of `operations`")
        return self


class ObserveEngine:
    """Runs `python -m cliffwatch.observer` as a process."""

    name = "observe"
    load_model = ObserveLoad
    target_kinds = frozenset({"observed"})
    latencies = tuple(each.value for each in Operation)
    stop_signal = signal.SIGTERM
    reads_history = True

    def is_virtual(self, load: ObserveLoad) -> bool:
        return False

    def plan(self, load: ObserveLoad, context: EngineContext) -> LoadPlan:
        return LoadPlan(writes=(), command=_SHOWN, direct=True, written_bytes=0, notes=_notes(load))

    def probe(self, load: ObserveLoad, context: EngineContext) -> Probe:
        return run_check([*self._command(load, context), "--check"], _PATIENCE_SECONDS, "Prometheus")

    def prepare(self, load: ObserveLoad, context: EngineContext) -> None:
        return None

    def launch(self, load: ObserveLoad, context: EngineContext) -> Launch:
        return Launch(self._command(load, context), shown=_SHOWN)

    def translator(self, load: ObserveLoad, context: EngineContext) -> Translator:
        return JsonLines()

    def clear(self, load: ObserveLoad, context: EngineContext) -> None:
        return None

    def facts(self, load: ObserveLoad, context: EngineContext) -> EngineFacts:
        return EngineFacts(warnings=_notes(load))

    @staticmethod
    def _command(load: ObserveLoad, context: EngineContext) -> list[str]:
        begin = context.begun if context.reported_until is None else context.reported_until
        times = (begin, context.stop, context.window_seconds)
        return [sys.executable, "-m", "cliffwatch.observer", load.model_dump_json(), *map(repr, times)]


def _notes(load: ObserveLoad) -> tuple[str, ...]:
    """Sentences on what the run's figures cannot say."""
    notes = []
    if any(source.histogram is not None for source in load.latency.values()):
        notes.append(
            "latencies are read from the buckets of Prometheus, and percentiles are as exact as these are narrow"
        )
    ready_made = [operation for operation, source in load.latency.items() if source.histogram is None]
    if ready_made:
        notes.append(
            f"quantiles of {', '.join(ready_made)} are read ready-made, each window's own: they cannot be merged, so "
            "that there is no percentile of a phase or an hour"
        )
    if load.errors is None:
        notes.append("errors are not observed: `load.errors` names no counter of them")
    return tuple(notes)
