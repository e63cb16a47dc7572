"""The storage engine's real program, run on a directory of the test's own."""

import json
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testkit.checkout import STATE

from cliffwatch.base.histogram import Histogram
from cliffwatch.base.programs import LOAD, find_program
from cliffwatch.engines.contract import EngineContext, JsonLines
from cliffwatch.engines.storage.document import document_of
from cliffwatch.engines.storage.load import StorageLoad
from cliffwatch.model.timeline import grid_line_at_or_after
from cliffwatch.model.window import EngineEnd, EngineEvent, EngineRecord, EngineWindow

#: Load with segments so small that a second of it rolls and deletes some.
SMALL: dict[str, Any] = {
    "style": "redpanda",
    "style_changes": {"segment_size": "128KiB", "preallocation": "64KiB"},
    "partitions": 8,
    "rate": "4MB",
    "retention_size": "4MiB",
    "verify_size": None,
}


def program() -> Path:
    found = find_program(LOAD, STATE)
    assert found is not None, f"{LOAD} is not built; `make binaries` builds it"
    return found


def load_of(**changes: Any) -> StorageLoad:
    """SMALL, overridden by `changes`; `style_changes` add to SMALL's own, or replace them if the style differs."""
    document = SMALL | changes
    style_changes = changes.get("style_changes", {})
    if document["style"] == SMALL["style"]:
        style_changes = SMALL["style_changes"] | style_changes
    return StorageLoad.model_validate(document | {"style_changes": style_changes})


@dataclass
class Outcome:
    """Records that the program printed, its exit status, and its stderr."""

    records: list[EngineRecord] = field(default_factory=list)
    status: int = 0
    error: str = ""

    @property
    def windows(self) -> list[EngineWindow]:
        return [record for record in self.records if isinstance(record, EngineWindow)]

    @property
    def end(self) -> EngineEnd:
        end = self.records[-1]
        assert isinstance(end, EngineEnd), end
        return end

    @property
    def counters(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for window in self.windows:
            total.update(window.counters)
        return total

    def events(self, name: str) -> list[dict[str, Any]]:
        return [record.detail for record in self.records if isinstance(record, EngineEvent) and record.name == name]

    def latency(self, name: str) -> Histogram:
        merged = Histogram()
        for window in self.windows:
            if name in window.latency:
                merged.merge(window.latency[name])
        return merged


class Running:
    """The running program. `finish` reads its output until it ends."""

    def __init__(self, process: "subprocess.Popen[bytes]", start: float) -> None:
        self.process = process
        self.start = start
        self._lines = JsonLines()
        self.outcome = Outcome()

    def read_until(self, name: str) -> EngineRecord:
        """Read until the next event of this name, or the next window when `name` is `window`; returns it."""
        assert self.process.stdout is not None
        for line in self.process.stdout:
            for record in self._lines.feed(line, time.time()):
                self.outcome.records.append(record)
                is_window = isinstance(record, EngineWindow) and name == "window"
                if is_window or (isinstance(record, EngineEvent) and record.name == name):
                    return record
        raise AssertionError(f"it ended before {name}: {self.outcome.records[-1:]}")

    def finish(self) -> Outcome:
        out, error = self.process.communicate()
        self.outcome.records += self._lines.feed(out, time.time())
        self.outcome.status = self.process.returncode
        self.outcome.error = error.decode()
        return self.outcome


def context_of(directory: Path, seconds: float, window_seconds: float = 0.5) -> EngineContext:
    """Context of a load that begins at the first window boundary 0.2 s from now or later, and lasts `seconds`."""
    start = grid_line_at_or_after(time.time() + 0.2, window_seconds)
    return EngineContext("run-1", directory, False, directory.parent, window_seconds, start, start + seconds, STATE)


@contextmanager
def running(
    load: StorageLoad,
    directory: Path,
    seconds: float,
    *,
    window_seconds: float = 0.5,
    changes: Mapping[str, Any] | None = None,
    flags: tuple[str, ...] = (),
    preexec: Any = None,
) -> Iterator[Running]:
    """Start the program on `directory`; killed when the block ends. `changes` are made to its configuration."""
    directory.mkdir(exist_ok=True)
    context = context_of(directory, seconds, window_seconds)
    document = directory.parent / f"{directory.name}.json"
    document.write_text(json.dumps(document_of(load, context) | dict(changes or {})))
    command = [str(program()), "storage", "--config", str(document), *flags]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=preexec)
    try:
        yield Running(process, context.start)
    finally:
        process.kill()
        process.communicate()


def run(load: StorageLoad, directory: Path, seconds: float, **options: Any) -> Outcome:
    with running(load, directory, seconds, **options) as at_work:
        return at_work.finish()


def verify(directory: Path) -> dict[str, Any]:
    """Run `cliffwatch-load verify` on a directory; returns its JSON output, with the exit status as `status`."""
    done = subprocess.run([program(), "verify", str(directory)], capture_output=True, text=True, check=False)
    assert done.stdout, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"status": done.returncode}


def segments(directory: Path, log: int = 0) -> list[Path]:
    """Segment files of log number `log`, oldest first."""
    return sorted((directory / "log" / f"{log:06}").glob("*.log"))
