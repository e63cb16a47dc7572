"""What a run's journal says of the telemetry to collect."""

from pathlib import Path

import pytest
from testkit import journals

from cliffwatch.base.errors import Code, Problem
from cliffwatch.journal import files
from cliffwatch.telemetry.collector import CollectionRequest


def test_an_order_that_is_not_valid_is_refused_by_its_file(tmp_path: Path) -> None:
    directory = journals.queue(tmp_path, "one")
    journals.start(directory)
    assert CollectionRequest.by(directory) is not None
    (directory / files.ORDER).write_text('{"run_id": {}}')
    with pytest.raises(Problem, match=r"order\.json is not valid") as refused:
        CollectionRequest.by(directory)
    assert refused.value.code is Code.JOURNAL_UNREADABLE
