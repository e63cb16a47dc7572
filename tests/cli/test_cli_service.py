"""The command against a real service with real workers; the synthetic engine makes the windows."""

import json
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest
from tests.cli.machine import PATIENCE_SECONDS, Machine
from typer.core import TyperGroup

from cliffwatch.cli.daemon import find_daemon
from cliffwatch.cli.reference import commands, options_of


def read_until(stream: IO[str], text: str) -> str:
    """What was read from the stream up to the line that has `text` in it."""
    seen = ""
    for line in stream:
        seen += line
        if text in line:
            return seen
    raise AssertionError(f"{text!r} did not come:\n{seen}")


def test_the_first_start_makes_a_token_that_its_owner_alone_can_read(idle: Machine) -> None:
    first = idle.run("up")
    token = (idle.state / "token").read_text().strip()
    assert first.returncode == 0
    assert token not in first.stderr
    assert (idle.state / "token").stat().st_mode & 0o777 == 0o600
    assert token not in (idle.state / "service.log").read_text()
    assert (idle.state / "service.log").stat().st_mode & 0o777 == 0o600
    again = idle.run("up")
    assert again.returncode == 0
    assert again.stderr.splitlines()[0].startswith("the service is already running at http://127.0.0.1:")
    assert again.stderr.count("the service is") == 1
    assert token not in again.stderr


def test_down_ends_the_service_and_says_so(idle: Machine) -> None:
    idle.run("up")
    daemon = find_daemon(idle.state)
    assert daemon is not None
    assert idle.run("status").returncode == 0
    assert "the service is stopped" in idle.run("down").stderr
    assert not daemon.process.is_alive()
    assert idle.run("status").returncode == 3
    second = idle.run("down")
    assert (second.returncode, "not running" in second.stderr) == (0, True)


def test_down_reports_runs_that_go_on_from_those_that_have_to_wait(idle: Machine) -> None:
    idle.run("up")
    path = idle.workload("slow", load="time: real")
    watched = idle.start("run", "start", path, "--target", "synthetic:one", "--id", "first", "--watch")
    assert watched.stderr is not None
    read_until(watched.stderr, "soak")
    idle.run("run", "start", path, "--target", "synthetic:one", "--id", "second")
    assert re.search(r"^waits for +first$", idle.run("run", "show", "second").stdout, re.MULTILINE)
    said = idle.run("down").stderr
    idle.run("up")
    assert "these runs continue, and the service takes them over again when it starts: first\n" in said
    assert "1 queued run will start when the service is up again\n" in said


def test_a_port_that_is_taken_is_said_with_the_remedy(idle: Machine) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", idle.port))
        done = idle.run("up")
    assert done.returncode == 3
    assert f"127.0.0.1:{idle.port} cannot be listened on" in done.stderr
    assert "CLIFFWATCH_LISTEN_PORT" in done.stderr
    assert find_daemon(idle.state) is None


def test_a_second_service_in_one_state_directory_changes_nothing_of_the_first(idle: Machine, tmp_path: Path) -> None:
    idle.run("up")
    kept = {name: (idle.state / name).read_bytes() for name in ("token", "service.json")}
    for other in ({}, {"CLIFFWATCH_DATABASE_URL": f"sqlite:///{tmp_path / 'other.sqlite3'}"}):
        second = idle.run("serve", CLIFFWATCH_LISTEN_PORT="0", **other)
        assert second.returncode == 2
        assert "another service uses the state directory" in second.stderr
        assert "Traceback" not in second.stderr
        assert {name: (idle.state / name).read_bytes() for name in kept} == kept
    assert idle.run("status").returncode == 0
    assert "the service is stopped" in idle.run("down").stderr


def test_a_setting_that_is_wrong_is_named_by_its_variable(idle: Machine) -> None:
    done = idle.run("up", CLIFFWATCH_LISTEN_PORT="many")
    assert done.returncode == 2
    assert "CLIFFWATCH_LISTEN_PORT" in done.stderr


