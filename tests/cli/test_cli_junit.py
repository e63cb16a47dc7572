"""`--junit`: the result of a run as CI servers read it."""

from pathlib import Path
from typing import Any

import pytest
from tests.cli.junit_cases import cases_of, parsed
from tests.cli.machine import Machine

from cliffwatch.cli.junit import junit_of

LIMITS = "limits: [p99 <= 1s over any 10m, p99 <= 3ms over any 10m, write amplification <= 2, no cliff]"
RUN: dict[str, Any] = {"id": "r", "created_at": "2026-11-27T10:00:00.5+00:00", "elapsed_seconds": 61.5}


def test_a_run_that_is_waited_for_leaves_its_verdict_and_each_limit(idle: Machine, tmp_path: Path) -> None:
    assert idle.run("up").returncode == 0
    path = Path(idle.workload("limited", soak="2h", load="time: virtual, cliff_after: 1h"))
    path.write_text(f"{path.read_text()}\n{LIMITS}\n")
    written = tmp_path / "out.xml"
    written.write_text("of another run")
    target = ("--target", "synthetic:one")
    refused = idle.run("run", "start", str(path), "--target", "directory:/nonexistent", "--wait", "--junit", "out.xml")
    assert refused.returncode == 2, refused.stderr
    assert not written.exists()
    done = idle.run("run", "start", str(path), *target, "--id", "limited", "--wait", "--junit", "out.xml")
    assert done.returncode == 1, done.stderr
    suite = parsed(written.read_bytes())
    assert cases_of(suite) == {
        "verdict": "error",
        "limit: p99 <= 1s over any 10m": "passed",
        "limit: p99 <= 3ms over any 10m": "failure",
        "limit: write amplification <= 2": "error",
        "limit: no cliff": "failure",
    }
    assert {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")} == {
        "tests": "5",
        "failures": "2",
        "errors": "2",
        "skipped": "0",
    }
    assert {case.attrib["classname"] for case in suite.iterfind("testcase")} == {f"cliffwatch.{path.stem}"}
    properties = {each.attrib["name"]: each.attrib["value"] for each in suite.iterfind("properties/property")}
    assert properties["run"] == "limited"
    assert properties["target"] == "synthetic:one"
    assert properties["verdict"] == "invalid"
    assert Path(properties["report"]).is_file()
    assert float(suite.attrib["time"]) == pytest.approx(7200, abs=60)
    again = tmp_path / "again.xml"
    assert idle.run("run", "watch", "limited", "--junit", str(again)).returncode == 1
    assert again.read_bytes() == written.read_bytes()


def test_a_file_that_cannot_be_written_starts_no_run(idle: Machine, tmp_path: Path) -> None:
    assert idle.run("up").returncode == 0
    path = idle.workload("one")
    start = ("run", "start", path, "--target", "synthetic:one", "--junit")
    for arguments, named in (
        ((*start, "out.xml"), "give --wait too"),
        ((*start, "absent/out.xml", "--wait"), "absent/out.xml cannot be written: No such file"),
        ((*start, str(tmp_path), "--wait"), "cannot be written: Is a directory"),
    ):
        refused = idle.run(*arguments)
        assert (refused.returncode, "--junit: " in refused.stderr, named in refused.stderr) == (2, True, True), refused
    assert idle.data("run", "list") == []


@pytest.mark.parametrize(
    ("verdict", "result"),
    [("pass", "passed"), ("degraded", "failure"), ("invalid", "error"), ("failed", "error"), ("stopped", "error")],
)
def test_junit_has_a_failure_if_degraded_and_an_error_if_invalid_failed_or_stopped(verdict: str, result: str) -> None:
    run = RUN | {"verdict": verdict, "reasons": ["first", "second"]}
    suite = parsed(junit_of(run, [], None, "w@1", "synthetic:x"))
    assert cases_of(suite) == {"verdict": result}
    assert suite.attrib["timestamp"] == "2026-11-27T10:00:00"
    if result != "passed":
        (found,) = suite.iterfind(f"testcase/{result}")
        assert (found.attrib["message"], found.text) == ("first", "first\nsecond")


def test_characters_invalid_in_xml_are_replaced_in_junit() -> None:
    run = RUN | {"verdict": "failed", "reasons": ["a \x1b[31m & <b> \ud800 ü \U0001f4a5"]}
    suite = parsed(junit_of(run, [], None, "w", "synthetic:\x00"))
    (found,) = suite.iterfind("testcase/error")
    assert found.attrib["message"] == "a \N{REPLACEMENT CHARACTER}[31m & <b> \N{REPLACEMENT CHARACTER} ü \U0001f4a5"
