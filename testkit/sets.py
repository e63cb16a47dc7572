"""Test sets (gate, real, timing): the set that each test belongs to, and which tests run in parallel.

tests/conftest.py imports the hooks.

A test's set is that of the marker `gate`, `real` or `timing` that is nearest to it. Without one it is `real` where the
test is marked `alone`, else the set of its place (`PLACES`), else the gate. `--set NAME` selects a set.
"""

from typing import Any, Literal, get_args

import pytest
from xdist.scheduler import LoadScopeScheduling

Set = Literal["gate", "real", "timing"]
SETS: tuple[Set, ...] = get_args(Set)
#: Directories and modules that belong to a set as a whole, and why; the longest matching path decides.
PLACES: dict[Set, dict[str, str]] = {
    "gate": {
        "tests/labs/aging/test_attach_and_detach.py": "smoke of the aging drive",
        "tests/worker/test_detection.py": "journals that are made, without a load",
        "tests/worker/test_engine_events.py": "pure",
        "tests/worker/test_exposition.py": "pure",
        "tests/worker/test_failure_text.py": "pure, but for a run that does not begin",
        "tests/worker/test_surroundings.py": "looks at this process's own directories",
    },
    "real": {
        "tests/alerts/test_delivery.py": "Prometheus and Alertmanager are started",
        "tests/alerts/test_whole_run.py": "rules are evaluated for each second of a day",
        "tests/api/test_damaged_rows.py": "every kind of value in every column, at a service each",
        "tests/api/test_database_trouble.py": "a database is away or locked for as long as its clients wait",
        "tests/api/test_failing_disk.py": "a full disk is waited for",
        "tests/api/test_generated_requests.py": "requests at random",
        "tests/api/test_hung_drive.py": "lists the machine's devices while one hangs",
        "tests/api/test_lifetime.py": "services are started and ended as processes",
        "tests/api/test_postgresql_away.py": "a database is away for as long as its clients wait",
        "tests/api/test_postgresql_elsewhere.py": "databases are slow, and promoted",
        "tests/app/test_lost_journals.py": "workers are started, and die",
        "tests/app/test_reconciler.py": "workers are started, and die",
        "tests/cli/test_cli_database_change.py": "services are started on one database after the other",
        "tests/cli/test_cli_index.py": "services and workers are started",
        "tests/cli/test_cli_drive_settings.py": "drives are simulated and attached",
        "tests/cli/test_cli_logs.py": "logs are filled to their bounds",
        "tests/cli/test_cli_run_ids.py": "every command on runs of a service",
        "tests/cli/test_cli_service.py": "services and runs are killed and started again; lists the machine's devices",
        "tests/cli/test_daemon.py": "services are started, killed and started again",
        "tests/cli/test_state_directory.py": "services, runs and drives are started",
        "tests/compose/test_containers.py": "starts a container engine",
        "tests/compose/test_engine.py": "starts a container engine",
        "tests/compose/test_profiles_on_docker.py": "an image is built and a stack started",
        "tests/compose/test_stack_on_docker.py": "an image is built and a stack started",
        "tests/dashboards/test_dashboard_queries.py": "a run is watched by a real Prometheus",
        "tests/docs/test_commands.py": "types every command of the documents, on drives and runs",
        "tests/durability/test_real_file_systems.py": "cuts the power of drives with file systems on them",
        "tests/engines/command/test_command_runs.py": "real programs load for seconds each, by the clock",
        "tests/engines/fio/test_fio_engine.py": "loads of seconds, by the clock",
        "tests/engines/kafka/": "a cluster is started; loads of seconds, by the clock",
        "tests/engines/pgbench/test_pgbench_runs.py": "loads of a quarter of a minute each, by the clock",
        "tests/engines/storage/": "loads of seconds, by the clock, on file systems",
        "tests/exporters/ebpf/": "a probe is compiled, and loaded into the kernel",
        "tests/exporters/gateway/": "a program is compiled",
        "tests/install/": "wheels are built, and installed on bare systems",
        "tests/labs/aging/": "attaches devices, and lists those of the machine",
        "tests/labs/bundle/test_bundle_import.py": "services take in bundles, and are killed meanwhile",
        "tests/labs/what_if/test_what_if_command.py": "drives are simulated until they are old",
        "tests/observer/test_observed_run.py": "a run of most of a minute, watched by a real Prometheus",
        "tests/part/test_part_process.py": "parts are started, and load for a second each",
        "tests/report/export/test_round_trip.py": "whole runs are exported, and analysed again",
        "tests/report/test_browser.py": "opens reports of every kind in a browser",
        "tests/report/test_every_report.py": "opens reports of every kind in a browser",
        "tests/report/test_picture_served.py": "services draw reports",
        "tests/report/test_steady_reported.py": "runs of several seconds, and their reports",
        "tests/report/test_final_findings.py": "runs of several seconds, and their reports",
        "tests/stack/": "watchers are started, hung and killed around runs",
        "tests/telemetry/test_collection_task.py": "runs are watched by a real Prometheus",
        "tests/telemetry/test_collector.py": "hours are collected of a real Prometheus",
        "tests/telemetry/test_remote_drive_run.py": "a run of most of a minute, watched by a real Prometheus",
        "tests/upgrade/": "a state directory of each release is taken over, and runs go on in it",
        "tests/web/": "opens pages in a browser, beside runs",
        "tests/worker/": "runs of several seconds each, by the clock",
    },
    "timing": {
        "tests/causes/": "diagnoses rest on the latencies of loads of half a minute",
        "tests/engines/storage/test_flatness.py": "memory is held to a mebibyte, and a thread is starved",
        "tests/engines/storage/test_truth.py": "flushes and sizes are compared with a broker's",
    },
}
ALONE = "alone"
#: Modules and directories that one process runs, one after the other, by what they share.
TOGETHER = {
    "a Kafka cluster, which takes long to start": ("tests/engines/kafka/",),
    # While a test has killed the server of a loop device, what the device lies on is unknown, and no drive is free.
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
#: Directories whose modules take longest: they start first, after the groups of TOGETHER; short ones fill the end.
LONGEST = (
    "tests/simulation/",
    "tests/fuzz/test_fuzzing.py",
    "tests/stack/",
    "tests/worker/",
    "tests/web/",
    "tests/telemetry/",
    "tests/report/",
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--set", choices=SETS, help="only the tests of this set (testkit/sets.py)")


class ByModule(LoadScopeScheduling):  # type: ignore[misc]
    """xdist scheduler that gives a process a whole module or group at a time, so that its fixtures are made once."""

    def _split_scope(self, nodeid: str) -> str:
        return _group(nodeid) or nodeid.partition("::")[0]


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> ByModule:
    return ByModule(config, log)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        if any(not marker.kwargs.get("why") for name in (*SETS, ALONE) for marker in item.iter_markers(name)):
            raise pytest.UsageError(f"{item.nodeid}: its marker does not say why")
    items.sort(key=_rank)
    if chosen := config.getoption("set"):
        others = [item for item in items if set_of(item) != chosen]
        items[:] = [item for item in items if set_of(item) == chosen]
        config.hook.pytest_deselected(items=others)


def set_of(item: pytest.Item) -> Set:
    """The set that a collected test belongs to."""
    nearest = next((marker.name for marker in item.iter_markers() if marker.name in SETS), None)
    if nearest is not None:
        return next(name for name in SETS if name == nearest)
    # The gate runs all its tests side by side.
    if item.get_closest_marker(ALONE) is not None:
        return "real"
    fitting = [
        (len(place), name) for name, places in PLACES.items() for place in places if item.nodeid.startswith(place)
    ]
    return max(fitting)[1] if fitting else "gate"


def _group(nodeid: str) -> str | None:
    return next((name for name, places in TOGETHER.items() if nodeid.startswith(places)), None)


def _rank(item: pytest.Item) -> int:
    if _group(item.nodeid) is not None:
        return 0
    return next((rank for rank, place in enumerate(LONGEST, 1) if item.nodeid.startswith(place)), len(LONGEST) + 1)
