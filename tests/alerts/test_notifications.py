"""`cliffwatch notify`: through the real Alertmanager to what stands for Slack, a mail server and web hooks."""

import json
import socketserver
import stat
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
import yaml
from testkit.ports import free_port
from testkit.waiting import wait_until
from tests.alerts.watchers import Site
from tests.cli.machine import PATIENCE_SECONDS, Machine, end

from cliffwatch.base.clock import SystemClock
from cliffwatch.model.settings import Settings
from cliffwatch.stack import processes
from cliffwatch.stack.channels import FILE, read_channels, usable_channels
from cliffwatch.stack.components import ALERTMANAGER
from cliffwatch.stack.launch import configure_alertmanager

FINISHED = {
    "alertname": "CliffwatchRunFinished",
    "run_id": "soak-1",
    "verdict": "degraded",
    "severity": "info",
    "layer": "run",
}
CLIFF = {"alertname": "CliffwatchLatencyCliff", "run_id": "soak-1", "severity": "critical", "layer": "client"}
STEP = {"alertname": "CliffwatchLatencyStep", "run_id": "soak-1", "severity": "warning", "layer": "client"}


class MailServer(socketserver.ThreadingTCPServer):
    """An SMTP server (RFC 5321) that takes every mail and keeps its text."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        self.mails: list[str] = []
        super().__init__(("127.0.0.1", 0), _Mail)
        threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}).start()


class _Mail(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        assert isinstance(self.server, MailServer)
        self.wfile.write(b"220 here\r\n")
        while line := self.rfile.readline():
            command = line[:4].upper().strip()
            if command == b"DATA":
                self.wfile.write(b"354 go on\r\n")
                text = b"".join(iter(self.rfile.readline, b".\r\n"))
                self.server.mails.append(text.decode())
            self.wfile.write(b"221 bye\r\n" if command == b"QUIT" else b"250 ok\r\n")
            if command == b"QUIT":
                return


class Stage:
    """A machine with an Alertmanager that runs, and sites that stand for what people have."""

    def __init__(self, machine: Machine, port: int) -> None:
        self.machine = machine
        self.port = port
        self.settings = Settings(
            state_directory=machine.state,
            listen_port=machine.port,
            alertmanager_port=port,
            public_url="https://cw.test/",
        )
        self.site = Site({})

    def notify(self, *arguments: str) -> tuple[int, str]:
        port, url = str(self.port), self.settings.public_url
        done = self.machine.run("notify", *arguments, CLIFFWATCH_ALERTMANAGER_PORT=port, CLIFFWATCH_PUBLIC_URL=url)
        return done.returncode, done.stderr

    def file(self, name: str, content: str) -> str:
        path = self.machine.directory / name
        path.write_text(content + "\n")
        return str(path)

    def raise_alert(
        self, labels: dict[str, str], starts_at: str | None = None, ends_at: str | None = None, **annotations: str
    ) -> None:
        alert: dict[str, Any] = {"labels": labels, "annotations": {"summary": "S.", "description": "D."} | annotations}
        alert |= {name: at for name, at in (("startsAt", starts_at), ("endsAt", ends_at)) if at is not None}
        httpx.post(f"http://127.0.0.1:{self.port}/api/v2/alerts", json=[alert], trust_env=False).raise_for_status()

    def suppressed(self) -> list[Any]:
        """Alerts that a silence keeps from every channel."""
        found = httpx.get(f"http://127.0.0.1:{self.port}/api/v2/alerts?active=false", trust_env=False).json()
        return [alert for alert in found if alert["status"]["state"] == "suppressed"]

    def posted(self, path: str) -> list[Any]:
        return [body for at, _, body in list(self.site.posts) if at == path]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    machine = Machine(tmp_path, free_port())
    stage = Stage(machine, free_port())
    configure_alertmanager(stage.settings, {})
    (outcome,) = processes.start(stage.settings, [ALERTMANAGER], SystemClock())
    assert outcome.state is processes.State.STARTED, outcome.reason
    yield stage
    processes.stop(stage.settings, SystemClock())
    stage.site.close()
    end(machine)


def test_each_channel_has_what_it_was_added_for_and_a_link(stage: Stage) -> None:
    slack = stage.file("slack", f"http://{stage.site.address}/slack")
    hook = stage.file("hook", f"http://{stage.site.address}/hook")
    assert stage.notify("add", "slack", "--url-file", slack, "--on", "cliff,finished") == (
        0,
        "slack is notified of cliff, finished; try it: cliffwatch notify test slack\n",
    )
    assert stage.notify("add", "webhook", "--url-file", hook, "--on", "degradation,cliff", "--name", "all")[0] == 0
    assert stage.notify("test", "slack") == (0, "slack took a notification; look for it there\n")
    assert stage.notify("test", "all")[0] == 0
    (trial,) = stage.posted("/slack")
    (shown,) = trial["attachments"]
    assert (shown["title"], shown["color"]) == ("Cliffwatch can reach this channel.", "good")
    for labels in (STEP, CLIFF):
        stage.raise_alert(labels)
    stage.raise_alert(FINISHED, description="p99 rose.")
    wait_until(lambda: len(stage.posted("/slack")) >= 3, "the cliff and the end")
    titles = {body["attachments"][0]["title"]: body["attachments"][0]["text"] for body in stage.posted("/slack")[1:]}
    assert titles == {
        "S. (soak-1)": "D.\nhttps://cw.test/runs/soak-1\n",
        "degraded: run soak-1 has ended": "p99 rose.\nreport: https://cw.test/runs/soak-1/report\n"
        "picture: https://cw.test/runs/soak-1/report.png",
    }
    seen = {each["title"]: each for body in stage.posted("/slack")[1:] for each in body["attachments"]}
    assert {each["title_link"] for each in seen.values()} == {"https://cw.test/runs/soak-1"}
    assert {each["color"] for each in seen.values()} == {"danger"}
    assert {each["fallback"] for each in seen.values()} == set(seen)
    wait_until(lambda: len(stage.posted("/hook")) >= 3, "both degradations")
    named = sorted(body["commonLabels"]["alertname"] for body in stage.posted("/hook"))
    assert named == ["CliffwatchLatencyCliff", "CliffwatchLatencyStep", "CliffwatchNotificationTest"], "each once"


def test_alertmanager_has_reloaded_when_a_channel_was_added(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also not a second time, by a signal: a reload that comes later repeats a notification that is under way."""
    signals: list[str] = []
    monkeypatch.setattr(processes, "reload", lambda _, component: signals.append(component.name))
    hook = stage.file("hook", f"http://{stage.site.address}/hook")
    assert stage.notify("add", "webhook", "--url-file", hook)[0] == 0
    status = httpx.get(f"http://127.0.0.1:{stage.port}/api/v2/status", trust_env=False).json()
    receivers = yaml.safe_load(status["config"]["original"])["receivers"]
    assert "webhook/ends" in {receiver["name"] for receiver in receivers}
    assert signals == []


