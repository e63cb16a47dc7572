"""Which tests run when: side by side or alone, in `make test` or only in `make test-all`, and before a given time.

tests/conftest.py imports the hooks.
"""

import time
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

#: Modules and directories that one process runs, one after the other.
TOGETHER = {
    "what costs much to set up: a cluster": ("tests/engines/kafka/",),
    # Where nobody can say what a loop device lies on, as while a test has killed what serves it, no drive is free.
    "whether a drive is free, which depends on every loop device of the machine": (
        "tests/gate/",
        "tests/machine/",
        "tests/labs/aging/",
        "tests/cli/test_cli_service.py",
        "tests/docs/test_commands.py",
        "tests/api/test_hung_drive.py",
        "tests/api/test_targets_api.py",
        "tests/web/test_drives_page.py",
        "tests/worker/test_failing_drive.py",
        "tests/worker/test_fio_runs.py",
    ),
}
#: Directories whose modules take longest begin first, after those that belong together; short ones fill the end.
LONGEST = ("tests/causes/", "tests/stack/", "tests/worker/", "tests/web/", "tests/telemetry/", "tests/report/")
LONG, ALONE = "long", "alone"
_LEFT_OUT = pytest.StashKey[list[pytest.Item]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--until",
        type=float,
        metavar="EPOCH",
        help="run the long tests from the shortest on, and name those that would not be over by then",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_LEFT_OUT] = []


class ByModule(LoadScopeScheduling):  # type: ignore[misc]
    """Gives each process a whole module at a time, so that its fixtures are made once."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid) or nodeid.partition("::")[0]


def _group(nodeid: str) -> str | None:
    return next((name for name, places in TOGETHER.items() if nodeid.startswith(places)), None)


def _rank(item: pytest.Item) -> int:
    if _group(item.nodeid) is not None:
        return 0
    return next((rank for rank, place in enumerate(LONGEST, 1) if item.nodeid.startswith(place)), len(LONGEST) + 1)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByModule:
    return ByModule(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if any(not marker.kwargs.get("why") for name in (LONG, ALONE) for marker in item.iter_markers(name)):
            raise pytest.UsageError(f"{item.nodeid}: its marker does not say why")
    items.sort(key=_rank)
    if config.getoption("until") is not None:
        items.sort(key=seconds_of)


def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    until = item.config.getoption("until")
    if until is None or time.time() + seconds_of(item) <= until:
        return None
    item.config.stash[_LEFT_OUT].append(item)
    return True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash[_LEFT_OUT]
    if left_out:
        terminalreporter.section("left out for want of time; make test-all has them")
    for item in left_out:
        terminalreporter.write_line(f"{seconds_of(item):5.0f} s  {item.nodeid}")


def seconds_of(item: pytest.Item) -> float:
    """How long a test marked `long` takes on two cores; nothing of any other."""
    return max((float(marker.kwargs["seconds"]) for marker in item.iter_markers(LONG)), default=0.0)
