"""order.json, facts.json and worker.json: whatever they say, a report is made, and no wrong process is signalled."""

import json
import signal
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from hypothesis import strategies as st
from tests.fuzz.damage import restructured, spoiled
from tests.fuzz.explore import bounded, explore, holds
from tests.fuzz.journals import bodies, journal, journal_files, resealed

from cliffwatch import report as report_package
from cliffwatch.base.errors import Problem
from cliffwatch.base.processes import ProcessIdentity
from cliffwatch.coordinator.heartbeat import Heartbeat
from cliffwatch.journal import JournalReader, files
from cliffwatch.report.build import build, write
from cliffwatch.report.export.formats import write_csv, write_parquet
from cliffwatch.report.export.window_table import table_of

SCHEMA = json.loads((Path(report_package.__path__[0]) / "report.schema.json").read_text())


def changed(name: str) -> st.SearchStrategy[bytes]:
    document = json.loads(journal_files()[name])
    texts = restructured(st.just(document)).map(lambda text: text.encode("utf-8", "surrogatepass"))
    return texts | spoiled(st.just(journal_files()[name]))


def lines_changed(name: str) -> st.SearchStrategy[bytes]:
    """One line of a file says something else, honestly."""
    written = journal_files()[name].splitlines(keepends=True)

    def put(place: int, text: str) -> bytes:
        line = resealed(text).encode("utf-8", "surrogatepass")
        return b"".join([*written[:place], line, *written[place + 1 :]])

    found = bodies(name)
    return st.one_of([st.builds(put, st.just(at), restructured(st.just(body))) for at, body in enumerate(found)])


def reported(**damaged: Any) -> None:
    with journal(**damaged) as directory, bounded():
        report = build(directory)
        write(directory, report)
        jsonschema.Draft202012Validator(SCHEMA).validate(json.loads((directory / files.REPORT_JSON).read_text()))
        table = table_of(directory)
        for writer in (write_csv, write_parquet):
            with (directory / "table").open("wb") as output:
                writer(table, output)


@holds(examples=8, order=changed(files.ORDER), facts=changed(files.FACTS))
def test_a_report_is_made_whatever_the_documents_say(order: bytes, facts: bytes) -> None:
    reported(order_json=order, facts_json=facts)


@holds(examples=8, events=lines_changed(files.EVENTS), windows=lines_changed(files.WINDOWS))
def test_a_report_is_made_whatever_the_lines_say(events: bytes, windows: bytes) -> None:
    reported(events_jsonl=events, windows_jsonl=windows)


@holds(examples=60, content=changed(files.FACTS))
def test_a_document_is_an_object_or_a_problem(content: bytes) -> None:
    with journal(facts_json=content) as directory, bounded():
        try:
            body = JournalReader(directory).facts()
        except Problem as problem:
            assert "facts.json" in problem.detail
            return
        json.dumps(body, allow_nan=False).encode()


@holds(examples=60, content=changed(files.WORKER))
def test_a_worker_that_is_not_understood_is_no_process(content: bytes) -> None:
    with journal(worker_json=content) as directory, bounded():
        found = Heartbeat.read(directory)
        for identity in (found.worker, found.engine) if found else ():
            assert isinstance(identity, ProcessIdentity | None)
            assert identity is None or identity.send(signal.SIGCONT) in (True, False)
        assert found is None or found.metrics_port is None or 0 < found.metrics_port < 65536


@pytest.mark.parametrize("moment", ['""', "null", "[]", "true", "-1", "1e999"])
def test_a_phase_whose_times_are_none_is_where_its_event_is(moment: str) -> None:
    written = journal_files()[files.EVENTS]
    line = f'{{"at":1790002800.0,"type":"phase","name":"warm_up","detail":{{"start":{moment},"end":{moment}}}}}'
    lines = written.splitlines(keepends=True)
    reported(events_jsonl=b"".join([*lines[:4], resealed(line).encode(), *lines[5:]]))


@pytest.mark.parametrize("summary", [{"count": 1, "max": 1e308, "p99": 0.1}, {"count": 1, "p99": 0.1}])
def test_a_latency_that_cannot_have_been_measured_is_a_gap(summary: dict[str, float]) -> None:
    first, *others = journal_files()[files.WINDOWS].splitlines(keepends=True)
    body = json.loads(first) | {"latency": {"publish": summary}}
    del body["crc32"]
    reported(windows_jsonl=b"".join([resealed(json.dumps(body)).encode(), *others]))


@pytest.mark.parametrize(
    ("kind", "name", "detail"),
    [
        ("engine", "worker_cost", {"cpu_seconds": [1.5], "max_resident_bytes": 1e308}),
        ("device", "flushed", {"device_written_bytes": []}),
        ("finding", "cliff", {"kind": "cliff", "series": "publish.p99", "onset": 1e308, "raised": 1}),
        ("note", "finding_ended", {"raised": [], "until": "never"}),
    ],
)
def test_a_detail_that_is_no_number_is_as_if_it_were_not_there(kind: str, name: str, detail: dict[str, Any]) -> None:
    line = resealed(json.dumps({"at": 1790002850.0, "type": kind, "name": name, "detail": detail}))
    *lines, last = journal_files()[files.EVENTS].splitlines(keepends=True)
    reported(events_jsonl=b"".join([*lines, line.encode(), last]))


@pytest.mark.parametrize("pid", [-1, 0, 2**31, 2**64])
def test_a_pid_that_is_none_is_no_worker(pid: int) -> None:
    body = json.loads(journal_files()[files.WORKER])
    body["worker"]["pid"] = pid
    with journal(worker_json=json.dumps(body).encode()) as directory:
        assert Heartbeat.read(directory) is None


def test_a_file_system_whose_type_is_none_is_reported() -> None:
    facts = json.loads(journal_files()[files.FACTS])
    facts["file_system"]["type"] = ["ext4"]
    reported(facts_json=json.dumps(facts).encode())


@pytest.mark.real(why="damage at random")
def test_documents_at_random() -> None:
    explore(
        test_a_report_is_made_whatever_the_documents_say,
        test_a_report_is_made_whatever_the_lines_say,
        test_a_document_is_an_object_or_a_problem,
        test_a_worker_that_is_not_understood_is_no_process,
    )