def test_a_new_channel_gets_the_ends_of_later_runs_alone(stage: Stage) -> None:
    for labels in (FINISHED, CLIFF | {"run_id": "goes-on"}):
        stage.raise_alert(labels, starts_at="2026-01-01T00:00:00Z")
    hook = stage.file("hook", f"http://{stage.site.address}/hook")
    assert stage.notify("add", "webhook", "--url-file", hook, "--on", "finished,cliff")[0] == 0
    stage.raise_alert(FINISHED | {"run_id": "later"})
    wait_until(lambda: len(stage.posted("/hook")) >= 2, "the cliff that lasts, and the later run")
    assert {body["commonLabels"]["run_id"] for body in stage.posted("/hook")} == {"goes-on", "later"}
    assert [alert["labels"]["run_id"] for alert in stage.suppressed()] == ["soak-1"]


@pytest.mark.parametrize(("verdict", "colour"), [("pass", "good"), ("invalid", "warning"), ("failed", "danger")])
def test_a_run_that_passed_is_no_alarm(stage: Stage, verdict: str, colour: str) -> None:
    slack = stage.file("slack", f"http://{stage.site.address}/slack")
    assert stage.notify("add", "slack", "--url-file", slack, "--on", "finished")[0] == 0
    stage.raise_alert(FINISHED | {"verdict": verdict})
    wait_until(lambda: bool(stage.posted("/slack")), "the end")
    (body,) = stage.posted("/slack")
    assert body["username"] == "Cliffwatch"
    assert body["attachments"][0]["color"] == colour