def test_a_pass_is_status_0_and_says_where_the_report_is(machine: Machine) -> None:
    done = machine.run("run", "start", machine.workload("good"), "--target", "synthetic:good", "--wait", "--id", "good")
    assert done.returncode == 0, done.stderr
    verdict, report = done.stdout.splitlines()
    assert verdict.startswith("verdict: pass – 1,800,000 operations")
    assert Path(report.removeprefix("report:").strip()).stat().st_size > 0
    assert "good" in machine.run("run", "list").stdout
    assert machine.data("run", "list", "--limit", "1", "--state", "finished")[0]["state"] == "finished"
    assert [run["id"] for run in machine.data("run", "list", "--workload", "good")] == ["good"]
    assert [run["id"] for run in machine.data("run", "list", "--verdict", "pass")] == ["good"]
    assert machine.data("run", "list", "--verdict", "failed") == []
    assert machine.run("run", "list", "--state", "stopping").stderr == (
        "no run matches; without --state, --workload, --verdict and --label it is all of them\n"
    )
    assert "pass" in machine.run("run", "show", "good").stdout
    assert json.loads(machine.run("run", "report", "good").stdout)["verdict"]
    page = machine.directory / "page.html"
    assert machine.run("run", "report", "good", "--format", "html", "--to", str(page)).returncode == 0
    assert page.read_text().lower().startswith("<!doctype html>")
    picture = machine.directory / "picture.png"
    assert machine.run("run", "report", "good", "--format", "png", "--to", str(picture)).returncode == 0
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_any_other_verdict_is_status_1(machine: Machine) -> None:
    path = machine.workload("bad", load="time: virtual, fail_after_windows: 3")
    done = machine.run("--output", "json", "run", "start", path, "--target", "synthetic:bad", "--watch")
    assert done.returncode == 1
    assert json.loads(done.stdout)["verdict"] == "failed"
    assert "engine: the engine died" in done.stderr


def test_a_dry_run_starts_nothing(machine: Machine) -> None:
    before = machine.data("run", "list")
    done = machine.run("run", "start", machine.workload("dry"), "--target", "synthetic:dry", "--dry-run")
    assert done.returncode == 0
    assert done.stdout.startswith("would write  nothing\n")
    assert machine.data("run", "list") == before


def test_a_dry_run_that_would_be_refused_is_status_2(machine: Machine) -> None:
    done = machine.run("run", "start", "quick-soak", "--target", f"directory:{machine.directory}/nowhere", "--dry-run")
    assert done.returncode == 2
    assert "nowhere" in done.stderr


@pytest.fixture
def drive(tmp_path: Path) -> Iterator[Path]:
    """The backing file of a loop device."""
    backing = tmp_path / "drive.img"
    with backing.open("wb") as file:
        file.truncate(64 * 1024**2)
    losetup = ["losetup", "--find", "--show", str(backing)]
    node = subprocess.run(losetup, check=True, capture_output=True, text=True).stdout.strip()
    yield backing
    subprocess.run(["losetup", "--detach", node], check=True)


def test_a_drive_is_written_to_once_the_sentence_of_the_dry_run_is_given(machine: Machine, drive: Path) -> None:
    path = machine.directory / "on-drive.yaml"
    path.write_text(
        "{version: 1, name: on-drive, engine: fio, window: 500ms, phases: {soak: 2s},"
        " load: {preset: sequential-log, size: 16MiB, rate: 4MiB}}"
    )
    order = ("run", "start", str(path), "--target", f"device:{drive}")
    plan = machine.data(*order, "--dry-run")
    sentence = plan["confirmation"]
    assert f"confirm      {sentence}" in machine.run(*order, "--dry-run").stdout
    refused = machine.run(*order)
    assert (refused.returncode, sentence in refused.stderr) == (2, True)
    assert not any(drive.read_bytes())
    done = machine.run(*order, "--confirm", sentence, "--wait")
    assert done.returncode in (0, 1), done.stderr
    assert any(drive.read_bytes())
    subprocess.run(["mkfs.ext4", "-q", "-F", str(drive)], check=True)
    occupied = machine.run(*order, "--dry-run")
    assert (occupied.returncode, "ext4" in occupied.stderr) == (2, True)


