"""A report can be made of a run that was killed at any moment, and of a journal that is damaged; and it says so."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from testkit.recorded_runs import Ending, JournalPlan, make_journal

from cliffwatch import report as report_package
from cliffwatch.report.build import build, write

SCHEMA = json.loads((Path(report_package.__file__).parent / "report.schema.json").read_text())


def made(directory: Path) -> tuple[dict[str, Any], str]:
    """Both files of the report, the document checked against its schema."""
    write(directory, build(directory))
    document = json.loads((directory / "report.json").read_text())
    jsonschema.Draft202012Validator(SCHEMA).validate(document)
    return document, (directory / "report.html").read_text()


def cut_last_window(directory: Path) -> None:
    path = directory / "windows.jsonl"
    path.write_bytes(path.read_bytes()[:-20])


def spoil_window(directory: Path) -> None:
    path = directory / "windows.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[4] = b'{"seq": 4, "start": \xff\xfe nonsense\n'
    path.write_bytes(b"".join(lines))


def spoil_histogram(directory: Path) -> None:
    path = directory / "latency.hlog"
    lines = path.read_text().splitlines(keepends=True)
    lines[5] = lines[5][:80] + "!" * (len(lines[5]) - 81) + "\n"
    path.write_text("".join(lines))


def spoil_event(directory: Path) -> None:
    path = directory / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(["{}\n" if '"running"' in line else line for line in lines]))


def change_event(directory: Path) -> None:
    path = directory / "events.jsonl"
    path.write_text(path.read_text().replace('"starting"', '"no such state"'))


def remove(name: str) -> Callable[[Path], None]:
    return lambda directory: (directory / name).unlink()


def spoil(name: str) -> Callable[[Path], None]:
    def change(directory: Path) -> None:
        (directory / name).write_bytes(b"\x00{[")

    return change


def refuse(name: str) -> Callable[[Path], None]:
    """What stands in its place can be opened and not read, like a file on a bad sector."""

    def change(directory: Path) -> None:
        (directory / name).unlink()
        (directory / name).symlink_to("/proc/self/mem")

    return change


@pytest.mark.parametrize(
    ("damage", "verdict", "file"),
    [
        (refuse("windows.jsonl"), "failed", "windows.jsonl"),
        (refuse("latency.hlog"), "invalid", "latency.hlog"),
        (refuse("events.jsonl"), "invalid", "events.jsonl"),
        (cut_last_window, "pass", None),
        (spoil_window, "pass", "windows.jsonl"),
        (spoil_histogram, "pass", "latency.hlog"),
        (spoil_event, "pass", "events.jsonl"),
        (change_event, "pass", "events.jsonl"),
        (remove("latency.hlog"), "invalid", "latency.hlog"),
        (spoil("latency.hlog"), "invalid", "latency.hlog"),
        (remove("facts.json"), "pass", None),
        (spoil("facts.json"), "pass", "facts.json"),
        (remove("workload.yaml"), "pass", None),
        (remove("events.jsonl"), "invalid", None),
        (remove("windows.jsonl"), "failed", "windows.jsonl"),
        (spoil("windows.jsonl"), "failed", "windows.jsonl"),
        (remove("order.json"), "pass", "order.json"),
        (spoil("order.json"), "pass", "order.json"),
    ],
)
def test_a_damaged_journal_has_a_report_that_names_the_damage(
    tmp_path: Path, damage: Callable[[Path], None], verdict: str, file: str | None
) -> None:
    directory = make_journal(tmp_path, JournalPlan(windows=120, window_seconds=1.0))
    damage(directory)
    document, page = made(directory)
    assert document["verdict"]["name"] == verdict
    assert {fault["file"] for fault in document["journal_faults"]} == ({file} if file else set())
    assert ("Damage to the journal" in page) == (file is not None)


def test_a_window_that_cannot_be_read_is_a_gap(tmp_path: Path) -> None:
    directory = make_journal(tmp_path, JournalPlan(windows=10))
    spoil_window(directory)
    document, _ = made(directory)
    assert document["verdict"]["name"] == "invalid"
    assert [gap["start_seconds"] for gap in document["coverage"]["gaps"]] == [40.0]
    assert document["journal_faults"][0]["line"] == 5


@pytest.mark.parametrize("events", range(6))
def test_a_run_killed_early_has_a_report(tmp_path: Path, events: int) -> None:
    directory = make_journal(tmp_path, JournalPlan(windows=3, facts=None, ending=Ending(None)))
    path = directory / "events.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:events]) + '{"at": 17900')
    for name in ("windows.jsonl", "latency.hlog"):
        (directory / name).unlink()
    document, page = made(directory)
    assert document["verdict"]["name"] == "invalid"
    assert "does not say how the load ended" in document["headline"]
    assert "No window was measured" in page


def test_a_run_killed_under_load_is_asked_for_the_time_until_its_last_sign_of_life(tmp_path: Path) -> None:
    plan = JournalPlan(windows=30, missing=set(range(17, 30)), ending=Ending(None))
    document, _ = made(make_journal(tmp_path, plan))
    assert document["coverage"]["asked_seconds"] == 170
    assert document["coverage"]["ratio"] == 1
    assert document["verdict"]["name"] == "invalid"


def test_an_empty_directory_has_a_report(tmp_path: Path) -> None:
    document, page = made(tmp_path)
    assert document["run"] == {"id": tmp_path.name}
    assert "The journal holds no event." in page