def test_channels_that_are_added_at_once_are_all_kept(tmp_path: Path) -> None:
    machine = Machine(tmp_path, free_port())
    (tmp_path / "hook").write_text("https://a.test/")
    names = {f"c{index}" for index in range(4)}
    adding = [machine.start("notify", "add", "webhook", "--name", name, "--url-file", "hook") for name in names]
    assert {process.wait(PATIENCE_SECONDS) for process in adding} == {0}
    end(machine)
    assert {channel.name for channel in read_channels(Settings(state_directory=machine.state))} == names


def test_a_damaged_file_keeps_no_watcher_from_its_work(tmp_path: Path) -> None:
    settings = Settings(state_directory=tmp_path)
    (tmp_path / FILE).write_text("{")
    channels, (fault,) = usable_channels(settings)
    assert channels == {}
    assert fault.startswith(f"nothing is sent to any channel: {tmp_path / FILE} is damaged")


def test_a_mail_names_the_run_in_its_subject(stage: Stage) -> None:
    with MailServer() as server:
        address = f"smtp://127.0.0.1:{server.server_address[1]}/?from=cw@a.test&to=b@a.test&to=c@a.test"
        assert stage.notify("add", "email", "--url-file", stage.file("mail", address))[0] == 0
        assert stage.notify("test", "email")[0] == 0
        stage.raise_alert(FINISHED | {"verdict": "invalid"})
        wait_until(lambda: len(server.mails) >= 2, "the mail")
        server.shutdown()
    assert "Subject: invalid: run soak-1 has ended" in server.mails[-1]
    assert "To: b@a.test,c@a.test" in server.mails[-1].replace(", ", ",")
    assert "report: https://cw.test/runs/soak-1/report" in server.mails[-1].replace("=\r\n", "").replace("=3D", "=")


def test_a_failed_notification_reports_the_reason_without_the_address(stage: Stage) -> None:
    closed = f"http://127.0.0.1:{free_port()}/secret"
    assert stage.notify("add", "slack", "--url-file", stage.file("slack", closed))[0] == 0
    status, said = stage.notify("test", "slack")
    assert status == 3
    assert "slack was not reached: " in said
    assert "connection refused" in said
    assert "secret" not in said
    assert said.count('"') % 2 == 0
    assert stage.notify("remove", "slack") == (0, "slack is notified of nothing any more\n")
    assert stage.notify("test", "slack")[0] == 2


def test_a_site_that_answers_404_is_named_without_its_address(stage: Stage) -> None:
    hook = stage.file("hook", f"http://{stage.site.address}/secret")
    stage.site.absent.add("/secret")
    assert stage.notify("add", "webhook", "--url-file", hook)[0] == 0
    status, said = stage.notify("test", "webhook")
    assert status == 3
    assert "webhook was not reached: " in said
    assert "unexpected status code 404" in said
    assert "<address>" in said
    assert "/secret" not in said


def test_the_resolution_of_a_finished_run_alert_is_not_sent(stage: Stage) -> None:
    hook = stage.file("hook", f"http://{stage.site.address}/hook")
    assert stage.notify("add", "webhook", "--url-file", hook, "--on", "finished,cliff")[0] == 0
    made = ALERTMANAGER.directory(stage.settings) / "alertmanager.yaml"
    made.write_text(made.read_text().replace("group_interval: 1m", "group_interval: 1s"))
    httpx.post(f"http://127.0.0.1:{stage.port}/-/reload", trust_env=False).raise_for_status()
    for labels in (FINISHED, CLIFF):
        stage.raise_alert(labels)
    wait_until(lambda: len(stage.posted("/hook")) >= 2, "both")
    long_ago = "2026-01-01T00:00:00Z"
    for labels in (FINISHED, CLIFF):
        stage.raise_alert(labels, ends_at=long_ago)
    # Of the same group as the end that is over, which would be in this notification or in one before it.
    stage.raise_alert(FINISHED | {"workload": "again"})
    wait_until(lambda: len(stage.posted("/hook")) >= 4, "the cliff's end, and the other run's")
    alerts = [alert for body in stage.posted("/hook") for alert in body["alerts"]]
    over = {alert["labels"]["alertname"] for alert in alerts if alert["status"] == "resolved"}
    assert over == {CLIFF["alertname"]}


