"""What an engine made is cleared away as far as possible, and that never ends the run."""

import os
import signal
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cliffwatch.engines.contract import Launch
from cliffwatch.journal.events import LEFT_BEHIND, EventType
from cliffwatch.part import prepare
from cliffwatch.part.context import PartContext
from cliffwatch.part.target import PartTarget


def context_of(launch: Launch, directory: Path, *, is_stopped: bool, noted: list[tuple[Any, ...]]) -> PartContext:
    """A part's context with what clearing needs of it; events are appended to `noted`."""
    context = SimpleNamespace(
        engine=SimpleNamespace(clear=lambda load, context: launch, stop_signal=signal.SIGTERM),
        load=None,
        workload=SimpleNamespace(stop_grace=10.0),
        directory=directory,
        inbox=SimpleNamespace(fileno=lambda: pidfd_of_this_process, is_stopped=lambda: is_stopped),
        record_event=lambda kind, name, **detail: noted.append((kind, name, detail)),
        run_clock=SimpleNamespace(now=time.monotonic),
        follow=lambda identity: None,
    )
    return cast("PartContext", context)


#: A descriptor that never becomes readable while the test runs.
pidfd_of_this_process = os.pidfd_open(os.getpid())
TARGET = cast("PartTarget", SimpleNamespace(examination=SimpleNamespace(target="postgres://a@b/c"), held="held"))


@pytest.fixture
def cleared(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The targets whose files were cleared."""
    cleared: list[object] = []
    monkeypatch.setattr(prepare, "surroundings", lambda context, target: None)
    monkeypatch.setattr(prepare, "clear_files", lambda context, held: cleared.append(held))
    return cleared


def test_a_journal_that_is_away_is_an_event_and_the_files_are_cleared(tmp_path: Path, cleared: list[object]) -> None:
    noted: list[tuple[Any, ...]] = []
    # As of a command whose target is no directory: it works in the run's journal.
    launch = Launch(["true"], directory=tmp_path / "gone" / "engine")
    prepare.clear(context_of(launch, tmp_path / "gone", is_stopped=False, noted=noted), TARGET)
    ((kind, name, detail),) = noted
    assert (kind, name, detail["path"]) == (EventType.NOTE, LEFT_BEHIND, "postgres://a@b/c")
    assert "No such file" in detail["message"]
    assert cleared == ["held"]


def test_a_stop_does_not_end_what_clears(tmp_path: Path, cleared: list[object]) -> None:
    noted: list[tuple[Any, ...]] = []
    launch = Launch(["sh", "-c", "sleep 0.3; touch dropped"], directory=tmp_path)
    prepare.clear(context_of(launch, tmp_path, is_stopped=True, noted=noted), TARGET)
    assert (tmp_path / "dropped").exists()
    assert (noted, cleared) == ([], ["held"])
