"""What Prometheus answers and what was kept of it: nothing is believed, and no damaged part is another measurement."""

import json
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from tests.fuzz.damage import restructured, spoiled
from tests.fuzz.explore import bounded, explore, holds
from tests.telemetry.hostile_server import HostileServer

from cliffwatch.telemetry import reader
from cliffwatch.telemetry.address import PrometheusAddress
from cliffwatch.telemetry.catalogue import SeriesScope
from cliffwatch.telemetry.collector import table_of
from cliffwatch.telemetry.parts import DIRECTORY, INDEX, Hole, Index, Points, SampleGrid, read_part, write_part
from cliffwatch.telemetry.prometheus import Prometheus, PrometheusAnswer, QueryFailed
from cliffwatch.telemetry.result import Result

START, STEP, POINTS = 1_790_000_000_000, 10_000, 12
GRID = SampleGrid(START, STEP)
ANSWER = {
    "status": "success",
    "data": {
        "version": "2.42.0",
        "resultType": "matrix",
        "result": [
            {
                "metric": {"__name__": "x", "device": "nvme0n1"},
                "values": [[START / 1000, "1"], [START / 1000 + 10, "2.5"]],
            },
            {"metric": {"device": "sda"}, "values": [[START / 1000 + 10, "NaN"]]},
        ],
    },
}
REFUSAL = {"status": "error", "errorType": "bad_data", "error": "parse error"}
SERIES = SeriesScope("run-1", ["nvme0n1"], ["/data"]).series()[0]


class Answering:
    """An HTTP server that answers everything with `body`."""

    def __init__(self) -> None:
        self.body = b""

    def __call__(self, connection: socket.socket, over: threading.Event) -> None:
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(self.body)}\r\n"
        connection.sendall(head.encode() + b"Connection: close\r\n\r\n" + self.body)


@contextmanager
def asked(body: bytes) -> Iterator[Prometheus]:
    answering = Answering()
    answering.body = body
    with HostileServer(answering) as server:
        prometheus = Prometheus(PrometheusAddress(server.url), time.monotonic() + 5)
        try:
            yield prometheus
        finally:
            prometheus.close()


ANSWERS = restructured(st.sampled_from([ANSWER, REFUSAL])).map(lambda text: text.encode("utf-8", "surrogatepass"))


@holds(examples=60, body=ANSWERS | spoiled(st.just(json.dumps(ANSWER).encode())))
def test_an_answer_is_sound_or_a_failed_query(body: bytes) -> None:
    with asked(body) as prometheus, bounded():
        try:
            answers = prometheus.query_range("x", START, START + 10 * STEP, STEP)
        except QueryFailed as error:
            assert 0 < len(str(error).encode()) < 1500
            return
        for answer in answers:
            assert len(answer.times) == len(answer.values)
            assert answer.times.dtype == np.int64
        assert table_of([(SERIES, answers)]).num_rows == sum(len(answer.times) for answer in answers)


@holds(examples=20, body=ANSWERS)
def test_a_version_is_a_number_or_a_failed_query(body: bytes) -> None:
    with asked(body) as prometheus, bounded():
        try:
            assert isinstance(prometheus.major_version(), int)
        except QueryFailed as error:
            assert str(error).encode()


def _values(part: int) -> list[PrometheusAnswer]:
    times = np.array([GRID.milliseconds(part * POINTS + point) for point in range(POINTS)], dtype=np.int64)
    return [
        PrometheusAnswer({"device": name}, times, np.arange(POINTS, dtype=np.float64) + (100.25 * part + place))
        for place, name in enumerate(("sda", "sdb"))
    ]


@cache
def telemetry_files() -> dict[str, bytes]:
    """Two parts and their index."""
    with tempfile.TemporaryDirectory(prefix="cliffwatch-fuzz-") as place:
        directory = Path(place)
        parts = tuple(
            write_part(
                directory,
                f"part-{number + 1:06d}.parquet",
                table_of([(SERIES, _values(number))]),
                GRID,
                Points(number * POINTS, (number + 1) * POINTS - 1),
            )
            for number in range(2)
        )
        holes = (Hole(Points(2 * POINTS, 2 * POINTS + 3), "it did not answer"),)
        Index(GRID, 2 * POINTS + 3, parts, holes).write(directory)
        return {path.name: path.read_bytes() for path in directory.iterdir()}


@contextmanager
def telemetry(files: dict[str, bytes]) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="cliffwatch-fuzz-") as place:
        (Path(place) / DIRECTORY).mkdir()
        for name, content in files.items():
            (Path(place) / DIRECTORY / name).write_bytes(content)
        yield Path(place)


def samples(found: reader.Telemetry | None) -> dict[tuple[str, str, float], float]:
    assert found is not None
    return {
        (name, json.dumps(each.labels), moment): value
        for name, series in found.series.items()
        for each in series
        for moment, value in zip(each.times.tolist(), each.values.tolist(), strict=True)
    }


def whole() -> dict[tuple[str, str, float], float]:
    with telemetry(telemetry_files()) as directory:
        return samples(reader.read(directory))


WHOLE = whole()
FIRST = "part-000001.parquet"


