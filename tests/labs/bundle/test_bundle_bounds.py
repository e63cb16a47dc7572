"""Bundles that are small and become large: refused with the limit's name, by a process that has it."""

import base64
import io
import json
import os
import signal
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import pytest
from tests.labs.bundle.packed import RUN_ID, content_of, finished, forged

from cliffwatch.base.errors import Code, Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.base.memory_limit import ENVIRONMENT
from cliffwatch.journal.checksum import sealed
from cliffwatch.journal.reader import LINE_LIMIT_BYTES
from cliffwatch.labs.bundle import bounds
from cliffwatch.labs.bundle.unpack import unpack
from cliffwatch.model.window import NAMES_LIMITS

_OPEN = """
import sys
from cliffwatch.labs.bundle import bounds
from cliffwatch.labs.bundle.__main__ import main
bounds.MEMORY_LIMIT_BYTES = int(sys.argv[1])
status = main(sys.argv[2:])
print(next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM")), file=sys.stderr)
sys.exit(status)
"""


@pytest.fixture(scope="module")
def content(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    return content_of(finished(tmp_path_factory.mktemp("honest") / RUN_ID))


def _opened(
    bundle: bytes, tmp_path: Path, memory_bytes: int = bounds.MEMORY_LIMIT_BYTES
) -> tuple[dict[str, object], int]:
    """What the process that opens it says, and the memory that it took, in MiB."""
    file, runs = tmp_path / "bundle", tmp_path / "runs"
    file.write_bytes(bundle)
    runs.mkdir()
    command = [sys.executable, "-c", _OPEN, str(memory_bytes), str(file), str(runs), "new"]
    done = subprocess.run(command, capture_output=True, check=False, env={**os.environ, **ENVIRONMENT})
    assert done.stdout, done.stderr.decode()
    body = json.loads(done.stdout)
    return body.get("problem", {}), int(done.stderr.split()[-1]) // 1024


def test_a_decompression_bomb_is_refused_before_it_is_unpacked(tmp_path: Path, content: dict[str, bytes]) -> None:
    bundle = forged(content | {"windows.jsonl": b"a" * (100 * 1024**2)})
    assert len(bundle) < 200 * 1024
    problem, peak_mib = _opened(bundle, tmp_path)
    assert problem["code"] == Code.BUNDLE_INVALID
    assert "would become 100" in str(problem["faults"])
    assert peak_mib < 600
    assert not (tmp_path / "runs" / "new").exists()


@pytest.mark.parametrize(
    ("name", "line", "count", "words"),
    [
        (
            "events.jsonl",
            b'{"at":1,"type":"note","name":"x","detail":{}}\n',
            bounds.EVENTS_LIMIT,
            "more than 50000 lines",
        ),
        ("events.jsonl", b'"' + b"a" * LINE_LIMIT_BYTES + b'"\n', 1, "more than 4.0 MiB"),
        ("latency.hlog", b"a" * (2 * LINE_LIMIT_BYTES), 1, "more than 4.0 MiB"),
        ("windows.jsonl", b'{"a":' * 100 + b"1" + b"}" * 100 + b"\n", 1, "nested more than 64 deep"),
        ("events.jsonl", b'{"at":1,"type":"note","name":"x","detail":{"ratio":1e999}}\n', 1, "too large a number"),
        ("facts.json", b'{"size": 1e999}', 1, "too large a number"),
    ],
)
def test_journals_beyond_measure_are_refused(
    name: str, line: bytes, count: int, words: str, tmp_path: Path, content: dict[str, bytes]
) -> None:
    kept = b"" if name == "facts.json" else content[name]
    with pytest.raises(Problem) as refused:
        unpack(io.BytesIO(forged(content | {name: kept + line * count})), tmp_path / "journal")
    assert refused.value.code is Code.BUNDLE_INVALID
    assert words in str(refused.value)


@pytest.mark.parametrize("name", ["counters", "gauges", "latency"])
def test_windows_of_more_names_than_engines_have_are_refused(
    name: str, tmp_path: Path, content: dict[str, bytes]
) -> None:
    """Each name is a series to look for cliffs in: thousands took minutes of a bundle of 250 KB."""
    windows = [json.loads(line) for line in content["windows.jsonl"].splitlines()]
    value = next(iter(windows[0][name].values()), 1)
    for window in windows:
        window[name] |= {f"n{window['seq']}.{number}": value for number in range(NAMES_LIMITS[name] // 10)}
    lines = b"".join(json.dumps(window).encode() + b"\n" for window in windows)
    with pytest.raises(Problem) as refused:
        unpack(io.BytesIO(forged(content | {"windows.jsonl": lines})), tmp_path / "journal")
    assert f"more than {NAMES_LIMITS[name]} names of {name}" in str(refused.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "does not come after"),
        ({"seq": 1}, "begins before the one before it ended"),
        ({"seq": 1, "later": 10}, "names histograms of the one before it"),
    ],
)
def test_windows_that_are_reported_again_are_refused(
    changes: dict[str, int], words: str, tmp_path: Path, content: dict[str, bytes]
) -> None:
    """What costs nothing to send costs its reader a window, and the histograms that it names, each time."""
    first = json.loads(content["windows.jsonl"].splitlines()[0])
    again = first | {"seq": first["seq"] + changes.get("seq", 0)}
    again |= {name: first[name] + changes.get("later", 0) for name in ("start", "end")}
    lines = "".join(json.dumps(window) + "\n" for window in (first, again)).encode()
    with pytest.raises(Problem) as refused:
        unpack(io.BytesIO(forged(content | {"windows.jsonl": lines})), tmp_path / "journal")
    assert refused.value.code is Code.BUNDLE_INVALID
    assert "windows.jsonl line 2" in str(refused.value)
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"end": 0.0}, "seq, start and end do not make an interval"),
        ({"counters": {"operations": -1}}, "one that nothing can have"),
        ({"counters": {"operations": 10**300}}, "one that nothing can have"),
        ({"gauges": {"measured_seconds": -1}}, "one that nothing can have"),
        ({"latency": {"write": {"count": 1, "max": 1, "p50": -1e308}}}, "a latency lacks its count"),
        ({"latency": {"write": {"count": 1, "max": 1e308}}}, "a latency lacks its count"),
        ({"latency": {"write": {"count": 1, "p50": 1}}}, "a latency lacks its count"),
        ({"latency_range": [5, 2**63]}, "latency_range is no range of bytes"),
    ],
)
def test_a_window_that_nothing_can_have_measured_is_refused(
    change: dict[str, object], words: str, tmp_path: Path, content: dict[str, bytes]
) -> None:
    """Nothing of it would be in a report, so that the verdict that the bundle claims stood alone."""
    first, *others = content["windows.jsonl"].splitlines(keepends=True)
    window = json.loads(first) | change
    del window["crc32"]
    lines = sealed(json.dumps(window)).encode()
    with pytest.raises(Problem) as refused:
        unpack(io.BytesIO(forged(content | {"windows.jsonl": lines + b"".join(others)})), tmp_path / "journal")
    assert refused.value.code is Code.BUNDLE_INVALID
    assert words in str(refused.value)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        (b"Tag=other,1.0,1.0,1.0,HISTFAAA\n" * 2000, "its latency_range holds 'other'"),
        (b"Tag={name},1.0,1.0,1.0,HISTFAAA\n", "which it has not, or twice"),
        (b"#" * (8 * 1024**2), "it may have 8.0 MiB"),
    ],
)
def test_a_window_with_more_histograms_than_latencies_is_refused(
    more: bytes, words: str, tmp_path: Path, content: dict[str, bytes]
) -> None:
    """A reader would decode each, and each takes far more memory than its line."""
    *others, last = content["windows.jsonl"].splitlines(keepends=True)
    window = json.loads(last)
    more = more.replace(b"{name}", next(iter(window["latency"])).encode())
    latency = content["latency.hlog"] + more
    window |= {"latency_range": [window["latency_range"][0], len(latency)], "latency_crc32": None}
    del window["crc32"]
    changed = {"windows.jsonl": b"".join(others) + sealed(json.dumps(window)).encode(), "latency.hlog": latency}
    with pytest.raises(Problem) as refused:
        unpack(io.BytesIO(forged(content | changed)), tmp_path / "journal")
    assert refused.value.code is Code.BUNDLE_INVALID
    assert f"windows.jsonl line {len(others) + 1}" in str(refused.value)
    assert words in str(refused.value)


