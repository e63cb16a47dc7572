"""Documents are true of the tree: the files that they name are there, and its floors are those that are held."""

import re
import tomllib
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
from testkit.checkout import ROOT, tracked

PACKAGE = ROOT / "service" / "cliffwatch"
TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
#: What is written like a path of the tree and is none: of the state directory, of an API, of other places.
ELSEWHERE = frozenset({"runs/<run id>/", "telemetry/", "/api/v1", "/metrics"})
#: The column at which the drawing begins to say what a floor holds.
DESCRIPTIONS_FROM = 33
TOP = frozenset(path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
FLOORS = frozenset(path.name for path in PACKAGE.iterdir() if (path / "__init__.py").exists())
DOCUMENTS = tracked("*.md")
FILES = ["/" + str(path.relative_to(ROOT)) for path in tracked()]
_FILE = re.compile(r"(?<![\w.<>*/-])([\w.<>*/-]*[\w>*]\.(py|rs|sh|md|toml|lock|ya?ml|json|html|js|css))\b")
#: Endings of files that a run or a user has too: such a name is the tree's if it begins with a directory of it.
SHARED_ENDINGS = frozenset({"yaml", "yml", "json", "html", "js", "css"})


def named_paths() -> list[str]:
    """Everything in backticks that begins with a directory of the tree, or of the service's package."""
    found = re.findall(r"`([\w.-]+/[\w./-]*)`", TEXT)
    return [path for path in found if path not in ELSEWHERE and path.partition("/")[0] in TOP | FLOORS]


def contracts() -> list[dict[str, Any]]:
    configuration = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: list[dict[str, Any]] = configuration["tool"]["importlinter"]["contracts"]
    return found


def named_files(text: str) -> list[str]:
    """The tree's files that a text names, with or without the directories that they are in."""
    return [
        name for name, ending in _FILE.findall(text) if ending not in SHARED_ENDINGS or name.partition("/")[0] in TOP
    ]


def is_there(name: str) -> bool:
    """Whether a file has this name, or this end of its path; `<name>` and `*` stand for anything."""
    pattern = "*/" + re.sub(r"<[^>]*>", "*", re.sub(r"^(?:\.\./)+", "", name))
    return any(fnmatchcase(path, pattern) for path in FILES)


def test_every_path_that_is_named_is_there() -> None:
    paths = named_paths()
    assert {"journal/state.py", "service/cliffwatch/journal/", "load/measure/"} <= set(paths)
    assert [path for path in paths if not any((base / path).exists() for base in (ROOT, PACKAGE))] == []


def test_every_file_that_a_document_names_is_there() -> None:
    named = [(path, name) for path in DOCUMENTS for name in named_files(path.read_text(encoding="utf-8"))]
    assert {ROOT / "CONTRIBUTING.md", ROOT / "README.md", ROOT / "docs/engines/kafka.md"} <= {path for path, _ in named}
    assert [f"{path.relative_to(ROOT)}: {name}" for path, name in named if not is_there(name)] == []


def test_a_file_that_is_not_there_is_noticed() -> None:
    text = "see `engines/absent.py`, `mine.yaml` and docs/runs.md; `gone.rs` became `alerts/rules/absent.yaml`"
    assert named_files(text) == ["engines/absent.py", "docs/runs.md", "gone.rs", "alerts/rules/absent.yaml"]
    assert [name for name in named_files(text) if is_there(name)] == ["docs/runs.md"]
    assert is_there("engines/<name>/__init__.py")


def tabled(document: Path, heading: str) -> set[str]:
    """The directories that begin the rows of the table below a heading."""
    table = document.read_text(encoding="utf-8").partition(f"## {heading}\n")[2].partition("\n## ")[0]
    named = " ".join(re.findall(r"^\| (`[^|]+) \|", table, re.MULTILINE))
    return {path.partition("/")[0] for path in re.findall(r"`([\w.-]+/[\w./-]*)`", named)}


def test_every_directory_of_the_tree_is_in_the_table_of_the_tree() -> None:
    assert tabled(ROOT / "ARCHITECTURE.md", "The tree") == TOP


@pytest.mark.parametrize("floor", ["api", "http", "web"])
def test_no_module_above_app_opens_a_transaction_or_a_journal_for_writing(floor: str) -> None:
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
