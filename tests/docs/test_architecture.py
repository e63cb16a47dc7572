"""ARCHITECTURE.md is true of the tree: the paths that it names are there, and its floors are those that are held."""

import re
import tomllib
from typing import Any

import pytest
from testkit.checkout import ROOT

PACKAGE = ROOT / "service" / "cliffwatch"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
#: What is written like a path of the tree and is none: of the state directory, of an API, of other places.
ELSEWHERE = frozenset({"runs/<run id>/", "telemetry/", "/api/v1", "/metrics"})
#: The column at which the drawing begins to say what a floor holds.
DESCRIPTIONS_FROM = 33
TOP = frozenset(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
FLOORS = frozenset(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())


def named_paths() -> list[str]:
    """Everything in backticks that begins with a directory of the tree, or of the service's package."""
    found = re.findall(r"`([\w.-]+/[\w./-]*)`", TEXT)
    return [path for path in found if path not in ELSEWHERE and path.partition("/")[0] in TOP | FLOORS]


def contracts() -> list[dict[str, Any]]:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = configuration["tool"]["importlinter"]["contracts"]
    return found


def test_every_path_that_is_named_is_there() -> None:
    paths = named_paths()
    assert {"journal/state.py", "service/cliffwatch/journal/", "load/measure/"} <= set(paths)
    assert [path for path in paths if not any((base / path).exists() for base in (ROOT, PACKAGE))] == []


def test_every_directory_of_the_tree_is_in_its_table() -> None:
    table = TEXT.partition("## The tree")[2].partition("\n## ")[0]
    named = " ".join(re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE))
    assert {path.partition("/")[0] for path in re.findall(r"`([\w.-]+/[\w./-]*)`", named)} == TOP


@pytest.mark.parametrize("floor", ["api", "http", "web"])
def test_nobody_above_app_opens_a_transaction_or_a_journal_for_writing(floor: str) -> None:
    # The linter holds the modules, which readers and writers share.
    writes = re.compile(r"\b(EventLog|WindowLog)\b|\.session\(")
    found = {path.name: writes.findall(path.read_text(encoding="utf-8")) for path in (PACKAGE / floor).rglob("*.py")}
    assert {name: words for name, words in found.items() if words} == {}


def test_the_drawing_has_the_floors_that_the_linter_holds_and_that_there_are() -> None:
    drawing = TEXT.partition("## The floors of the service")[2].partition("\n| question")[0]
    drawn = [line[4:DESCRIPTIONS_FROM].split() for line in drawing.splitlines() if re.match(r" {4}[a-z]", line)]
    (held,) = [contract["layers"] for contract in contracts() if contract["type"] == "layers"]
    assert drawn == [layer.split(" | ") for layer in held]
    assert {name for floor in drawn for name in floor} == FLOORS


def test_all_is_forbidden_to_the_drive_exporter_but_the_clock() -> None:
    (forbidden,) = [
        set(contract["forbidden_modules"])
        for contract in contracts()
        if contract.get("source_modules") == ["cliffwatch_drive_exporter"]
    ]
    base = {path.stem for path in (PACKAGE / "base").glob("*.py")} - {"__init__", "clock"}
    assert forbidden == {f"cliffwatch.{floor}" for floor in FLOORS - {"base"}} | {
        f"cliffwatch.base.{module}" for module in base
    }
