"""The modules of each Rust crate form no circles: each can be read with what is below it alone."""

import re
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest
from testkit.checkout import ROOT

SOURCES = sorted(
    manifest.parent / "src"
    for pattern in ("drive", "load", "load/*", "load/kafka/testkit")
    for manifest in ROOT.glob(f"{pattern}/Cargo.toml")
)
_USED = re.compile(r"\b(crate|super)((?:::[a-z_]+)+)(?:::\{([^}]*)\})?")


def module_of(source: Path, file: Path) -> tuple[str, ...]:
    """Path of the module that a file holds; empty for the crate's root."""
    path = file.relative_to(source).with_suffix("").parts
    return path[:-1] if path[-1] in ("mod", "lib", "main") else path


def used_by(source: Path, file: Path, modules: set[tuple[str, ...]]) -> set[tuple[str, ...]]:
    """Modules that a file names outside of its tests, but for those above it and below it."""
    own = module_of(source, file)
    text = file.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")[0]
    text = re.sub(r"//.*", "", text)
    found = set()
    for root, path, names in _USED.findall(text):
        start = () if root == "crate" else own[:-1]
        first = (*start, *path.strip(":").split("::"))
        for name in re.findall(r"[a-z_]+", names) or [""]:
            whole = (*first, name) if name else first
            found.add(next(whole[:end] for end in range(len(whole), -1, -1) if whole[:end] in modules or not end))
    return {each for each in found if each[: len(own)] != own and own[: len(each)] != each}


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.parent.name)
def test_no_module_of_a_crate_needs_one_that_needs_it(source: Path) -> None:
    files = [file for file in sorted(source.rglob("*.rs")) if file.stem != "tests"]
    modules = {module_of(source, file) for file in files}
    graph = {module_of(source, file): used_by(source, file, modules) for file in files}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" needs ".join("::".join(module) for module in reversed(error.args[1])))
