"""k6's points: requests, failures, dropped iterations, and the summary at the end."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.labs.outputs.printed import FILES, text_of
from tests.labs.outputs.reading import read, refusal, verdict

from cliffwatch.labs.outputs.names import OutputFormat

K6 = OutputFormat.K6
START = 1_790_000_000
HEAD = "metric_name,timestamp,metric_value,check,error,expected_response,extra_tags"
SUMMARY = (FILES / "k6-summary.txt").read_text(encoding="utf-8").splitlines()


def point(metric: str, at: float, value: float, **tags: str) -> str:
    moment = f"2026-09-21T14:{int(at) // 60:02d}:{at % 60:09.6f}+02:00"
    return json.dumps({"metric": metric, "type": "Point", "data": {"time": moment, "value": value, "tags": tags}})


def request(at: float, milliseconds: float = 5.0, **tags: str) -> list[str]:
    failed = float(tags.get("expected_response") == "false")
    named = (("http_reqs", 1.0), ("http_req_duration", milliseconds), ("http_req_failed", failed))
    return [point(name, at, value, **tags) for name, value in named]


def steady(seconds: int) -> list[str]:
    return [
        line
        for tenth in range(10 * seconds)
        for line in request(tenth / 10 + 0.05, 5 + 0.1 * (tenth % 7), expected_response="true")
    ]


def test_a_steady_target_passes(tmp_path: Path) -> None:
    assert verdict(tmp_path / "k6.json", K6, steady(60))[0] == "pass"


def test_the_recording_passes_until_its_target_is_held(tmp_path: Path) -> None:
    lines = text_of("k6.csv.gz")
    begin = int(lines[1].split(",")[1])
    before = [line for line in lines[1:] if int(line.split(",")[1]) < begin + 29]
    assert verdict(tmp_path / "k6.csv", K6, [lines[0], *before])[0] == "pass"


def test_dropped_iterations_are_skipped_operations(tmp_path: Path) -> None:
    assert read(K6, *text_of("k6.json.gz")).table.skipped == 60
    dropped = [point("dropped_iterations", 30.5, 7.0)]
    name, words = verdict(tmp_path / "k6.json", K6, [*steady(60), *dropped])
    assert name == "degraded"
    assert "7 of 607 operations that were due were skipped" in words
    assert "so is each of 7 iterations that were dropped" in words


@pytest.mark.parametrize("tags", [{"expected_response": "false"}, {}])
def test_a_request_that_failed_is_no_completed_one(tmp_path: Path, tags: dict[str, str]) -> None:
    failed = [line.replace('"value": 0.0', '"value": 1.0') for line in request(60.0, 60000.0, **tags)]
    output = read(K6, *steady(60), *failed)
    assert (output.operations, output.table.errors) == (600, 1)
    assert verdict(tmp_path / "k6.json", K6, [*steady(60), *failed])[0] == "degraded"


def test_a_check_that_failed_is_a_failure(tmp_path: Path) -> None:
    checks = [point("checks", 30.0, 1.0), point("checks", 31.0, 0.0)]
    assert read(K6, *steady(60), *checks).table.errors == 1
    assert verdict(tmp_path / "k6.json", K6, [*steady(60), *checks])[0] == "degraded"


def test_a_target_that_hangs_until_the_end_is_a_stall_while_virtual_users_wait(tmp_path: Path) -> None:
    users = [point("vus", at + 0.5, 4.0) for at in range(75)]
    assert verdict(tmp_path / "k6.json", K6, [*steady(60), *users[:60]])[0] == "pass"
    assert verdict(tmp_path / "k6.json", K6, [*steady(60), *users])[0] == "degraded"


def test_a_script_without_requests_has_iterations() -> None:
    lines = [
        point(name, at, value) for at in range(30) for name, value in (("iterations", 1), ("iteration_duration", 8))
    ]
    output = read(K6, *lines)
    assert output.operations == 30
    assert output.table.samples[3].values["p50"] == pytest.approx(0.008)
    assert output.remark == "An iteration of k6 is an operation."


def test_points_that_are_absent_are_no_pass(tmp_path: Path) -> None:
    lines = steady(60)
    assert verdict(tmp_path / "k6.json", K6, [*lines[:900], *lines[1200:]])[0] == "degraded"


def test_points_that_are_all_zero_are_no_pass(tmp_path: Path) -> None:
    lines = [line for at in range(60) for line in request(at, 0.0)]
    assert verdict(tmp_path / "k6.json", K6, lines)[0] == "invalid"


@pytest.mark.parametrize("form", ["points, then the text", "points, then the file"])
def test_a_summary_agrees_with_the_points(form: str) -> None:
    exported = json.dumps({"metrics": {"http_reqs": {"count": 289}, "dropped_iterations": {"count": 60}}}, indent=4)
    summary = SUMMARY if form.endswith("text") else exported.splitlines()
    assert read(K6, *text_of("k6.json.gz"), *summary).operations == 289
    less = [line.replace("289", "310") for line in summary]
    words = refusal(K6, *text_of("k6.json.gz"), *less)
    assert "states 310 http_reqs in all, and the lines before it add up to 289" in words


def test_the_summary_after_a_csv_agrees_with_its_points() -> None:
    assert read(K6, *text_of("k6.csv.gz"), *SUMMARY).table.skipped == 60
    more = [line.replace("60 ", "90 ") for line in SUMMARY]
    assert "states 90 dropped_iterations in all" in refusal(K6, *text_of("k6.csv.gz"), *more)


def test_requests_without_a_duration_are_refused() -> None:
    lines = [line for number, line in enumerate(steady(60)) if number % 30 != 1]
    assert "states 600 requests in all, and the lines before it add up to 540" in refusal(K6, *lines)


@pytest.mark.parametrize("time", ["{0}", "{0}000", "{0}000000", "{0}000000000", "2026-09-21T14:13:{1:02d}Z"])
def test_times_of_a_csv_are_read_in_each_of_its_formats(time: str) -> None:
    rows = [f"http_req_duration,{time.format(START + at, 20 + at)},5.0,,,," for at in range(30)]
    samples = read(K6, HEAD, *rows).table.samples
    assert samples[-1].end == pytest.approx(29, abs=0.6)


DAMAGED: dict[str, tuple[list[Any], str]] = {
    "cut": ([*steady(30)[:-2], '{"metric":"http', *steady(2)], "out.txt line 899: is no object of k6 that can be read"),
    "no time": (
        [*steady(3), '{"type":"Point","metric":"vus","data":{"value":1}}'],
        "out.txt line 91: is no point of k6 (KeyError('time')); `k6 run --out json=FILE` writes",
    ),
    "no number": ([HEAD, "http_req_duration,1790000000,NaN,,,,"], "out.txt line 2: 'http_req_duration,1790000000,NaN"),
    "below zero": ([point("http_req_duration", 1.0, -5.0)], "out.txt line 1: is no point of k6 (ValueError('-5.0 was"),
    "nothing of it": (["hello"], "out.txt: has no window of k6; `k6 run --out json=FILE` writes"),
    "a summary alone": (SUMMARY, "out.txt: has no window of k6; `k6 run --out json=FILE` writes"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_damaged_points_are_refused_by_line(case: str) -> None:
    lines, message = DAMAGED[case]
    assert refusal(K6, *lines).startswith(message)


def test_an_object_that_the_end_of_the_file_cuts_off_is_left_out() -> None:
    assert read(K6, *steady(30), '{"metric":"http_req_dur').operations == 300
