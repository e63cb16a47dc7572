"""The disk of journals and database is full: answers say why, and what to do."""

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from testkit import journals
from testkit.small_disk import SmallDisk, small_disk
from testkit.waiting import wait_until
from tests.api.harness import ORDER, NoReconciler, listening, make_tokens
from tests.api.problems import check

from cliffwatch.base.errors import Code
from cliffwatch.journal import Event, EventLog, EventType, JournalReader, files
from cliffwatch.journal.state import status_of
from cliffwatch.model.run_state import RunState
from cliffwatch.model.settings import Settings, read_settings
from cliffwatch.server.app import create_app

#: Room in a block of the disk that is taken already is room, too.
_BLOCK_BYTES = 4096


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SmallDisk]:
    with small_disk(tmp_path_factory.mktemp("small") / "disk", 16 << 20) as made:
        yield made


@pytest.fixture(scope="module")
def settings(disk: SmallDisk) -> Settings:
    return read_settings(state_directory=disk.path / "state")


@pytest.fixture(scope="module")
def run(settings: Settings) -> Path:
    """A run that goes on, and whose events end with a block."""
    directory = journals.queue(settings.runs_directory, "one")
    journals.start(directory)
    log, note = EventLog(directory), Event(journals.START + 5, EventType.NOTE, "padding", {"text": ""})
    left = -((directory / files.EVENTS).stat().st_size + len(note.to_line())) % _BLOCK_BYTES
    log.append(Event(note.at, note.type, note.name, {"text": "x" * left}))
    assert (directory / files.EVENTS).stat().st_size % _BLOCK_BYTES == 0
    return directory


@pytest.fixture(scope="module")
def client(settings: Settings, run: Path) -> Iterator[httpx.Client]:
    headers = {"Authorization": f"Bearer {make_tokens(settings)['operate']}"}
    app = create_app(settings, reconciler=NoReconciler)
    with listening(app) as url, httpx.Client(base_url=url, trust_env=False, timeout=60, headers=headers) as client:
        yield client


@pytest.fixture
def full(client: httpx.Client, disk: SmallDisk) -> Iterator[SmallDisk]:
    client.get("/readyz").raise_for_status()
    disk.fill()
    yield disk
    if next(disk.path.glob("ballast"), None):
        disk.free()


def test_the_full_disk_is_reported_to_who_asks_for_a_run(
    client: httpx.Client, full: SmallDisk, settings: Settings
) -> None:
    answer = client.put("/api/v1/runs/two", json=ORDER)
    reported = check(answer, Code.JOURNAL_UNWRITABLE)
    assert "No space left on device" in reported["detail"]
    assert "make room" in reported["detail"]
    assert answer.headers["retry-after"] == "5"
    full.free()
    assert [path.name for path in settings.runs_directory.iterdir()] == ["one"]
    assert client.put("/api/v1/runs/two", json=ORDER).status_code == 201


def test_journals_that_are_away_are_reported_to_who_asks_for_a_run(client: httpx.Client, settings: Settings) -> None:
    away = settings.runs_directory.with_name("away")
    settings.runs_directory.rename(away)
    try:
        reported = check(client.put("/api/v1/runs/three", json=ORDER), Code.JOURNAL_UNWRITABLE)
        assert f"{settings.runs_directory}, where journals are, is not there" in reported["detail"]
    finally:
        away.rename(settings.runs_directory)
    assert client.put("/api/v1/runs/three", json=ORDER).status_code == 201


def test_a_page_reports_the_full_disk(client: httpx.Client, full: SmallDisk, settings: Settings) -> None:
    cookie = {"Cookie": f"cliffwatch_token={client.headers['authorization'].removeprefix('Bearer ')}"}
    word = client.get("/runs/one", headers=cookie).text.partition('name="form_word" value="')[2].partition('"')[0]
    answer = client.post("/runs/one/stop", data={"form_word": word}, headers=cookie)
    assert (answer.status_code, "make room, and try again" in answer.text) == (503, True), answer.text


def test_the_full_disk_is_reported_to_who_stops_a_run(client: httpx.Client, full: SmallDisk, run: Path) -> None:
    check(client.post("/api/v1/runs/one/stop"), Code.JOURNAL_UNWRITABLE)
    full.free()
    assert client.post("/api/v1/runs/one/stop").status_code == 202
    status = status_of(stored.event for stored in JournalReader(run).events())
    assert status is not None
    assert status.state is RunState.STOPPING


def test_the_full_disk_is_reported_to_who_asks_for_a_report(client: httpx.Client, full: SmallDisk, run: Path) -> None:
    reported = check(client.post("/api/v1/runs/one/report"), Code.JOURNAL_UNWRITABLE)
    assert "No space left on device" in reported["detail"]
    full.free()
    assert client.post("/api/v1/runs/one/report").json()["is_provisional"] is True
    # There is a place for it now, and its process finds no room for the files.
    full.fill()
    assert "could not be made" in check(client.post("/api/v1/runs/one/report"), Code.JOURNAL_UNWRITABLE)["detail"]


def test_a_database_on_a_full_disk_is_not_ready(client: httpx.Client, full: SmallDisk) -> None:
    unready = wait_until(lambda: _unready(client), "the service's notice")
    assert "is full, and journals are written there; make room" in check(unready, Code.NOT_READY)["detail"]
    full.free()
    wait_until(lambda: client.get("/readyz").status_code == 200, "the service's notice")


def test_runs_that_are_not_there_are_not_ready(client: httpx.Client, settings: Settings) -> None:
    away = settings.runs_directory.rename(settings.runs_directory.with_name("away"))
    try:
        reported = check(client.get("/readyz"), Code.NOT_READY)
    finally:
        away.rename(settings.runs_directory)
    assert f"{settings.runs_directory} cannot be written" in reported["detail"]
    assert client.get("/readyz").status_code == 200


def _unready(client: httpx.Client) -> httpx.Response | None:
    answer = client.get("/readyz")
    return None if answer.status_code == 200 else answer