@holds(examples=150, content=spoiled(st.just(telemetry_files()[FIRST])))
def test_a_damaged_part_is_a_gap_and_never_other_samples(content: bytes) -> None:
    with telemetry(telemetry_files() | {FIRST: content}) as directory, bounded():
        found = reader.read(directory)
        assert found is not None
        kept = samples(found)
        assert kept.items() <= WHOLE.items()
        assert len(kept) == len(WHOLE) or (found.faults and len(kept) == len(WHOLE) // 2)
        assert bool(found.faults) == any(FIRST in gap.reason for gap in found.gaps)


@holds(
    examples=80,
    content=restructured(st.just(json.loads(telemetry_files()[INDEX]))).map(
        lambda text: text.encode("utf-8", "surrogatepass")
    )
    | spoiled(st.just(telemetry_files()[INDEX])),
)
def test_a_damaged_index_costs_no_sample_and_no_time(content: bytes) -> None:
    with telemetry(telemetry_files() | {INDEX: content}) as directory, bounded():
        found = reader.read(directory)
        assert found is not None
        kept = samples(found)
        assert kept.items() <= WHOLE.items()
        assert len(kept) == len(WHOLE) or found.faults
        assert all(np.isfinite([gap.start, gap.end]).all() for gap in found.gaps)


def _odd(change: Callable[[dict[str, Any]], None]) -> pa.Table:
    columns: dict[str, Any] = {"time": [1.0, 2.0], "series": ["x", "x"], "labels": ["{}", "{}"], "value": [1.0, 2.0]}
    change(columns)
    return pa.table(columns)


ODD_COLUMNS = st.fixed_dictionaries(
    {},
    optional={
        "time": st.sampled_from([[None, 2.0], ["a", "b"], [2.0, 1.0], [float("nan"), float("inf")], [1, 2]]),
        "series": st.sampled_from([[None, "x"], [1, 2], [b"\xff", b"a"], [[], []]]),
        "labels": st.sampled_from([[None, "{}"], ["[]", "{}"], ["{", "{"], ["[" * 5000, "{}"], ["7", '"a"'], [1, 2]]),
        "value": st.sampled_from([[None, 1.0], ["a", "b"], [10**30, 1], [True, False]]),
    },
)


@holds(examples=60, columns=ODD_COLUMNS)
def test_a_part_that_holds_something_else_is_a_fault(columns: dict[str, Any]) -> None:
    try:
        table = _odd(lambda whole: whole.update(columns))
    except (pa.ArrowException, OverflowError):
        return
    with telemetry(telemetry_files()) as directory, bounded():
        # As a part without a checksum of its rows, of an earlier version.
        about = {"start": GRID.seconds(0), "step_seconds": STEP / 1000, "first": 0, "last": POINTS - 1}
        described = table.replace_schema_metadata({b"cliffwatch.telemetry": json.dumps(about).encode()})
        pq.write_table(described, directory / DIRECTORY / FIRST)
        found = reader.read(directory)
        assert found is not None
        kept = samples(found)
        assert {key: value for key, value in WHOLE.items() if key[2] >= GRID.seconds(POINTS)}.items() <= kept.items()


@holds(examples=40, body=restructured(st.just({"rows": 1, "parts": 2, "missing": ""})))
def test_the_line_of_an_attempt_is_a_result_or_none(body: str) -> None:
    try:
        found = Result.from_line(body.encode("utf-8", "surrogatepass"))
    except ValueError:
        return
    assert isinstance(found.rows, int)
    assert isinstance(found.missing.encode(), bytes)


@holds(examples=40, values=st.lists(st.floats(allow_nan=False), min_size=1, max_size=40), name=st.text(max_size=8))
def test_a_written_telemetry_part_is_read_back_unchanged(values: list[float], name: str) -> None:
    times = np.array([GRID.milliseconds(point) for point in range(len(values))], dtype=np.int64)
    label = name.encode("utf-8", "replace").decode()
    answer = PrometheusAnswer({"device": label}, times, np.array(values))
    with telemetry({}) as directory:
        points = Points(0, len(values) - 1)
        part = write_part(directory / DIRECTORY, FIRST, table_of([(SERIES, [answer])]), GRID, points)
        assert read_part(directory / DIRECTORY / FIRST).num_rows == part.rows == len(values)
        found = reader.read(directory)
        assert found is not None
        assert not found.faults
        (series,) = found.of(SERIES.name)
        assert (series.labels, series.values.tolist()) == ({"device": label}, values)


@pytest.mark.parametrize("body", [b'{"status":"error","error":"\\ud800\\u0000"}', b"[" * 5000, b'{"status":1e999}'])
def test_a_refusal_can_be_shown_to_people(body: bytes) -> None:
    with asked(body) as prometheus, pytest.raises(QueryFailed) as caught:
        prometheus.query_range("x", START, START + STEP, STEP)
    assert "\0" not in str(caught.value).encode().decode()


@pytest.mark.parametrize("labels", ["[]", "{", "7", "[" * 5000])
def test_labels_that_are_none_cost_their_part_alone(labels: str) -> None:
    columns = {"time": [GRID.seconds(0)], "series": ["x"], "labels": [labels], "value": [1.0]}
    with telemetry(telemetry_files()) as directory:
        about = {"start": GRID.seconds(0), "step_seconds": STEP / 1000, "first": 0, "last": POINTS - 1}
        described = pa.table(columns).replace_schema_metadata({b"cliffwatch.telemetry": json.dumps(about).encode()})
        pq.write_table(described, directory / DIRECTORY / FIRST)
        found = reader.read(directory)
        assert found is not None
        assert len(samples(found)) == len(WHOLE) // 2
        assert [fault.startswith(FIRST) for fault in found.faults] == [True]


@pytest.mark.real(why="damage at random")
def test_telemetry_at_random() -> None:
    explore(
        test_an_answer_is_sound_or_a_failed_query,
        test_a_version_is_a_number_or_a_failed_query,
        test_a_damaged_part_is_a_gap_and_never_other_samples,
        test_a_damaged_index_costs_no_sample_and_no_time,
        test_a_part_that_holds_something_else_is_a_fault,
        test_the_line_of_an_attempt_is_a_result_or_none,
        test_a_written_telemetry_part_is_read_back_unchanged,
    )
