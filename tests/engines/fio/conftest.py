"""fio's output as the tests make it: cumulative documents in fio's own layout."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cliffwatch.engines.contract import EngineContext

DATA = Path(__file__).parent / "data"
#: A grid line of windows of a second.
START = 1_790_000_000.0

MakeDocument = Callable[..., bytes]
MakeContext = Callable[..., EngineContext]


def _direction(bins: dict[int, int], size_bytes: int, runtime_ms: int, longest: int) -> dict[str, Any]:
    counted = {str(value): count for value, count in sorted(bins.items())}
    latency = {"max": longest or max(bins, default=0), "N": sum(bins.values()), "bins": counted}
    return {"io_bytes": size_bytes, "runtime": runtime_ms, "lat_ns": latency, "clat_ns": {"max": 0, "bins": {}}}


@pytest.fixture
def document() -> MakeDocument:
    """Bytes of a report of `write`, `read` and `sync` bins; each operation moves 4096 bytes. `at` since START."""

    def make(
        at: float,
        runtime: float,
        write: dict[int, int] | None = None,
        read: dict[int, int] | None = None,
        sync: dict[int, int] | None = None,
        error: int = 0,
        longest: int = 0,
    ) -> bytes:
        milliseconds = round(runtime * 1000)
        job = {
            "error": error,
            **{
                name: _direction(bins or {}, sum((bins or {}).values()) * 4096, milliseconds, longest)
                for name, bins in (("write", write), ("read", read))
            },
            "sync": {
                "lat_ns": {"max": max(sync or {}, default=0), "bins": {str(k): v for k, v in (sync or {}).items()}}
            },
        }
        return json.dumps({"timestamp_ms": round((START + at) * 1000), "jobs": [job]}, indent=2).encode() + b"\n"

    return make


@pytest.fixture
def context(tmp_path: Path) -> MakeContext:
    """A context with a directory and a scratch of its own."""

    def make(start: float = START, seconds: float = 10, window: float = 1.0) -> EngineContext:
        path, scratch = tmp_path / "files", tmp_path / "scratch"
        path.mkdir(exist_ok=True)
        scratch.mkdir(exist_ok=True)
        return EngineContext("run", path, False, scratch, window, start, start + seconds, tmp_path)

    return make


@pytest.fixture
def three_seconds() -> bytes:
    """What fio 3.33 printed in three seconds of 20 writes and 20 reads a second, reported every second."""
    return (DATA / "three-seconds.txt").read_bytes()


@pytest.fixture
def interrupted() -> bytes:
    """What fio 3.33 printed when SIGINT ended it."""
    return (DATA / "interrupted.txt").read_bytes()