def test_an_id_of_ones_own_makes_one_run_however_often_it_is_asked_for(machine: Machine) -> None:
    arguments = ("run", "start", machine.workload("once"), "--target", "synthetic:once", "--id", "once", "--wait")
    assert [machine.run(*arguments).returncode for _ in range(2)] == [0, 0]
    assert [run["id"] for run in machine.data("run", "list")].count("once") == 1


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("run", "start", "no-such", "--target", "synthetic:a"), "no-such"),
        (("run", "start", "quick-soka", "--target", "synthetic:a"), "did you mean 'quick-soak'?"),
        (("run", "start", "quick-soak@99", "--target", "synthetic:a"), "the newest is quick-soak@1"),
        (("workload", "show", "quik-soak"), "did you mean 'quick-soak'?"),
        (("run", "start", "quick-soak", "--target", "synthetic:a"), "target.kind"),
        (("run", "start", "quick-soak", "--target", "directory:/tmp", "--soak", "0s"), "phases.soak"),
        (("run", "show", "no-such"), "no-such"),
        (("run", "list", "--state", "asleep"), "'asleep' is not one of 'queued', 'starting', 'running'"),
        (
            ("run", "list", "--state", "runing"),
            "'finished'; did you mean 'running'?",
        ),
        (("workload", "show", "no-such"), "no-such"),
        (("schedule", "remove", "no-such"), "no-such"),
        (("token", "revoke", "00000000"), "no token has the id '00000000'; `cliffwatch token list` shows the ids"),
        (("token", "revoke", "admin"), "the id of the token with that name is"),
        (("token", "revoke", "cw_00000000_secret"), "this is the text of a token; give its id"),
    ],
)
def test_a_request_refused_by_the_service_is_exit_status_2_with_the_reason(
    machine: Machine, arguments: tuple[str, ...], named: str
) -> None:
    done = machine.run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert named in done.stderr


def test_workloads_are_kept_by_name_and_version(machine: Machine) -> None:
    path = machine.workload("kept")
    assert machine.data("workload", "add", path)["version"] == 1
    machine.workload("kept", soak="31m")
    assert machine.data("workload", "add", path)["version"] == 2
    assert "soak: 30m" in machine.run("workload", "show", "kept@1").stdout
    shown = machine.run("workload", "show", "kept").stdout
    assert "soak: 31m" in shown
    (machine.directory / "again.yaml").write_text(shown)
    assert machine.run("workload", "validate", "again.yaml").returncode == 0
    assert {"kept", "quick-soak"} <= {workload["name"] for workload in machine.data("workload", "list")}
    assert machine.run("run", "start", "kept@1", "--target", "synthetic:kept", "--wait").returncode == 0


def test_a_workload_that_was_run_from_a_file_is_known_by_its_name_and_stays_what_it_was(machine: Machine) -> None:
    path = machine.workload("mine")
    order = ("run", "start", path, "--target", "synthetic:mine")
    assert machine.run(*order, "--dry-run").returncode == 0
    assert machine.run("workload", "show", "mine").returncode == 2
    first = machine.run(*order, "--wait")
    assert "its workload was saved as mine" in first.stderr
    added = machine.data(
        *("schedule", "add", "nightly", "--workload", "mine", "--target", "synthetic:mine", "--every", "24h")
    )
    assert added["workload"] == "mine"
    assert "known" not in machine.run(*order, "--wait").stderr
    machine.workload("mine", soak="31m")
    other = machine.run(*order, "--wait")
    assert "the service has a different workload mine" in other.stderr
    assert "`cliffwatch workload add FILE`" in other.stderr
    assert "soak: 30m" in machine.run("workload", "show", "mine").stdout
    machine.run("schedule", "remove", "nightly")


def test_the_shell_completes_names_of_workloads(machine: Machine) -> None:
    completing = {"COMP_WORDS": "cliffwatch run start quick", "COMP_CWORD": "3"}
    assert machine.run(**completing, _CLIFFWATCH_COMPLETE="complete_bash").stdout.split() == ["quick-soak"]


