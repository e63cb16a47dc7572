"""The stack from images as docs/compose.md describes it, built and executed by a real engine.

Images come from no registry: testkit/compose/stand_ins.py makes what the project's own image is built on.
"""

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from testkit.checkout import ROOT
from testkit.compose.composition import IN_PROFILES, STACK
from testkit.compose.stack import Stack, stack
from testkit.compose.stand_ins import build_stand_ins
from testkit.docker import engine
from testkit.release_state import restored
from testkit.waiting import wait_until
from tests.alerts.watchers import Site

pytestmark = [
    pytest.mark.real(why="an image is built and a stack started"),
    pytest.mark.alone(why="runs whose windows are judged, beside a build"),
    # The first build on a machine fetches and compiles all.
    pytest.mark.timeout(2700),
]
STARTED = set(STACK).difference(IN_PROFILES.values())
RELEASES = sorted((ROOT / "tests" / "upgrade" / "releases").iterdir())
#: Where the service's volume is.
KEPT = Path("/var/lib/cliffwatch")
PUBLIC_URL = "https://cliffwatch.example.org"
VOLUME = {"kind": "directory", "path": "/target"}
STORAGE: dict[str, Any] = {
    "engine": "storage",
    "phases": {"baseline": "5s", "soak": "15s"},
    "load": {
        "style": "redpanda",
        "style_changes": {"segment_size": "4MiB", "preallocation": "1MiB"},
        "partitions": 4,
        "record_size": "1KiB",
        "rate": "500KB",
        "retention_size": "64MiB",
    },
}
FIO: dict[str, Any] = {
    "engine": "fio",
    "phases": {"baseline": "5s", "soak": "15s"},
    "load": {"job": "[log]\nioengine=psync\ndirect=1\nrw=write\nbs=16k\nsize=32m\nrate_iops=50\n"},
}


def synthetic(soak: str, **load: Any) -> dict[str, Any]:
    return {"engine": "synthetic", "engine_restarts": 100, "phases": {"soak": soak}, "load": load}


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Up and healthy, for tests that leave it so."""
    with engine() as running:
        build_stand_ins(running)
        with stack(running, tmp_path_factory.mktemp("stack"), CLIFFWATCH_PUBLIC_URL=PUBLIC_URL) as described:
            described.documented("up --detach")
            described.wait_healthy()
            yield described


def test_every_container_is_well_and_has_the_services_of_the_file(up: Stack) -> None:
    assert set(up.containers()) == STARTED


def test_the_image_has_every_program_and_its_user_has_no_rights(up: Stack) -> None:
    version = up.inside("cliffwatch", "version")
    for program in ("cliffwatch-drive", "cliffwatch-load"):
        assert up.inside(program, "--version") in (f"{program} {version}", f"{program} {version.split()[-1]}")
    assert up.inside("fio", "--version").startswith("fio-3")
    assert up.inside("pgbench", "--version").startswith("pgbench (PostgreSQL) 15")
    assert up.inside("nvme", "version").startswith("nvme version 2")
    assert up.inside("id", "-u", "-n") == "cliffwatch"
    capabilities = re.findall(r"^Cap\w+:\s+(\w+)$", up.inside("cat", "/proc/1/status", user="0"), re.MULTILINE)
    assert {int(each, 16) for each in capabilities} == {0}


@pytest.mark.parametrize("name", sorted(STARTED - {"configuration"}))
def test_nothing_is_written_but_into_volumes(up: Stack, name: str) -> None:
    refused = up.attempt("exec", "-T", "--user=0", name, "touch", "/written")
    assert "Read-only file system" in refused.stderr


def test_every_target_answers_and_every_rule_can_be_evaluated(up: Stack) -> None:
    def down() -> dict[str, str]:
        targets = up.get("PROMETHEUS", "/api/v1/targets")["data"]["activeTargets"]
        assert {target["labels"]["job"] for target in targets} >= {
            "cliffwatch-service",
            "prometheus",
            "alertmanager",
            "node",
        }
        return {target["scrapeUrl"]: target["lastError"] for target in targets if target["health"] != "up"}

    wait_until(lambda: not down(), down)
    wait_until(lambda: not up.unhealthy_rules(), up.unhealthy_rules)


def test_each_engine_runs_on_the_volume_and_its_worker_is_scraped(up: Stack) -> None:
    up.begin("storage", STORAGE, VOLUME)
    # Queued until the other gives the volume free.
    up.begin("fio", FIO, VOLUME)
    up.begin("synthetic", synthetic("20s"), {"kind": "synthetic", "name": "nothing"})
    for run_id in ("storage", "synthetic", "fio"):
        series = f'cliffwatch_operations_total{{run_id="{run_id}", job="cliffwatch-worker"}}'
        wait_until(partial(up.query, series), f"series of {run_id}")
    for run_id in ("storage", "synthetic", "fio"):
        report = up.wait_finished(run_id)
        assert report["verdict"]["name"] == "pass", report["verdict"]


def test_a_workload_goes_in_and_a_report_comes_out(up: Stack) -> None:
    (up.directory / "smaller.yaml").write_text(
        "{version: 1, name: smaller, engine: synthetic, window: 1s, phases: {soak: 3s}}", encoding="utf-8"
    )
    up.documented("exec -T cliffwatch cliffwatch workload add /dev/stdin")
    up.inside("cliffwatch", "run", "start", "quick-soak", "--target", "directory:/target", "--dry-run")
    up.inside("cliffwatch", "run", "start", "smaller", "--target", "synthetic:nothing", "--wait")
    up.documented("exec -T cliffwatch cliffwatch run report last")
    page = (up.directory / "report.html").read_text(encoding="utf-8")
    assert page.startswith("<!")
    assert "smaller" in page


def test_an_alert_reaches_the_run_that_it_is_about(up: Stack) -> None:
    up.begin("failing", synthetic("5m", fail_after_windows=4), {"kind": "synthetic", "name": "failing"})
    alerts = partial(up.events, "failing", type="alert", name="CliffwatchEngineRestarted")
    wait_until(alerts, lambda: up.get("ALERTMANAGER", "/api/v2/alerts"))
    up.inside("cliffwatch", "run", "stop", "failing", "--force")
    up.wait_finished("failing")


def test_people_are_notified_of_the_end_of_a_run(up: Stack) -> None:
    people = Site({})
    try:
        file = up.directory / "slack-url"
        file.write_text(f"http://{people.address}/", encoding="utf-8")
        up.documented("exec -T cliffwatch sh -c")
        up.documented("exec -T cliffwatch cliffwatch notify add slack")
        up.documented("exec -T cliffwatch cliffwatch notify test slack")
        people.absent.add("/")
        refused = up.attempt("exec", "-T", "cliffwatch", "cliffwatch", "notify", "test", "slack")
        assert (refused.returncode, "docker compose logs alertmanager" in refused.stderr) == (3, True), refused.stderr
        people.absent.clear()
        up.begin("ended", synthetic("3s"), {"kind": "synthetic", "name": "ended"})
        up.wait_finished("ended")

        def news() -> list[str]:
            texts = [body["attachments"][0]["text"] for _, _, body in people.posts]
            return [text for text in texts if f"report: {PUBLIC_URL}/runs/ended/report" in text]

        wait_until(news, lambda: up.get("ALERTMANAGER", "/api/v2/alerts"))
        # Nothing changes what was added when the stack starts again.
        up.run("up", "--detach", "--force-recreate", "configuration", "alertmanager")
        up.wait_healthy()
        up.documented("exec -T cliffwatch cliffwatch notify test slack")
    finally:
        people.close()


def service_pid(up: Stack) -> str:
    """In its container: the only child of the supervisor, which is the first child of the container's init."""
    return up.inside("sh", "-c", "read first others < /proc/1/task/1/children; cat /proc/$first/task/$first/children")


