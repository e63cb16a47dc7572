"""Runs by label, on both databases: exactly, also in their case."""

from pathlib import Path

from testkit import journals

from cliffwatch.app.index import index_run
from cliffwatch.journal import EventLog
from cliffwatch.journal.annotated import annotated
from cliffwatch.model.annotations import Annotations
from cliffwatch.store.database import Database
from cliffwatch.store.queries import runs_page


def test_a_label_is_found_as_it_was_written(database: Database, tmp_path: Path) -> None:
    for run_id, value in (("one", "B\u03b2 1"), ("two", "B\u03b2 2"), ("none", "")):
        directory = journals.queue(tmp_path, run_id)
        if value:
            EventLog(directory).append(annotated(Annotations(labels={"drive": value}), "tester", journals.START))
        with database.session() as session:
            index_run(session, directory)
    with database.snapshot() as session:
        assert [row.id for row in runs_page(session, 10, labels={"drive": "B\u03b2 1"})] == ["one"]
        assert runs_page(session, 10, labels={"drive": "b\u03b2 1"}) == []
        assert runs_page(session, 10, labels={"rive": "B\u03b2 1"}) == []
