"""Run the Kafka load generator: a configuration in, its output lines as windows, events and end."""

import contextlib
import json
import signal
import subprocess
import tempfile
import time
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from testkit.checkout import STATE

from cliffwatch.base.histogram import Histogram
from cliffwatch.base.programs import LOAD, find_program

#: Windows between the start of the engine and that of the load, in which topics and connections are made.
AHEAD_WINDOWS = 3


def program() -> str:
    """Path of the load generator that `setup/binaries` built."""
    found = find_program(LOAD, STATE)
    assert found, "the tests need the load generator: setup/binaries"
    return str(found)


@dataclass(slots=True)
class Outcome:
    """Windows, events and end that an engine printed, and its exit status."""

    status: int
    windows: list[dict[str, Any]] = field(default_factory=list)
    events: list[dict[str, Any]] = field(default_factory=list)
    end: dict[str, Any] = field(default_factory=dict)

    def total(self, counter: str) -> int:
        """Sum of a counter over all windows."""
        return sum(int(window["counters"][counter]) for window in self.windows)

    def latency(self, name: str) -> Histogram:
        """Histogram of a latency, merged over all windows."""
        merged = Histogram()
        for window in self.windows:
            if name in window["latency"]:
                merged.merge(Histogram.decode(window["latency"][name]))
        return merged

    def seconds(self, name: str, quantile: float) -> float:
        """A quantile of a latency over all windows, in seconds."""
        (value,) = self.latency(name).percentiles_seconds([quantile])
        assert value is not None, f"nothing was measured as {name}"
        return value

    def events_named(self, name: str) -> list[dict[str, Any]]:
        """The details of all events of this name."""
        return [event["detail"] for event in self.events if event["name"] == name]

    def start_of(self, document: dict[str, Any]) -> float:
        """Start time of the load: the planned one, or a later one when the engine was not ready in time."""
        later = [float(begun["start"]) for begun in self.events_named("begun")]
        return later[0] if later else float(document["start"])

    @property
    def verification(self) -> dict[str, Any]:
        """Detail of the `verification` event at the end: what became of all records."""
        (found,) = self.events_named("verification")
        return found


def configuration(bootstrap: str, seconds: float | None = 2.0, window: float = 0.5, **changes: Any) -> dict[str, Any]:
    """Configuration of 1,000 records a second on a topic of its own; `changes` replace keys and merge dictionaries."""
    start = (int(time.time() / window) + 1 + AHEAD_WINDOWS) * window
    document: dict[str, Any] = {
        "start": start,
        "stop": None if seconds is None else start + seconds,
        "window_seconds": window,
        "bootstrap_servers": bootstrap.split(","),
        "topics": {"prefix": f"test-{uuid.uuid4().hex[:8]}", "partitions": 6},
        "producer": {"rate": 1000.0},
        "consumer": {},
    }
    for name, change in changes.items():
        is_merged = isinstance(change, dict) and isinstance(document.get(name), dict)
        document[name] = document[name] | change if is_merged else change
    return document


@contextlib.contextmanager
def started(
    document: dict[str, Any], *arguments: str, within: tuple[str, ...] = ()
) -> Iterator["subprocess.Popen[str]"]:
    """Start the engine; it is killed when the block ends. `within` is a command prefix to start it with."""
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(document, file)
        file.flush()
        process = subprocess.Popen(
            [*within, program(), "kafka", "--config", file.name, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            yield process
        finally:
            process.kill()
            process.communicate()


def finish(process: "subprocess.Popen[str]") -> Outcome:
    """Read the engine's output until it exits."""
    assert process.stdout is not None
    outcome = Outcome(0)
    for line in process.stdout:
        take(outcome, json.loads(line))
    outcome.status = process.wait()
    return outcome


def take(outcome: Outcome, line: dict[str, Any]) -> None:
    """Add an output line to the outcome's windows, events or end, by its type."""
    match line["type"]:
        case "window":
            outcome.windows.append(line)
        case "event":
            outcome.events.append(line)
        case "end":
            outcome.end = line


def run(document: dict[str, Any], *arguments: str) -> Outcome:
    """Execute a load to its end."""
    with started(document, *arguments) as process:
        return finish(process)


def read_until(process: "subprocess.Popen[str]", outcome: Outcome, windows: int) -> None:
    """Read output lines until the outcome has `windows` windows."""
    while len(outcome.windows) < windows:
        read_line(process, outcome)


def read_line(process: "subprocess.Popen[str]", outcome: Outcome) -> None:
    """Read the next output line into the outcome. Raises AssertionError when the engine has ended."""
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, f"it ended: {outcome.end}"
    take(outcome, json.loads(line))


def stop(process: "subprocess.Popen[str]") -> None:
    """Send SIGTERM to the engine."""
    process.send_signal(signal.SIGTERM)


def write_file(directory: Path, name: str, text: str) -> str:
    """Write the text to a file; returns its path."""
    path = directory / name
    path.write_text(text)
    return str(path)
