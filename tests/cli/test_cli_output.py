"""What is printed: data on stdout, words on stderr, and nothing invented where there is no value."""

import json
from typing import Any

import pytest

from cliffwatch.base.clock import VirtualClock
from cliffwatch.cli.live import WindowSeen
from cliffwatch.cli.output import (
    Column,
    Output,
    plain,
    print_facts,
    print_rows,
    show,
    show_latency,
    show_seconds,
    show_time,
)
from cliffwatch.cli.progress import Picture
from cliffwatch.cli.schedules import show_trigger
from cliffwatch.report import format as report_format

COLUMNS = (Column("RUN", plain("id")), Column("NAME", plain("workload.name")))
ROWS: list[dict[str, Any]] = [{"id": "a", "workload": {"name": "soak"}}, {"id": "a-long-id", "workload": None}]


def test_a_table_is_aligned_and_cuts_nothing_off(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Output.TABLE, "none")
    assert capsys.readouterr().out == "RUN        NAME\na          soak\na-long-id  –\n"


def test_the_beginning_of_a_long_cell_gives_way_on_a_narrow_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [{"id": "one", "workload": {"name": f"/mnt/{'deep/' * 40}target"}}, {"id": "two", "workload": {"name": "x"}}]
    print_rows(rows, COLUMNS, Output.TABLE, "none", "NAME")
    assert "deep/" * 40 in capsys.readouterr().out, "what is piped is whole"
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    for columns, length in ((100, 100), (10, 17)):
        monkeypatch.setenv("COLUMNS", str(columns))
        print_rows(rows, COLUMNS, Output.TABLE, "none", "NAME")
        lines = capsys.readouterr().out.splitlines()
        assert max(map(len, lines)) == length
        assert lines[1].startswith("one  …")
        assert lines[1].endswith("/target")
        assert lines[2] == "two  x"


def test_json_is_the_data_alone(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows(ROWS, COLUMNS, Output.JSON, "none")
    captured = capsys.readouterr()
    assert json.loads(captured.out) == ROWS
    assert captured.err == ""


def test_an_empty_list_is_said_to_people_and_is_a_list_to_programs(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([], COLUMNS, Output.TABLE, "no runs")
    assert capsys.readouterr() == ("", "no runs\n")
    print_rows([], COLUMNS, Output.JSON, "no runs")
    assert capsys.readouterr() == ("[]\n", "")


def test_facts_of_several_lines_stay_under_their_name(capsys: pytest.CaptureFixture[str]) -> None:
    print_facts({}, {"run": "a", "reasons": "one\ntwo", "phase": ""}, Output.TABLE)
    assert capsys.readouterr().out == "run      a\nreasons  one\n         two\nphase    –\n"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, "–"), (0.0, "0 µs"), (0.0000125, "12.5 µs"), (0.00123, "1.23 ms"), (3.5, "3.5 s"), (26.04, "26 s")],
)
def test_latency_is_shown_in_the_unit_that_suits(seconds: float | None, text: str) -> None:
    assert show_latency(seconds) == text


@pytest.mark.parametrize("seconds", [0.0, 9.995e-4, 0.00099996, 0.0123, 0.9996, 3.5, 999.7, 1234.5, 12_345.0])
def test_one_latency_is_written_the_same_on_the_command_line_and_in_the_report(seconds: float) -> None:
    assert show_latency(seconds) == report_format.latency(seconds)
    assert "e+" not in show_latency(seconds)


def test_rates_are_written_the_same_on_the_command_line_and_in_the_report() -> None:
    window = {
        "start": 0.0,
        "end": 10.0,
        "phase": "soak",
        "counters": {"operations": 20_480_000, "bytes": 7 * 1024**4},
        "latency": {},
    }
    picture = Picture(VirtualClock(0.0))
    picture.take(WindowSeen(window))
    assert (
        f"{report_format.byte_rate(7 * 1024**4 / 10)}  operations {report_format.rate(2_048_000)} " in picture.figures()
    )


def test_values_are_shown_as_people_read_them() -> None:
    assert [show(value) for value in (None, "", True, False, 0, [], ["a", "b"])] == [
        "–",
        "–",
        "yes",
        "no",
        "0",
        "–",
        "a, b",
    ]
    assert [show_seconds(value) for value in (None, -1.0, 90.4)] == ["–", "0 s", "1m30s"]
    assert [show_time(value) for value in (None, "2026-11-21T09:30:00.5+02:00")] == ["–", "2026-11-21 07:30:00Z"]


def test_an_interval_is_written_as_on_the_page_of_schedules() -> None:
    assert show_trigger({"kind": "interval", "every": "1d"}) == "every 24h"
