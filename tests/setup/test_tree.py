"""What the tree must keep to, so that it can be set up anywhere and read by anyone."""

import json
import re
import subprocess
from pathlib import Path

import pytest
from testkit.checkout import ROOT, tracked

LINES_AT_MOST = 400
#: What is written by hand and read from top to bottom.
CODE = ("*.py", "*.rs", "*.js", "*.css", "*.c", "*.h", "setup", "Makefile")
#: Written in two parts, so that this file does not name them.
REGISTRY_HOSTS = ("pypi" + ".org", "pythonhosted" + ".org", "registry.npm" + "js.org", "static.crates" + ".io")
MACHINE_PATHS = re.compile(r"(?<![\w.])/(?:wo" + r"rk|root|home|Users)/[\w.]")


def texts() -> list[tuple[Path, str]]:
    readable = []
    for path in tracked():
        try:
            readable.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue
    return readable


def test_no_file_names_a_package_registry_or_a_path_of_one_machine() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {needle}"
        for path, text in texts()
        for needle in [host for host in REGISTRY_HOSTS if host in text] + MACHINE_PATHS.findall(text)
    ]
    assert not found


def test_every_locked_python_package_has_a_hash() -> None:
    for name in ("requirements.txt", "requirements-test.txt"):
        entries = re.split(r"\n(?=\S)", (ROOT / name).read_text(encoding="utf-8").strip())
        packages = [entry for entry in entries if not entry.startswith("#")]
        assert packages
        assert not [entry.split()[0] for entry in packages if "==" not in entry or "--hash=sha256:" not in entry]


def test_both_locks_hold_the_same_versions() -> None:
    """One environment serves `make run` and `make test`; it must not change back and forth."""
    run, test = (
        set(re.findall(r"^[\w.\[\]-]+==\S+(?: ; [^\\\n]+)?", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.txt", "requirements-test.txt")
    )
    assert run <= test


def test_locked_node_packages_have_a_hash_and_no_address() -> None:
    locks = tracked("*package-lock.json")
    assert locks
    for path in locks:
        packages = {name: entry for name, entry in json.loads(path.read_text())["packages"].items() if name}
        assert packages
        assert not [name for name, entry in packages.items() if "resolved" in entry or "integrity" not in entry]


def test_a_file_is_one_idea() -> None:
    long = {
        str(path.relative_to(ROOT)): lines
        for path in tracked(*CODE)
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LINES_AT_MOST
    }
    assert not long


def test_the_version_of_rust_is_stated_where_the_setup_reads_it() -> None:
    manifest = ROOT / "Cargo.toml"
    assert re.search(r'^rust-version *= *"[\d.]+"', manifest.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("path", tracked("setup", ".ci"), ids=lambda path: path.name)
def test_setup_scripts_stop_at_the_first_failure(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    if path.stat().st_mode & 0o111:
        assert text.startswith("#!/usr/bin/env bash\n")
        assert "\nset -euo pipefail\n" in text
        subprocess.run(["bash", "-n", str(path)], check=True)


@pytest.mark.parametrize(
    ("directory", "others"), [("tests", ("bench",)), ("bench", ("tests",)), ("testkit", ("tests", "bench"))]
)
def test_tests_and_benchmarks_share_the_testkit_and_nothing_else(directory: str, others: tuple[str, ...]) -> None:
    imports = re.compile(rf"^\s*(?:from|import) (?:{'|'.join(others)})\b", re.MULTILINE)
    assert not [str(path) for path in tracked(f"{directory}/*.py") if imports.search(path.read_text(encoding="utf-8"))]


def test_no_module_of_tests_is_imported_by_another() -> None:
    """What tests share is in testkit/ or in a module beside them that says what it is."""
    importing = re.compile(
        r"^\s*(?:from [\w.]*\btest_\w+ import|from tests\S* import \(?test_|import \S*\btest_)", re.MULTILINE
    )
    found = [path for path in tracked("*.py") if importing.search(path.read_text(encoding="utf-8"))]
    assert [str(path.relative_to(ROOT)) for path in found] == []