def test_schedules_are_added_looked_at_switched_and_removed(machine: Machine) -> None:
    machine.run("workload", "add", machine.workload("weekly-soak"))
    added = machine.data(
        *("schedule", "add", "weekly", "--workload", "weekly-soak", "--target", "synthetic:weekly"),
        *("--cron", "0 18 * * fri", "--time-zone", "Europe/Berlin", "--soak", "36h"),
    )
    assert added["next_fire_at"]
    shown = machine.run("schedule", "show", "weekly").stdout
    assert "cron 0 18 * * fri Europe/Berlin" in shown
    assert "weekly-soak" in machine.run("schedule", "list").stdout
    machine.run("schedule", "disable", "weekly")
    assert machine.data("schedule", "show", added["id"])["next_fire_at"] is None
    machine.run("schedule", "enable", "weekly")
    assert machine.data("schedule", "show", "weekly")["next_fire_at"] == added["next_fire_at"]
    refused = machine.run(
        *("schedule", "add", "never", "--workload", "weekly-soak", "--target", "synthetic:a", "--cron", "0 99 * * *")
    )
    assert (refused.returncode, "trigger" in refused.stderr) == (2, True)
    assert machine.run("schedule", "remove", "weekly").returncode == 0
    assert machine.data("schedule", "list") == []


def test_a_token_allows_what_its_scope_says_until_it_is_revoked(machine: Machine) -> None:
    token = machine.run("token", "create", "--name", "dashboards", "--scope", "read").stdout.strip()
    assert machine.run("run", "list", CLIFFWATCH_TOKEN=token).returncode == 0
    refused = machine.run("run", "stop", "good", CLIFFWATCH_TOKEN=token)
    assert (refused.returncode, "scope operate" in refused.stderr) == (2, True)
    [row] = [row for row in machine.data("token", "list") if row["name"] == "dashboards"]
    assert machine.run("token", "revoke", row["id"]).returncode == 0
    assert machine.run("run", "list", CLIFFWATCH_TOKEN=token).returncode == 2


def test_a_local_token_can_be_created_without_a_token(machine: Machine) -> None:
    token = machine.run("token", "create", "--name", "found again", "--scope", "admin", "--local").stdout.strip()
    assert machine.run("token", "list", CLIFFWATCH_TOKEN=token).returncode == 0


def test_drives_are_listed_with_how_to_name_them_and_fit_a_narrow_terminal(machine: Machine, drive: Path) -> None:
    text = machine.run("drive", "list", COLUMNS="80").stdout
    words = " ".join(text.split())
    # Other tests' loop devices come and go between two listings.
    lasting = [each for each in machine.data("drive", "list") if not each["name"].startswith("loop")]
    for each in lasting:
        assert f"{each['name']} " in text
        assert all(" ".join(objection["message"].split()) in words for objection in each["objections"])
    assert f"loop device over {drive}" in words
    assert f"target device:{drive} eligible yes, as a raw device; all on it is lost" in words
    # A path without a blank may be longer than any line.
    assert all(len(line) <= 80 or " " not in line.strip().partition("  ")[2].strip() for line in text.splitlines())


def test_a_stopped_run_reports_who_watches_it(machine: Machine) -> None:
    path = machine.workload("endless", window="1s", load="time: real")
    watching = machine.start("run", "start", path, "--target", "synthetic:endless", "--id", "endless", "--watch")
    assert watching.stderr is not None
    read_until(watching.stderr, "soak ")
    assert machine.run("run", "stop", "endless").returncode == 0
    out, _ = watching.communicate(timeout=PATIENCE_SECONDS)
    assert watching.returncode == 1
    assert out.startswith("verdict: stopped")


def test_ctrl_c_stops_the_watching_and_not_the_run(machine: Machine) -> None:
    path = machine.workload("goes-on", window="1s", load="time: real")
    watching = machine.start("run", "start", path, "--target", "synthetic:goes-on", "--id", "goes-on", "--watch")
    assert watching.stderr is not None
    read_until(watching.stderr, "soak ")
    watching.send_signal(signal.SIGINT)
    _, said = watching.communicate(timeout=PATIENCE_SECONDS)
    assert watching.returncode == 130
    assert "cliffwatch run stop goes-on" in said
    assert machine.data("run", "show", "goes-on")["state"] == "running"