def test_more_windows_than_were_planned_are_refused(tmp_path: Path, content: dict[str, bytes]) -> None:
    order = json.loads(content["order.json"])
    order["workload"] |= {"phases": {"soak": "1s"}, "window": "1s"}
    with pytest.raises(Problem) as refused:
        unpack(io.BytesIO(forged(content | {"order.json": json.dumps(order).encode()})), tmp_path / "journal")
    assert f"more than {1 + bounds.SPARE_WINDOWS} lines" in str(refused.value)


def test_a_manifest_that_is_nested_without_end_is_refused(tmp_path: Path, content: dict[str, bytes]) -> None:
    deep: list[object] = []
    for _ in range(900):
        deep = [deep]
    with pytest.raises(Problem) as refused:
        unpack(io.BytesIO(forged(content, manifest={"more": deep})), tmp_path / "journal")
    assert refused.value.code is Code.BUNDLE_INVALID


@pytest.mark.parametrize("memory_kib", [512, 1536])
def test_the_limit_on_memory_is_the_kernels_and_is_named(
    memory_kib: int, tmp_path: Path, content: dict[str, bytes]
) -> None:
    """Also where it is zstd that gets no memory."""
    problem, _ = _opened(forged(content), tmp_path, memory_bytes=memory_kib * 1024)
    assert problem["code"] == Code.BUNDLE_INVALID
    assert "RLIMIT_AS" in str(problem["detail"])


def test_an_honest_bundle_is_far_from_the_limits(tmp_path: Path, content: dict[str, bytes]) -> None:
    problem, peak_mib = _opened(forged(content), tmp_path)
    assert problem == {}
    assert peak_mib < 900


@pytest.mark.parametrize(
    ("number", "words"),
    [(signal.SIGXCPU, "RLIMIT_CPU"), (signal.SIGXFSZ, "RLIMIT_FSIZE"), (signal.SIGKILL, "control group")],
)
def test_a_limit_that_ends_the_process_is_named(number: int, words: str) -> None:
    assert words in str(bounds.what_ended(-number))
    assert bounds.what_ended(1) is None


def test_a_histogram_that_inflates_to_more_than_any_has_is_refused() -> None:
    packed = zlib.compress(b"\0" * (256 * 1024**2))
    text = base64.b64encode(struct.pack(">II", 0x1C849304, len(packed)) + packed).decode()
    with pytest.raises(ValueError, match="has more than"):
        Histogram.decode(text)
