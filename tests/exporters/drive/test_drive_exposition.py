"""What the exporter exposes of drives of every kind, compared with exposition.txt as a whole."""

import json
import re
from pathlib import Path

import pytest
from testkit.checkout import ROOT
from tests.exporters.drive.exporter import DRIVES, Machine, running

NAMES = sorted(path.name for path in DRIVES.iterdir() if path.is_dir())
GOLDEN = Path(__file__).with_name("exposition.txt")
#: What differs from one time to another: how long it took, when, at what cost.
_CHANGING = re.compile(r"^(cliffwatch_drive_\w+_(?:duration|timestamp|cpu)_seconds\S*(?:\{.*\})?) \S+$", re.MULTILINE)


@pytest.fixture
def every_drive(machine: Machine) -> Machine:
    for number, name in enumerate(NAMES):
        serial = json.loads((DRIVES / name / "id-ctrl.json").read_text())["sn"].strip()
        machine.add(number, serial, name)
    return machine


def test_the_exposition_is_the_golden_one(every_drive: Machine) -> None:
    with running(every_drive) as exporter:
        done = f"{'cliffwatch_drive_polls_total'}{{"
        exporter.wait(
            lambda found: sum(value for name, value in found.items() if name.startswith(done)) == len(NAMES),
            "an answer of every drive",
        )
        text = exporter.text()
    ours = text[text.index("# HELP cliffwatch_") :]
    ours = "".join(line for line in ours.splitlines(keepends=True) if "cliffwatch_drive_" in line)
    assert _CHANGING.sub(r"\1 …", ours) == GOLDEN.read_text(encoding="utf-8")
    assert "process_resident_memory_bytes" in text


def test_no_drive_is_asked_for_what_it_says_that_it_has_not(every_drive: Machine) -> None:
    with running(every_drive) as exporter:
        exporter.wait(
            lambda found: sum(value for name, value in found.items() if "_polls_total{" in name) == len(NAMES),
            "an answer of every drive",
        )
    asked = {name: every_drive.asked(number) for number, name in enumerate(NAMES)}
    assert asked["cloud"] == ["smart-log", "id-ctrl", "ocp-smart-add-log"]
    assert "endurance-log" not in asked["two-groups"]
    assert asked["fdp"] == ["smart-log", "id-ctrl", "ocp-smart-add-log", "fdp-stats", "fdp-stats"]
    assert asked["ocp"] == ["smart-log", "id-ctrl", "ocp-smart-add-log", "ocp-smart-add-log"]


def documented(*reported_by: str) -> dict[str, str]:
    """Metrics of drives that docs/metrics.md has, with their type, by who reports them."""
    page = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(cliffwatch_drive_\w+)` \| (\w+) \| (\w+) \|", page, re.MULTILINE)
    return {name: kind for name, kind, of in rows if of in reported_by}


def test_every_metric_is_documented_with_its_type() -> None:
    exposed = dict(re.findall(r"^# TYPE (\w+) (\w+)$", GOLDEN.read_text(encoding="utf-8"), re.MULTILINE))
    assert documented("both", "NVMe") == exposed


def test_metrics_of_both_kinds_of_drives_have_one_name() -> None:
    source = (ROOT / "drive" / "src" / "emulate" / "health.rs").read_text(encoding="utf-8")
    reported = documented("both", "aging")
    assert reported
    for name in reported:
        assert f'"{name.removeprefix("cliffwatch_drive_")}"' in source or f'"{name}"' in source, name