def test_watching_outlives_a_service_that_is_killed(idle: Machine) -> None:
    idle.run("up")
    path = idle.workload("survivor", soak="5s", window="1s", load="time: real")
    watching = idle.start("run", "start", path, "--target", "synthetic:survivor", "--watch")
    assert watching.stderr is not None
    read_until(watching.stderr, "soak ")
    daemon = find_daemon(idle.state)
    assert daemon is not None
    assert daemon.process.send(signal.SIGKILL)
    read_until(watching.stderr, "the service does not answer")
    assert idle.run("up").returncode == 0
    out, said = watching.communicate(timeout=PATIENCE_SECONDS)
    assert "the service answers again" in said
    assert (watching.returncode, out.split(" – ")[0]) == (0, "verdict: pass")


def test_runs_go_on_without_the_service_and_down_names_them(idle: Machine) -> None:
    idle.run("up")
    path = idle.workload("lonely", window="1s", load="time: real")
    watching = idle.start("run", "start", path, "--target", "synthetic:lonely", "--id", "lonely", "--watch")
    assert watching.stderr is not None
    read_until(watching.stderr, "soak ")
    windows = idle.data("run", "show", "lonely")["windows"]
    assert "lonely" in idle.run("down").stderr
    read_until(watching.stderr, "the service does not answer")
    idle.run("up")
    read_until(watching.stderr, "the service answers again")
    assert idle.data("run", "show", "lonely")["windows"] >= windows


def test_every_command_has_its_data_as_json() -> None:
    without = {
        words
        for words, command in commands()
        if not isinstance(command, TyperGroup)
        and not any(option.opts == ["--output"] and option.name == "output" for option in options_of(command))
    }
    # One runs until it is ended, and what it says is a log; the other speaks to a worker.
    assert without == {"cliffwatch serve", "cliffwatch part"}


def test_commands_report_their_result_as_json(idle: Machine, tmp_path: Path) -> None:
    up = idle.data("up")
    assert (up["state_directory"], up["url"], up["watchers"]) == (str(idle.state), f"http://127.0.0.1:{idle.port}", [])
    assert idle.data("up")["pid"] == up["pid"]
    path = idle.workload("measured", soak="1m")
    idle.run("run", "start", path, "--target", "synthetic:measured", "--id", "measured", "--wait")
    to = tmp_path / "written"
    assert idle.data("run", "report", "measured", "--format", "html", "--to", str(to)) == {
        "file": str(to),
        "format": "html",
    }
    assert idle.data("run", "export", "measured", "--to", str(to)) == {"file": str(to), "format": "csv"}
    assert idle.data("run", "report", "measured")["verdict"]["name"] == "pass"
    assert idle.data("analyze", "measured")["verdict"] == "pass"
    idle.run("schedule", "add", "daily", "--workload", path, "--target", "synthetic:measured", "--every", "24h")
    assert idle.data("schedule", "disable", "daily")["enabled"] is False
    assert idle.data("schedule", "enable", "daily")["enabled"] is True
    assert idle.data("schedule", "remove", "daily")["name"] == "daily"
    local = idle.data("token", "create", "--name", "found", "--scope", "admin", "--local")
    assert idle.data("token", "revoke", local["id"]) == {"id": local["id"], "revoked": True}
    assert idle.data("down") == {"was_up": True, "live_runs": [], "queued_runs": 0, "stopped_watchers": []}
    assert idle.data("down")["was_up"] is False


def test_a_drive_that_is_not_there_is_asked_for_in_words_and_with_the_option(machine: Machine) -> None:
    done = machine.run("run", "start", "quick-soak", "--target", "device:NO-SUCH-SERIAL", "--dry-run")
    assert done.returncode == 2
    assert "drive (--target device:SERIAL): 'NO-SUCH-SERIAL' names no drive; write device: and a serial" in done.stderr
    assert "`cliffwatch drive list` shows" in done.stderr
    assert "target.identity" not in done.stderr
