"""Mark a timing test void when the machine was busy before it, or the hypervisor stole processor time during it.

A void test does not count as passed: it makes pytest fail. A pytest plugin (-p testkit.quiet_machine) for tests
that run one at a time.
"""

import time
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

import pytest

#: Limits of stolen time, and of others' load before a test, as shares of all processors' time.
STOLEN_LIMIT, OTHERS_LIMIT = 0.02, 0.10
#: How long to wait for a quiet machine before a test begins, and the length of each measurement.
PATIENCE_SECONDS, LOOK_SECONDS = 60.0, 1.0
_VOID = pytest.StashKey[bool]()
_IS_VOID = ("void", True)
_CONDITIONS = pytest.StashKey[list[str]]()


@dataclass(frozen=True, slots=True)
class ProcessorTime:
    """Clock ticks of all processors since boot (proc(5), /proc/stat): in all, busy, and stolen by the hypervisor."""

    total: int
    busy: int
    stolen: int

    @classmethod
    def read(cls, path: Path = Path("/proc/stat")) -> "ProcessorTime":
        # user nice system idle iowait irq softirq steal; guests are in user already.
        ticks = [int(word) for word in path.read_text(encoding="ascii").split("\n", 1)[0].split()[1:9]]
        return cls(sum(ticks), sum(ticks) - ticks[3] - ticks[4] - ticks[7], ticks[7])

    def __sub__(self, earlier: "ProcessorTime") -> "ProcessorTime":
        return ProcessorTime(self.total - earlier.total, self.busy - earlier.busy, self.stolen - earlier.stolen)

    @property
    def stolen_ratio(self) -> float:
        return self.stolen / max(1, self.total)

    @property
    def busy_ratio(self) -> float:
        return self.busy / max(1, self.total)


def _busy_before() -> float:
    """Wait until the machine is quiet, at most PATIENCE_SECONDS; returns the last measured busy share of its time."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        before = ProcessorTime.read()
        time.sleep(LOOK_SECONDS)
        busy = (ProcessorTime.read() - before).busy_ratio
        if busy <= OTHERS_LIMIT or time.monotonic() > deadline:
            return busy


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_CONDITIONS] = []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    others = _busy_before()
    before = ProcessorTime.read()
    try:
        return (yield)
    finally:
        stolen = (ProcessorTime.read() - before).stolen_ratio
        item.stash[_VOID] = stolen > STOLEN_LIMIT or others > OTHERS_LIMIT
        conditions = f"processors {others:.0%} busy before, {stolen:.1%} stolen meanwhile"
        void = "VOID: " if item.stash[_VOID] else ""
        item.config.stash[_CONDITIONS].append(f"{void}{item.nodeid}: {conditions}")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if call.when == "call" and item.stash.get(_VOID, False):
        report.outcome = "skipped"
        report.longrepr = (str(item.path), 0, "the machine was not quiet")
        report.user_properties.append(_IS_VOID)
    return report


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    return ("void", "V", "VOID") if _IS_VOID in report.user_properties else None


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    terminalreporter.section("what the machine did beside each test")
    for line in config.stash[_CONDITIONS]:
        terminalreporter.write_line(line)
    if terminalreporter.stats.get("void"):
        terminalreporter.write_line("Void is not passed: run the tests again while nothing else runs on this machine.")


def pytest_sessionfinish(session: pytest.Session) -> None:
    void = any(line.startswith("VOID: ") for line in session.config.stash[_CONDITIONS])
    if void and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