def test_a_service_that_is_killed_comes_back_and_its_run_goes_on(up: Stack) -> None:
    up.begin("survivor", synthetic("45s"), {"kind": "synthetic", "name": "survivor"})
    wait_until(lambda: up.windows("survivor"), "the first window")
    before = service_pid(up)
    up.inside("sh", "-c", f"kill -9 {before}")
    wait_until(lambda: service_pid(up) not in ("", before) and up.is_ready(), "another service that answers")
    report = up.wait_finished("survivor")
    assert report["verdict"]["name"] == "pass", report["verdict"]
    assert report["coverage"]["gaps"] == []
    assert up.windows("survivor") == list(range(45))


def test_a_stop_in_the_middle_of_a_run_leaves_one_gap_and_every_rule_healthy(up: Stack) -> None:
    up.begin("stopped", STORAGE | {"phases": {"baseline": "10s", "soak": "50s"}}, VOLUME)
    wait_until(lambda: len(up.windows("stopped")) > 12, "windows of the soak")
    # It ends first, so that nothing says of the first worker's series that they are over. In one stop it may end last.
    up.run("stop", "prometheus")
    up.run("stop")
    up.run("start")
    up.wait_healthy()
    both = 'count by (instance) (cliffwatch_file_system_info{run_id="stopped"})'
    wait_until(lambda: len(up.query(both)) == 2, lambda: f"series of both workers: {up.query(both)}", 60)
    report = up.wait_finished("stopped")
    assert len(report["coverage"]["gaps"]) == 1
    assert len(up.events("stopped", type="state", name="interrupted")) == 1
    wait_until(lambda: not up.unhealthy_rules(), up.unhealthy_rules)
    assert up.failed_evaluations() == {}


def test_finished_runs_are_listed_after_compose_down_and_up(up: Stack) -> None:
    up.begin("kept", synthetic("3s"), {"kind": "synthetic", "name": "kept"})
    up.wait_finished("kept")
    before = {run["id"]: run["verdict"] for run in up.api("GET", "/runs")["items"]}
    up.documented("down")
    assert up.containers() == {}
    up.documented("up --detach")
    up.wait_healthy()
    assert {run["id"]: run["verdict"] for run in up.api("GET", "/runs")["items"]} == before


def test_state_of_the_previous_image_is_taken_over(up: Stack) -> None:
    before = up.directory / "before"
    before.mkdir()
    token = restored(RELEASES[-1], before, seen_at=KEPT)
    (before / "token").write_text(f"{token}\n", encoding="utf-8")
    for path in (before, *before.rglob("*")):
        path.chmod(0o755 if path.is_dir() else 0o644)
    up.documented("down")
    replace = f"cd {KEPT} && rm -r runs token cliffwatch.sqlite3* && cp -r /before/. ."
    up.run("run", "--rm", "--no-deps", f"--volume={before}:/before:ro", "--entrypoint=sh", "cliffwatch", "-c", replace)
    (up.directory / "token").unlink(missing_ok=True)
    up.documented("up --detach")
    up.wait_healthy()
    assert up.token == token
    assert {run["id"]: run["state"] for run in up.api("GET", "/runs")["items"]} == dict.fromkeys(
        (path.name for path in (RELEASES[-1] / "runs").iterdir()), "finished"
    )
    assert {schedule["enabled"] for schedule in up.api("GET", "/schedules")["items"]} == {True}
    up.begin("later", synthetic("3s"), {"kind": "synthetic", "name": "later"})
    assert up.wait_finished("later")["verdict"]["name"] == "pass"
    wait_until(lambda: not up.unhealthy_rules(), up.unhealthy_rules)
