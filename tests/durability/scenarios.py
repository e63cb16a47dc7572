"""What is promised of a disk: what is done to it, and what has to be found on it after its power was cut."""

import json
import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

from sqlalchemy.exc import OperationalError
from testkit import journals
from tests.labs.bundle.packed import bundle_of, finished

from cliffwatch.app.admission import RunTurns
from cliffwatch.app.indexer import Indexer
from cliffwatch.app.runs import RunService
from cliffwatch.base import durable
from cliffwatch.base.clock import SystemClock
from cliffwatch.base.errors import Problem
from cliffwatch.base.histogram import Histogram
from cliffwatch.gate.run_directory import claimed, ownership, run_directory
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, WindowLog, files
from cliffwatch.journal.state import status_of
from cliffwatch.labs.bundle.imports import ImportService
from cliffwatch.labs.bundle.pack import order_of
from cliffwatch.labs.bundle.unpack import unpack
from cliffwatch.machine.descriptors import open_directory
from cliffwatch.model.request import RunRequest
from cliffwatch.model.settings import read_settings
from cliffwatch.model.window import EngineWindow
from cliffwatch.store.database import open_database, upgrade

START = journals.START
#: What has been acknowledged so far.
Promises = list[Any]


@dataclass(frozen=True, slots=True)
class Scenario:
    """`prepare` fills the disk and what lies beside it; `act` does something to the disk and adds what it was promised;
    `broken` says what of that an image does not keep, or None."""

    name: str
    prepare: Callable[[Path, Path], None]
    act: Callable[[Path, Path, Promises], None]
    broken: Callable[[Path, Promises], str | None]


def _window(number: int) -> EngineWindow:
    histogram = Histogram()
    histogram.record(2_000_000 + number * 1000, 1000 + number)
    return EngineWindow(
        start=START + number,
        end=START + number + 1,
        counters={"operations": 1000 + number},
        gauges={"schedule_debt_seconds": 0.0},
        latency={"write": histogram, "append": histogram},
    )


def _queue(disk: Path, beside: Path) -> None:
    journals.queue(disk, "run")


def _measure(disk: Path, beside: Path, promises: Promises) -> None:
    """Two workers, of which the first dies while it writes."""
    for numbers in (range(4), range(4, 7)):
        log = WindowLog(disk / "run", START)
        for number in numbers:
            promises.append(log.append(_window(number), "soak"))
        log.close()
        for name, begun in ((files.LATENCY, b"Tag=write,17"), (files.WINDOWS, b'{"seq":4,"sta')):
            with (disk / "run" / name).open("ab") as file:
                file.write(begun)


def _leave_a_line(disk: Path, beside: Path) -> None:
    """A worker that has synced the histograms of its last window."""
    _queue(disk, beside)
    _measure(disk, beside, [])
    path = disk / "run" / files.WINDOWS
    *lines, last, _ = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines))
    (beside / "line").write_bytes(last)


def _take_over(disk: Path, beside: Path, promises: Promises) -> None:
    """It writes the line and is killed before it syncs that; the next worker finds the window, and so it counts."""
    with (disk / "run" / files.WINDOWS).open("ab") as file:
        file.write((beside / "line").read_bytes())
    WindowLog(disk / "run", START).close()
    promises.extend(JournalReader(disk / "run").windows())


def _lost_windows(image: Path, promises: Promises) -> str | None:
    """As they are found, and once more after another worker went on."""
    directory = image / "run"
    for is_over in (False, True):
        if is_over:
            try:
                log = WindowLog(directory, START)
                log.append(_window(100), "soak")
                log.close()
            except (Problem, ValueError) as error:
                return f"no worker could go on: {error}"
        reader = JournalReader(directory)
        found = list(reader.windows())
        numbers = [window.seq for window in found]
        if numbers != list(range(len(found))):
            return f"windows {numbers}"
        for window in found:
            try:
                counts = {name: histogram.count for name, histogram in reader.histograms(window).items()}
            except (Problem, OSError) as error:
                return str(error)
            if counts != dict.fromkeys(("append", "write"), window.counters["operations"]):
                return f"histograms of window {window.seq}: {counts}"
        if found[: len(promises)] != promises:
            return f"{len(promises)} windows were committed, and there are {len(found)}"
    return None


def _note(disk: Path, beside: Path, promises: Promises) -> None:
    log = EventLog(disk / "run")
    for number in range(6):
        event = Event(START + number, EventType.NOTE, f"note-{number}", {"text": "a" * 300})
        log.append(event)
        promises.append(event)


def _lost_events(image: Path, promises: Promises) -> str | None:
    log = EventLog(image / "run")
    for _ in range(2):
        found = [stored.event for stored in JournalReader(image / "run").events()]
        if [event for event in found if event in promises] != promises:
            return f"{len(promises)} events were recorded, and there are {len(found)}"
        if found[0].name != "queued":
            return "its first state is gone"
        log.append(Event(START + 100, EventType.NOTE, "later"))
    return None


def _nothing(disk: Path, beside: Path) -> None:
    disk.mkdir()


def _submit(disk: Path, beside: Path, promises: Promises) -> None:
    with _service(disk, beside) as submit:
        for run_id in ("first", "second"):
            submit(run_id)
            promises.append(run_id)


def _leave_a_run(disk: Path, beside: Path) -> None:
    """A service that is about to give a run its name."""
    disk.mkdir()
    journals.queue(beside, "first").rename(disk / ".new-first")


def _take_in(disk: Path, beside: Path, promises: Promises) -> None:
    """It does, and is killed before it syncs that; the next service finds the run."""
    (disk / ".new-first").rename(disk / "first")
    url = f"sqlite:///{beside}/database"
    upgrade(url)
    with closing(open_database(url)) as database:
        assert Indexer(database, disk, RunTurns(), SystemClock()).index_first().indexed == 1
    promises.append("first")


