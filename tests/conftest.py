import gc
import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from testkit.databases import database, database_url, postgresql_server
from testkit.sets import pytest_addoption, pytest_collection_modifyitems, pytest_xdist_make_scheduler

from cliffwatch.coordinator.detection import FAILED_NOTE

# Started in the background, this process ignores Ctrl-C and so would every command that a test starts and interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says more of the machine than of the code.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

__all__ = [
    "database",
    "database_url",
    "postgresql_server",
    "pytest_addoption",
    "pytest_collection_modifyitems",
    "pytest_xdist_make_scheduler",
]

#: Runs of this name have a detector that is broken on purpose.
BROKEN_ON_PURPOSE = "broken-detector"


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """A command that an earlier test called within this process made the files of this process private."""
    os.umask(0o022)


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """What a test leaves open is complained of in that test, and not in whichever one the collector comes by."""
    yield
    gc.collect()
    # What is left now need not be looked at after each further test.
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def _no_detection_failed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """A detector that fails does not end its run; in the tests it must be seen all the same."""
    yield
    note = f'"name":"{FAILED_NOTE}"'
    journals = [path for path in tmp_path_factory.getbasetemp().rglob("events.jsonl") if path.is_file()]
    failed = [
        path
        for path in journals
        if BROKEN_ON_PURPOSE not in str(path) and not path.is_symlink() and note in path.read_text(errors="replace")
    ]
    assert not failed, f"detection failed in runs of these tests: {failed}"
