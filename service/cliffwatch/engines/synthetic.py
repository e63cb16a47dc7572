"""The synthetic engine: makes no load, prints windows of a known shape.

It is a real process behind the real contract, so everything above it is exercised as with any engine. In virtual time
it prints its windows as fast as they are read, which executes a 36 h run in seconds. It serves tests, benchmarks and
people who want to see a cliff without a drive.
"""

import math
import signal
import sys
import time
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from cliffwatch.base.histogram import Histogram
from cliffwatch.base.units import Duration
from cliffwatch.engines.contract import EngineContext, EngineFacts, JsonLines, Launch, Probe, Translator
from cliffwatch.engines.run_time import run_time
from cliffwatch.model.document import Strict
from cliffwatch.model.operation import Operation
from cliffwatch.model.plan import LoadPlan
from cliffwatch.model.window import BEGUN, EngineEnd, EngineEvent, EngineWindow, format_engine_line


class SyntheticLoad(Strict):
    """Log-normal latencies around `median_latency`; from `cliff_after` on they are `cliff_ratio` times as long.

    As with a drive, restarting the engine does not undo the cliff.
    """

    operations_per_second: Annotated[int, Field(ge=1, le=10_000_000)] = 1000
    operation_bytes: Annotated[int, Field(ge=1)] = 16_384
    median_latency: Annotated[Duration, Field(gt=0, le=60)] = 0.002
    spread: Annotated[float, Field(ge=0, le=3)] = 0.3
    cliff_after: Annotated[Duration, Field(ge=0)] | None = None
    cliff_ratio: Annotated[float, Field(ge=1, le=10_000)] = 100.0
    seed: int = 1
    time: Literal["real", "virtual"] = "real"
    #: Exit with status 1 after this many windows; the tests of engine restarts use it.
    fail_after_windows: Annotated[int, Field(ge=1)] | None = None


#: Its process, as people see it: its arguments are the whole load and times.
_SHOWN = ("python", "-m", "cliffwatch.engines.synthetic")


class SyntheticEngine:
    """Engine that runs this module as a process."""

    name = "synthetic"
    load_model = SyntheticLoad
    target_kinds = frozenset({"synthetic"})
    latencies = ("publish", "publish_service")
    stop_signal = signal.SIGTERM
    reads_history = False

    def is_virtual(self, load: SyntheticLoad) -> bool:
        return load.time == "virtual"

    def plan(self, load: SyntheticLoad, context: EngineContext) -> LoadPlan:
        return LoadPlan(writes=(), command=_SHOWN, direct=True, written_bytes=0)

    def probe(self, load: SyntheticLoad, context: EngineContext) -> Probe:
        return Probe()

    def prepare(self, load: SyntheticLoad, context: EngineContext) -> None:
        return None

    def launch(self, load: SyntheticLoad, context: EngineContext) -> Launch:
        return Launch(self._command(load, context), shown=_SHOWN)

    def translator(self, load: SyntheticLoad, context: EngineContext) -> Translator:
        return JsonLines()

    def clear(self, load: SyntheticLoad, context: EngineContext) -> None:
        return None

    def facts(self, load: SyntheticLoad, context: EngineContext) -> EngineFacts:
        return EngineFacts()

    @staticmethod
    def _command(load: SyntheticLoad, context: EngineContext) -> list[str]:
        times = (context.start, context.stop, context.window_seconds, context.begun)
        return [sys.executable, "-m", "cliffwatch.engines.synthetic", load.model_dump_json(), *map(repr, times)]


#: Latencies drawn for a window; each stands for an equal share of the operations. They fill a histogram of three digits
#: as a busy window of real load does, so that journals of synthetic runs have the size of real ones.
SAMPLES_PER_WINDOW = 10_000


def histogram_of(load: SyntheticLoad, operations: int, elapsed_seconds: float, noise: np.random.Generator) -> Histogram:
    """A log-normal histogram of `operations` latencies around the median that holds at `elapsed_seconds`."""
    fallen = load.cliff_after is not None and elapsed_seconds >= load.cliff_after
    median = load.median_latency * (load.cliff_ratio if fallen else 1.0) * math.exp(noise.normal(0, 0.02))
    samples = min(operations, SAMPLES_PER_WINDOW)
    values = np.rint(noise.lognormal(math.log(median), load.spread, samples) * 1e9).astype(np.int64)
    share, rest = divmod(operations, samples)
    histogram = Histogram()
    histogram.record_many(values, np.full(samples, share) + (np.arange(samples) < rest))
    return histogram


def main(arguments: list[str]) -> None:
    load = SyntheticLoad.model_validate_json(arguments[0])
    start, stop, window_seconds, begun = map(float, arguments[1:5])
    stopping: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: stopping.append(number))
    noise = np.random.default_rng([load.seed, round(start * 1000)])
    late = run_time() - start
    if load.time == "real" and late > 0 and begun == start:
        moved = math.ceil(late / window_seconds) * window_seconds
        start, stop, begun = start + moved, stop + moved, begun + moved
        print(format_engine_line(EngineEvent(start, BEGUN, {"start": start, "late_seconds": late})), flush=True)
    operations = round(load.operations_per_second * window_seconds)
    count = round((stop - start) / window_seconds)
    anchor = time.monotonic() - (run_time() - start)
    for seq in range(count):
        begin, end = start + seq * window_seconds, start + (seq + 1) * window_seconds
        if load.time == "real":
            time.sleep(max(0.0, anchor + (end - start) - time.monotonic()))
        service = histogram_of(load, operations, begin - begun, noise)
        window = EngineWindow(
            start=begin,
            end=end,
            counters={"operations": operations, "bytes": operations * load.operation_bytes, "errors": 0},
            gauges={
                "schedule_debt_seconds": 0.0,
                "oldest_outstanding_seconds": 0.0,
                "requested_operations_per_second": load.operations_per_second,
                "requested_bytes_per_second": load.operations_per_second * load.operation_bytes,
            },
            latency={Operation.PUBLISH.value: service, "publish_service": service},
        )
        print(format_engine_line(window, seq), flush=True)
        if seq + 1 == load.fail_after_windows:
            sys.exit(1)
        if stopping:
            break
    print(format_engine_line(EngineEnd("completed")), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