def _leave_an_order(disk: Path, beside: Path) -> None:
    """A service that has made a run and is about to give it its name."""
    disk.mkdir()
    with _service(disk, beside) as submit:
        submit("first")
    (disk / "first").rename(disk / ".new-first")


def _ask_again(disk: Path, beside: Path, promises: Promises) -> None:
    """It does, and is killed before it syncs that; the client asks for the run again."""
    (disk / ".new-first").rename(disk / "first")
    with _service(disk, beside) as submit:
        submit("first")
    promises.append("first")


def _refuse(disk: Path, beside: Path, promises: Promises) -> None:
    """A database that fails when the run is there."""
    away = OperationalError("insert", {}, Exception("it is away"))
    with _service(disk, beside) as submit:
        submit("first")
        promises.append("first")
        with mock.patch("cliffwatch.app.admission.index_run", side_effect=away), suppress(OperationalError):
            submit("refused")
    promises.append("refused")


@contextmanager
def _service(disk: Path, beside: Path) -> Iterator[Callable[[str], object]]:
    """Submits a run of this name."""
    settings = read_settings(state_directory=beside, runs_directory=disk)
    upgrade(settings.database_url)
    workload = journals.synthetic_workload().model_dump(mode="json")
    order = {"workload": workload, "target": {"kind": "synthetic", "name": "nowhere"}}
    with closing(open_database(settings.database_url)) as database:
        service = RunService(settings, database, SystemClock())
        yield lambda run_id: service.submit(RunRequest.model_validate(order), "tester", run_id)


def _half_a_run(image: Path, promises: Promises) -> str | None:
    """A run that was accepted, or is seen at all, is whole."""
    seen = {path.name for path in image.iterdir() if not path.name.startswith(".")}
    for run_id in sorted(seen | set(promises)):
        reader = JournalReader(image / run_id)
        try:
            order = order_of(reader)
            status = status_of(stored.event for stored in reader.events())
        except (Problem, OSError) as error:
            return str(error)
        if order.run_id != run_id or status is None or not (image / run_id / files.WORKLOAD).read_text():
            return f"{run_id} is not whole"
    return None


def _refused_and_back(image: Path, promises: Promises) -> str | None:
    """It is there whole, or, once it was refused, not at all."""
    if "refused" in promises and (image / "refused").exists():
        return "it is back"
    return _half_a_run(image, [run_id for run_id in promises if run_id != "refused"])


def _pack(disk: Path, beside: Path) -> None:
    disk.mkdir()
    (beside / "bundle").write_bytes(bundle_of(finished(beside / "run-1")))


class _ImportHere(ImportService):
    """Unpacks in this process, whose calls are seen."""

    def _unpack(self, bundle: Path, pending: Path) -> dict[str, Any]:
        with bundle.open("rb") as source:
            return unpack(source, pending).model_dump(mode="json")


def _import(disk: Path, beside: Path, promises: Promises) -> None:
    url = f"sqlite:///{beside}/database"
    upgrade(url)
    database = open_database(url)
    try:
        promises.append(_ImportHere(disk, database, SystemClock()).take(beside / "bundle", "tester"))
    finally:
        database.close()


def _half_an_import(image: Path, promises: Promises) -> str | None:
    if (why := _half_a_run(image, promises)) is not None:
        return why
    for directory in (path for path in image.iterdir() if not path.name.startswith(".")):
        reader = JournalReader(directory)
        windows = list(reader.windows())
        merged = reader.merged(windows, lambda window: window.phase)
        if not windows or not merged or reader.faults:
            return f"of {directory.name} there are {len(windows)} windows, {reader.faults}"
        try:
            reader.document(files.IMPORTED), reader.document(files.FACTS)
        except Problem as problem:
            return str(problem)
    return None


def _replace(disk: Path, beside: Path, promises: Promises) -> None:
    for number in range(4):
        durable.write_json_durably(disk / "document.json", {"number": number, "text": "a" * 2000})
        promises.append(number)


def _half_a_document(image: Path, promises: Promises) -> str | None:
    try:
        number = json.loads((image / "document.json").read_text())["number"]
    except FileNotFoundError:
        number = -1
    except ValueError as error:
        return str(error)
    return None if number >= len(promises) - 1 else f"{len(promises)} were written, and number {number} is there"


def _claim(disk: Path, beside: Path, promises: Promises) -> None:
    path = run_directory(disk, "run")
    parent = open_directory(disk)
    try:
        with claimed(parent, path, "run"):
            (path / "segment").write_bytes(b"what the engine writes")
            promises.append("segment")
    finally:
        os.close(parent)


def _lost_claim(image: Path, promises: Promises) -> str | None:
    """What the run itself made is never taken for foreign, which would be neither used nor removed."""
    found = ownership(run_directory(image, "run"), "run")
    return "its own directory carries no mark" if found == "foreign" else None


SCENARIOS = (
    Scenario("windows", _queue, _measure, _lost_windows),
    Scenario("windows of a killed worker", _leave_a_line, _take_over, _lost_windows),
    Scenario("events", _queue, _note, _lost_events),
    Scenario("submitted run", _nothing, _submit, _half_a_run),
    Scenario("run of a killed service", _leave_a_run, _take_in, _half_a_run),
    Scenario("run that is asked for again", _leave_an_order, _ask_again, _half_a_run),
    Scenario("refused run", _nothing, _refuse, _refused_and_back),
    Scenario("imported run", _pack, _import, _half_an_import),
    Scenario("document", _nothing, _replace, _half_a_document),
    Scenario("mark of a target", _nothing, _claim, _lost_claim),
)
