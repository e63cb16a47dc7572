"""Recordings of real load generators whose target held every request from 30 to 42 s."""

import json

import pytest
from tests.labs.outputs.printed import FILES, HELD, text_of
from tests.labs.outputs.reading import analyze, read


@pytest.mark.parametrize("mode", ["offline", "online"])
@pytest.mark.parametrize("name", HELD)
def test_a_held_target_is_a_stall(name: str, mode: str) -> None:
    result = analyze(FILES / name, HELD[name][0], "--format", "json", "--mode", mode)
    assert result.exit_code == 1
    body = json.loads(result.stdout)
    (stall,) = [finding for finding in body["findings"] if finding["kind"] == "stall"]
    assert stall["onset_seconds"] == pytest.approx(30.5, abs=1.1)
    assert stall["until_seconds"] == pytest.approx(41.5, abs=1.1)


@pytest.mark.parametrize("name", HELD)
def test_windows_add_up_to_the_operations_of_the_recording(name: str) -> None:
    format_, operations = HELD[name]
    output = read(format_, *text_of(name))
    assert output.operations == operations
    assert output.table.completed == pytest.approx(operations, rel=0.01)
    assert output.table.window_seconds == pytest.approx(1.0, abs=0.01)
    assert len(output.table.samples) in (57, 58)
