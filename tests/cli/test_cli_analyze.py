"""`cliffwatch analyze` on a CSV and on a journal, with no service anywhere."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from testkit.recorded_runs import JournalPlan, make_journal
from testkit.soaks import lognormal
from testkit.soaks.soak import Soak
from typer.testing import CliRunner, Result

from cliffwatch.base.errors import Code, Problem
from cliffwatch.cli.main import app

HOURS = 12


def analyze(*arguments: str | Path) -> Result:
    return CliRunner().invoke(app, ["analyze", *map(str, arguments)])


def document(result: Result) -> dict[str, Any]:
    body: dict[str, Any] = json.loads(result.stdout)
    return body


def stored(soak: Soak, directory: Path) -> Path:
    path = directory / "soak.csv"
    path.write_text(soak.to_csv(), encoding="utf-8")
    return path


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_a_cliff_in_a_csv_is_degraded_and_reported_with_when_it_was_raised(tmp_path: Path, mode: str) -> None:
    soak = lognormal.make(4, ("cliff",), (), HOURS).only("p99", "device_write_latency")
    result = analyze(stored(soak, tmp_path), "--mode", mode, "--format", "json")
    assert result.exit_code == 1
    body = document(result)
    assert body["verdict"] == "degraded"
    (finding,) = body["findings"]
    assert {"kind", "onset_seconds", "detected_seconds", "series", "ratio", "confidence"} <= set(finding)
    assert (finding["kind"], finding["series"]) == ("cliff", "p99")
    onset = soak.truths[0].onset
    assert abs(finding["onset_seconds"] - onset) <= 60
    assert 0 < finding["detected_seconds"] - onset <= 180


def test_a_cliff_in_a_csv_is_as_deep_as_its_first_sixty_windows(tmp_path: Path) -> None:
    soak = lognormal.make(4, ("cliff",), (), HOURS).only("p99", "device_write_latency")
    (finding,) = document(analyze(stored(soak, tmp_path), "--format", "json"))["findings"]
    after = soak.columns["p99"][soak.times >= finding["onset_seconds"]]
    assert finding["level"] == pytest.approx(float(np.nanmedian(after[:60])), rel=0.01)


def test_a_healthy_csv_passes(tmp_path: Path) -> None:
    result = analyze(stored(lognormal.make(4, (), (), HOURS).only("p99"), tmp_path), "--format", "json")
    assert result.exit_code == 0
    assert document(result)["verdict"] == "pass"
    assert document(result)["findings"] == []


def test_analysis_of_a_table_lists_what_is_not_judged_and_of_a_journal_nothing(tmp_path: Path) -> None:
    csv, journal = stored(lognormal.make(4, (), (), HOURS).only("p99"), tmp_path), tmp_path / "run"
    make_journal(journal, JournalPlan(windows=40))
    text, body = analyze(csv), document(analyze(csv, "--format", "json"))
    assert text.stdout.startswith("verdict: pass\n")
    for what in ("reached the drive", "client was the bottleneck", "stopped or failed", "limits"):
        assert what in body["not_judged"]
    assert body["not_judged"] in text.output.replace("\n", " ")
    assert document(analyze(journal, "--format", "json"))["not_judged"] == ""


@pytest.mark.parametrize(("due", "verdict"), [(2100.0, "degraded"), (1900.0, "pass")])
def test_a_csv_of_which_less_than_half_of_what_was_due_was_completed_is_degraded(
    tmp_path: Path, due: float, verdict: str
) -> None:
    rows = [f"{10 * index},0.002,1000,{due}" for index in range(120)]
    path = tmp_path / "due.csv"
    path.write_text("\n".join(["elapsed_seconds,p99,operations_per_second,due_per_second", *rows]), encoding="utf-8")
    body = document(analyze(path, "--format", "json"))
    assert body["verdict"] == verdict
    assert any(f"1,000 of {due:,.0f} operations a second" in reason for reason in body["reasons"])


@pytest.mark.parametrize(
    ("column", "seconds", "verdict"), [("p99", 9.0, "pass"), ("p99", 12.0, "degraded"), ("max", 12.0, "degraded")]
)
def test_an_operation_took_at_least_as_long_as_a_quantile_of_its_window(
    tmp_path: Path, column: str, seconds: float, verdict: str
) -> None:
    path = tmp_path / "slow.csv"
    rows = [f"{10 * index},{seconds if index == 90 else 0.002}" for index in range(120)]
    path.write_text("\n".join([f"elapsed_seconds,{column}", *rows]), encoding="utf-8")
    body = document(analyze(path, "--format", "json"))
    assert body["verdict"] == verdict
    took = "took" if column == "max" else "took at least"
    is_said = any(reason.startswith(f"An operation {took} 12 s, 15m") for reason in body["reasons"])
    assert is_said == (seconds > 10)
    assert ("whether a single operation took 10 s or more" in body["not_judged"]) == (seconds < 10)


def test_text_names_what_was_found(tmp_path: Path) -> None:
    result = analyze(stored(lognormal.make(4, ("cliff",), (), HOURS).only("p99"), tmp_path))
    assert result.exit_code == 1
    assert result.stdout.startswith("verdict: degraded\n")
    assert "cliff" in result.stdout


def test_a_csv_with_too_much_missing_is_invalid(tmp_path: Path) -> None:
    lines = stored(lognormal.make(4, (), (), HOURS).only("p99"), tmp_path).read_text(encoding="utf-8").splitlines()
    path = tmp_path / "holes.csv"
    path.write_text("\n".join([*lines[:2000], *lines[2300:]]), encoding="utf-8")
    result = analyze(path, "--format", "json")
    assert result.exit_code == 1
    assert document(result)["verdict"] == "invalid"


@pytest.mark.parametrize("value", ["", "nan", "0", "-1"])
def test_a_csv_without_a_latency_that_was_measured_is_invalid_and_says_so(tmp_path: Path, value: str) -> None:
    path = tmp_path / "soak.csv"
    path.write_text("\n".join(["elapsed_seconds,p99", *(f"{at},{value}" for at in range(100))]), encoding="utf-8")
    body = document(analyze(path, "--format", "json"))
    assert body["verdict"] == "invalid"
    assert body["reasons"][0].startswith("Only 0 rows hold a latency above zero (p99)")
    assert ("100 of p99" in " ".join(body["reasons"])) == (value == "-1")


def test_a_known_restart_is_reported_by_events(tmp_path: Path) -> None:
    rows = [f"{at},{0.05 if 3000 <= at < 3045 else 0.01}" for at in range(4000)]
    path, events = tmp_path / "soak.csv", tmp_path / "events.csv"
    path.write_text("\n".join(["elapsed_seconds,p99", *rows]), encoding="utf-8")
    events.write_text("elapsed_seconds,name\n3000,broker restart\n", encoding="utf-8")
    assert document(analyze(path, "--mode", "online", "--format", "json"))["verdict"] == "degraded"
    reported = analyze(path, "--mode", "online", "--format", "json", "--events", events)
    assert document(reported)["verdict"] == "pass"


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_a_journal_is_analysed_from_its_directory_and_by_the_runs_name(tmp_path: Path, mode: str) -> None:
    directory = make_journal(tmp_path / "runs" / "one", JournalPlan())
    by_path = analyze(directory, "--mode", mode, "--format", "json")
    by_name = CliRunner().invoke(
        app, ["--state-directory", str(tmp_path), "analyze", "one", "--mode", mode, "--format", "json"]
    )
    assert document(by_path)["verdict"] == document(by_name)["verdict"] == "pass"


def test_an_invalid_or_missing_input_of_analyze_is_refused(tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text("seconds,p99\n0,1\n", encoding="utf-8")
    for arguments, code in (
        ((bad,), Code.BAD_REQUEST),
        ((tmp_path / "nothing",), Code.NOT_FOUND),
        (("/dev/null",), Code.BAD_REQUEST),
        ((tmp_path, "--events", bad), Code.BAD_REQUEST),
    ):
        problem = analyze(*arguments).exception
        assert isinstance(problem, Problem)
        assert problem.code is code
