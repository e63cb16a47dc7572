"""The service as a process of its own: how it starts, and how it ends."""

import asyncio
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from testkit import journals
from testkit.checkout import ROOT
from tests.api.harness import ORDER, NoReconciler, make_tokens, serving
from tests.api.service_process import process

from cliffwatch.app.index import index_run
from cliffwatch.base.clock import VirtualClock
from cliffwatch.base.errors import Code, Problem
from cliffwatch.machine.mounts import mount_of
from cliffwatch.model.settings import Settings
from cliffwatch.server.app import create_app
from cliffwatch.store.database import open_database


def test_open_streams_do_not_keep_a_service_from_ending(settings: Settings) -> None:
    headers = {"Authorization": f"Bearer {make_tokens(settings)['read']}"}
    directory = journals.queue(settings.runs_directory, "one")
    database = open_database(settings.database_url)
    with database.session() as session:
        index_run(session, directory)
    database.close()
    with (
        process(settings) as (service, client),
        client.stream("GET", "/api/v1/runs/one/live", headers=headers) as response,
    ):
        lines = response.iter_lines()
        assert next(lines) == "id: 1.-1"
        service.send_signal(signal.SIGTERM)
        for _ in lines:
            pass
        assert service.wait() in {0, -signal.SIGTERM}


def test_a_service_that_was_killed_goes_on_with_what_it_had_accepted(settings: Settings) -> None:
    headers = {"Authorization": f"Bearer {make_tokens(settings)['admin']}"}
    with process(settings) as (service, client):
        assert client.put("/api/v1/runs/one", json=ORDER, headers=headers).status_code == 201
        service.send_signal(signal.SIGKILL)
        service.wait()
    # Killed between the journal and the index, and while it made a journal.
    journals.queue(settings.runs_directory, "two")
    (settings.runs_directory / ".new-three-0000").mkdir()
    with process(settings) as (_, client):
        runs = client.get("/api/v1/runs", headers=headers).json()["items"]
        assert {run["id"] for run in runs} == {"one", "two"}
        assert client.put("/api/v1/runs/one", json=ORDER, headers=headers).status_code == 200
    assert {path.name for path in settings.runs_directory.iterdir()} == {"one", "two"}


def test_a_state_directory_on_a_network_share_is_in_the_log(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    shared = replace(mount_of(settings.state_directory.parent), file_system="nfs4")
    monkeypatch.setattr("cliffwatch.app.state_place.mount_of", lambda path, proc: shared)
    with serving(settings):
        pass
    (said,) = [record for record in caplog.records if "network share" in record.getMessage()]
    assert (said.levelname, str(settings.state_directory) in said.getMessage()) == ("WARNING", True)


def test_a_second_service_on_the_same_state_directory_does_not_start(settings: Settings) -> None:
    async def start_second() -> None:
        # In virtual time it waits for the first one to end without waiting.
        app = create_app(settings, VirtualClock(0.0), reconciler=NoReconciler)
        async with app.router.lifespan_context(app):
            pass

    with serving(settings):
        with pytest.raises(Problem) as caught:
            asyncio.run(start_second())
        assert caught.value.code is Code.CONFLICT
    asyncio.run(start_second())


#: In a process of its own, which no other test has left anything to: lives three times, and prints what is left then.
THREE_LIVES = """
import sys, threading
from pathlib import Path
from tests.api.harness import serving
from cliffwatch.model.settings import read_settings

for number in range(3):
    with serving(read_settings(state_directory=Path(sys.argv[1]) / str(number))) as api:
        api.get("/runs")
    # Worker threads of the event loop that has just ended may still be on their way out.
    threads = [thread.name for thread in threading.enumerate() if not thread.name.startswith("AnyIO")]
    print(len(threads), len(list(Path("/proc/self/fd").iterdir())))
"""


def test_a_service_leaves_no_threads_or_files_behind(tmp_path: Path) -> None:
    command = [sys.executable, "-c", THREE_LIVES, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    _, before, after = done.stdout.splitlines()
    assert after == before
