"""How files are written where io_uring is forbidden or may not lock its buffers: known before a load, and reported."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from testkit.storage_engine import load_of, run
from tests.engines.storage.limits import forbid_io_uring, limit_locked_memory

#: Prints what a dry run and facts.json say, in a process that has the limits which the program inherits.
ASK = """
import json, sys
from pathlib import Path
from cliffwatch.engines.storage.engine import StorageEngine
from testkit.storage_engine import context_of, load_of
load, context = load_of(buffer_size="16MiB", **json.loads(sys.argv[2])), context_of(Path(sys.argv[1]), 60)
facts = StorageEngine().facts(load, context)
print(json.dumps([StorageEngine().plan(load, context).notes, facts.ways, facts.warnings]))
"""


@dataclass(frozen=True, slots=True)
class FoundIo:
    notes: list[str]
    ways: dict[str, str]
    warnings: list[str]


def ask(directory: Path, preexec: Callable[[], None] | None = None, **changes: Any) -> FoundIo:
    done = subprocess.run(
        [sys.executable, "-c", ASK, str(directory), json.dumps(changes)],
        preexec_fn=preexec,
        capture_output=True,
        text=True,
        check=True,
    )
    return FoundIo(*json.loads(done.stdout))


def test_where_io_uring_is_allowed_there_is_nothing_to_say(tmp_path: Path) -> None:
    said = ask(tmp_path)
    assert (said.ways, said.warnings) == ({"io": "io_uring"}, [])
    assert not [note for note in said.notes if "io_uring" in note]


@pytest.mark.parametrize(("style", "io"), [("kafka", "inline"), ("bookkeeper", "io_uring")])
def test_each_style_is_tried_as_it_is(tmp_path: Path, style: str, io: str) -> None:
    changes = {"segment_size": "128KiB"} | ({"journal_segment_size": "512KiB"} if style == "bookkeeper" else {})
    said = ask(tmp_path, style=style, style_changes=changes)
    assert (said.ways, said.warnings) == ({"io": io}, [])


def test_without_io_uring_a_dry_run_and_the_facts_say_that_threads_write(tmp_path: Path) -> None:
    said = ask(tmp_path, forbid_io_uring)
    assert said.ways == {"io": "threads"}
    [warning] = said.warnings
    assert os.strerror(1) in warning
    assert "a pool of threads writes" in warning
    assert warning in said.notes


def test_too_little_lockable_memory_is_said_with_its_remedy_before_and_during_the_load(tmp_path: Path) -> None:
    said = ask(tmp_path, limit_locked_memory)
    assert said.ways == {"io": "io_uring"}
    [warning] = said.warnings
    assert os.strerror(12) in warning
    assert "ulimit -l" in warning
    assert warning in said.notes
    outcome = run(load_of(buffer_size="16MiB"), tmp_path / "data", 1, preexec=limit_locked_memory)
    assert outcome.status == 0, outcome.error
    assert {event["reason"] for event in outcome.events("io_fallback")} == {warning}


def test_trying_writes_nothing(tmp_path: Path) -> None:
    ask(tmp_path)
    assert list(tmp_path.iterdir()) == []