def test_a_configuration_that_is_refused_is_said(stage: Stage) -> None:
    """As an older Alertmanager may that does not know a field."""
    stage.site.absent.add("/-/reload")
    stage.port = int(stage.site.address.rpartition(":")[2])
    hook = stage.file("hook", f"http://{stage.site.address}/hook")
    status, said = stage.notify("add", "webhook", "--url-file", hook)
    assert status == 3
    assert "Alertmanager refuses its configuration and keeps the one before" in said


def test_a_removed_channel_receives_no_notifications(stage: Stage) -> None:
    hook = stage.file("hook", f"http://{stage.site.address}/hook")
    for name in ("one", "two"):
        assert stage.notify("add", "webhook", "--name", name, "--url-file", hook, "--on", "cliff")[0] == 0
    assert stage.notify("remove", "one")[0] == 0
    stage.raise_alert(CLIFF)
    wait_until(lambda: bool(stage.posted("/hook")), "the cliff")
    assert [body["receiver"] for body in stage.posted("/hook")] == ["two"]
    listed = stage.machine.run("--output", "json", "notify", "list")
    assert [channel["name"] for channel in json.loads(listed.stdout)] == ["two"]


@pytest.mark.parametrize(
    ("kind", "content", "on", "named"),
    [
        ("slack", "hooks.slack.com/x", "cliff", "has to hold a URL that begins with https://"),
        ("webhook", "https://a b", "cliff", "has to hold one word in ASCII"),
        ("email", "smtp://mail.test/?from=a@b.test", "cliff", "smtp://USER:PASSWORD@HOST:PORT/?from=ADDRESS"),
        ("pagerduty", "https://x", "cliff", "an integration key"),
        ("webhook", "https://a.test:99999/", "cliff", "does not hold a URL"),
        ("webhook", "https://a.test/", "clif", "--on: 'clif' is none of cliff, degradation"),
        ("webhook", "https://a.test/", ",", "--on: say of what"),
    ],
)
def test_an_invalid_notification_channel_is_refused_with_the_reason_and_not_stored(
    tmp_path: Path, kind: str, content: str, on: str, named: str
) -> None:
    machine = Machine(tmp_path, free_port())
    (tmp_path / "f").write_text(content)
    done = machine.run("notify", "add", kind, "--url-file", "f", "--on", on)
    assert done.returncode == 2
    assert named in done.stderr
    assert not (machine.state / FILE).exists()


def test_secrets_stand_in_files_that_their_owner_alone_can_read(tmp_path: Path) -> None:
    machine, none = Machine(tmp_path, free_port()), {"CLIFFWATCH_ALERTMANAGER_PORT": str(free_port())}
    (tmp_path / "key").write_text("abc123\n")
    assert machine.run("notify", "add", "pagerduty", "--url-file", "key").returncode == 0
    kept = machine.state / FILE
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert "abc123" not in kept.read_text()
    settings = Settings(state_directory=machine.state)
    configure_alertmanager(settings, {})
    done = machine.run("notify", "add", "pagerduty", "--url-file", "key", **none, CLIFFWATCH_WATCHERS="true")
    assert (done.returncode, "Alertmanager does not answer here; `cliffwatch up` starts it" in done.stderr) == (0, True)
    made = ALERTMANAGER.directory(settings) / "alertmanager.yaml"
    assert stat.S_IMODE(made.stat().st_mode) == 0o600
    (pagerduty, _) = (each for each in yaml.safe_load(made.read_text())["receivers"] if "pagerduty_configs" in each)
    assert pagerduty["pagerduty_configs"][0]["routing_key"] == "abc123"
    (tmp_path / "key").unlink()
    other = tmp_path / "hook"
    other.write_text("https://a.test/")
    done = machine.run("notify", "add", "webhook", "--url-file", "hook", **none)
    assert done.returncode == 0, "one that cannot be read keeps no other from being added"
    assert "warning: nothing is sent to pagerduty" in done.stderr
    assert "warning: nothing is sent to pagerduty" in machine.run("notify", "list").stderr
    off = machine.run("notify", "add", "webhook", "--url-file", "hook", **none, CLIFFWATCH_WATCHERS="false")
    assert "CLIFFWATCH_WATCHERS=true and `cliffwatch up` start it" in off.stderr
    for arguments in (("test", "absent"), ("remove", "absent")):
        refused = machine.run("notify", *arguments)
        assert (refused.returncode, "there are: pagerduty, webhook" in refused.stderr) == (2, True)
