"""What an engine made is cleared away as far as possible, and that never ends the run."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cliffwatch.engines.contract import Launch
from cliffwatch.journal.events import LEFT_BEHIND, EventType
from cliffwatch.part import prepare
from cliffwatch.part.context import PartContext
from cliffwatch.part.target import PartTarget


def test_a_journal_that_is_away_is_an_event_and_the_files_are_cleared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noted: list[tuple[Any, ...]] = []
    cleared: list[object] = []
    monkeypatch.setattr(prepare, "surroundings", lambda context, target: None)
    monkeypatch.setattr(prepare, "clear_files", lambda context, held: cleared.append(held))
    # As of a command whose target is no directory: it works in the run's journal.
    launch = Launch(["true"], directory=tmp_path / "gone" / "engine")
    context = SimpleNamespace(
        engine=SimpleNamespace(clear=lambda load, context: launch, stop_signal=15),
        load=None,
        workload=SimpleNamespace(stop_grace=1.0),
        directory=tmp_path / "gone",
        inbox=SimpleNamespace(fileno=lambda: 0, is_stopped=lambda: False),
        record_event=lambda kind, name, **detail: noted.append((kind, name, detail)),
    )
    target = SimpleNamespace(examination=SimpleNamespace(target="postgres://a@b/c"), held="held")
    prepare.clear(cast("PartContext", context), cast("PartTarget", target))
    ((kind, name, detail),) = noted
    assert (kind, name, detail["path"]) == (EventType.NOTE, LEFT_BEHIND, "postgres://a@b/c")
    assert "No such file" in detail["message"]
    assert cleared == ["held"]
