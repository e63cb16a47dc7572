"""Journals whose lines can be read and say what no service wrote: they hold up no other journal's index."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from testkit import journals

from cliffwatch.app.index import rebuild
from cliffwatch.journal import files
from cliffwatch.store.database import Database
from cliffwatch.store.models import RunRow


@pytest.mark.parametrize(
    ("detail", "indexed"),
    [
        ({"replaced_durations": 5}, ["two"]),
        ({"workload_version": 10**30}, ["two"]),
        ({"workload_version": 3, "replaced_durations": {"soak": "xx"}}, ["one", "two"]),
    ],
)
def test_a_journal_that_says_something_odd_keeps_no_other_from_being_indexed(
    database: Database, tmp_path: Path, detail: dict[str, Any], indexed: list[str]
) -> None:
    odd = journals.queue(tmp_path, "one")
    journals.queue(tmp_path, "two")
    first, *others = (odd / files.EVENTS).read_text().splitlines()
    event = json.loads(first)
    event.pop("crc32", None)
    event["detail"] |= detail
    (odd / files.EVENTS).write_text("\n".join([json.dumps(event), *others]) + "\n")
    with database.session() as session:
        report = rebuild(session, tmp_path)
    assert {name: len(messages) for name, messages in report.faults.items()} == {"one": 1}
    with database.snapshot() as session:
        assert list(session.scalars(select(RunRow.id).order_by(RunRow.id))) == indexed
