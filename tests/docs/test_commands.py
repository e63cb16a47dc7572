"""Every command of the README and the documentation is run as it is shown, on a machine of the test's own."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from testkit.checkout import ROOT
from testkit.ports import free_port
from tests.cli.machine import Done, Machine, end
from tests.docs.commands import PROGRAM_TEXTS, Command, inline_commands, program_commands, shown_commands
from tests.labs.omb.field_report import DRIVER, FIELD_REPORT
from tests.labs.outputs.printed import FILES
from tests.labs.what_if.conftest import SMALL as SMALL_DRIVE
from typer.core import TyperGroup, TyperOption

from cliffwatch.cli.daemon import find_daemon
from cliffwatch.cli.reference import commands

#: These cannot be run here; each says what proves it instead.
NOT_RUN = {
    "make run": "installs, builds and drills: tests/cli/drill has the drill",
    "make test": "is what runs this test",
    "make up": "installs and builds, then `cliffwatch up`, which begins these tests",
    "python3 -m venv /opt/cliffwatch": "is of the machine itself: tests/install runs these lines on a bare Debian",
    "cliffwatch status --watch": "lasts until Ctrl-C: tests/cli/test_cli_status_page.py runs it",
    "make down": "`cliffwatch down`, which ends these tests",
    "curl --cacert": "asks a gateway on another host: tests/exporters/gateway starts one",
    'curl --fail -H "Authorization: Bearer $TOKEN"': "an upload: tests/labs/bundle/test_bundle_import.py posts it",
    "cp .env.example .env": "belongs to docker compose",
    "docker compose": "needs a Docker engine: tests/compose/test_stack_on_docker.py runs these lines on one of its own",
    "python -m cliffwatch_drive_exporter": "serves until it is ended: tests/exporters/drive starts it",
    "cliffwatch-drive mount": "shows the form only: tests/labs/aging mounts",
    "make bench": "measures for hours",
    "python -m bench NAME": "measures for minutes or hours",
    "cliffwatch drill": "takes minutes: tests/cli/drill/test_drill.py runs each variant",
    "make -C exporters/ebpf": "builds for minutes: setup/watchers calls it",
    "exporters/ebpf/check": "says what this kernel allows: tests/exporters/ebpf calls it",
    "cliffwatch-load kafka --config FILE": "shows the form only: tests/engines/kafka runs each",
}
#: What a page writes for something of the reader's, or for something that lasts too long, and what stands for it here.
INSTEAD = (
    (r"directory:(/mnt/test|/path/to/an/empty/directory|/path)(?= |$)", "directory:{target}"),
    (r"(?<=soak )/mnt/test", "{target}"),
    (r"@/var/lib/postgresql/15/main", "@{target}"),
    (r"RUN_DIRECTORY|(?<= report )DIRECTORY", "{state}/runs/documented"),
    (r"\bRUN\b", "documented"),
    (r"device:SERIAL", "device:{drive}"),
    (r"'the sentence'", "'{sentence}'"),
    (r"10\.0\.0\.1:9092", "127.0.0.1:{closed}"),
    (r"http://127\.0\.0\.1:(9890|9090)", "http://127.0.0.1:{closed}"),
    (r"http://127\.0\.0\.1:9899", "http://127.0.0.1:{port}"),
    # Hours of load, and minutes of simulation.
    (r"--soak 36h", "--soak 1s"),
    (r"(?<=what-if )field-report", "my-drive.yaml"),
    (r"capacity=3\.84TB --set rate=0\.3GB --set duration=24h", "capacity=6.4GB --set rate=0.1GB --set duration=5min"),
)
#: A line of an indented block that is a command.
BEGINS = re.compile(
    r"^    (?:[A-Z_]+=\S+ )?(?:cliffwatch|make|python|curl|docker|sudo|cp|apt-get|install|exporters/)", re.MULTILINE
)
OBSERVED = "cliffwatch run start observe-redpanda --target observed:orders"
BOTH = "--target directory:/mnt/one --target spare=directory:/mnt/two"
WAITED = "cliffwatch run start mine.yaml --target directory:/mnt/test --wait"
OBSERVED_DRIVES = f"""{OBSERVED} --drives 'prometheus:instance=~"broker-.*",device=~"nvme.*"'"""
PGBENCH = "cliffwatch run start pgbench-tpcb --target postgres://soak@127.0.0.1:5432/soak@/var/lib/postgresql/15/main"
REMOTE = (
    "cliffwatch run start mine.yaml --target broker:10.0.0.1:9092 "
    """--drives 'prometheus:instance=~"broker-.*",device=~"nvme.*"'"""
)
#: Commands that are refused here, with the exit status and why: these machines and these runs do not exist.
REFUSED = {
    # Nothing observes Redpanda here; tests/observer has a system that Prometheus knows.
    f"{OBSERVED} --dry-run": (2, "does not answer: [Errno 111]"),
    # Nor is there a Prometheus; tests/labs/look_back has one.
    "cliffwatch observe --prometheus http://127.0.0.1:9090 --since 14d": (3, "the past cannot be read: Prometheus at"),
    # There is no such server here; tests/engines/pgbench has one.
    **dict.fromkeys((PGBENCH, f"{PGBENCH} --dry-run"), (2, "Connection refused")),
    OBSERVED_DRIVES: (3, "cannot be looked up: Prometheus at"),
    # No runs have that label here; tests/cli has such runs.
    f"{WAITED} --not-worse-than label:release --junit soak.xml": (2, "runs of the same load have the label release"),
    "cliffwatch run start mine.yaml --target broker:10.0.0.1:9092": (2, "does not answer: Connection refused"),
    # That file is for a directory here; tests/telemetry has drives of other hosts.
    **dict.fromkeys((REMOTE, f"{REMOTE} --dry-run"), (2, "fio loads device, directory, not broker")),
    # As the page says: the volume is smaller than this load needs. tests/engines/storage has those that fit.
    "cliffwatch run start field-report-36h --target directory:/path --warm-up 0s --baseline 1m --soak 5m": (
        2,
        "logs of",
    ),
    # What was printed while a lock was held on the table.
    "cliffwatch analyze --from pgbench pgbench.err": (1, "Nothing was completed for 14 s"),
    # These disks are not here; tests/worker/test_several_targets.py has two.
    f"cliffwatch run start mine.yaml {BOTH} --dry-run": (2, "/mnt/one"),
    # There is no terminal to ask; tests/cli/test_soak.py answers, and has servers of its own.
    "cliffwatch soak /mnt/test --for 36h": (2, "give --yes"),
    "cliffwatch soak broker:10.0.0.1:9092": (2, "in the way"),
    "cliffwatch soak postgres://soak@127.0.0.1:5432/soak": (2, "in the way"),
    # Without its Alertmanager; tests/alerts/test_notifications.py has one.
    "cliffwatch notify test slack": (3, "Alertmanager does not answer"),
    # As the page says.
    "cliffwatch run delete RUN --yes": (2, "is pinned; unpin it first"),
    # The documented run is over.
    "cliffwatch run stop RUN": (2, "is already finished"),
    # Of a run on brokers, which tests/labs/omb/test_result.py has.
    "cliffwatch run export RUN --format omb --to result.json": (2, "is for runs on brokers"),
    # Without its Prometheus; tests/telemetry has one.
    "python -m cliffwatch.telemetry RUN_DIRECTORY --prometheus http://127.0.0.1:9890": (3, "does not answer"),
}
#: So that simulations take seconds.
FEW = {"CLIFFWATCH_DRIVE_WHAT_IF_SEEDS": "1", "CLIFFWATCH_DRIVE_WHAT_IF_DISORDER": "0.1"}
#: What the reader is to change before a command, or files that the page takes for granted.
SHORT = {"window": "500ms", "phases": {"soak": "1s"}}
FIO = SHORT | {"engine": "fio", "load": {"preset": "sequential-log", "size": "4MiB", "rate": "2MiB"}}
STORAGE = SHORT | {
    "load": {"style": "redpanda", "style_changes": {"segment_size": "1MiB"}, "partitions": 2, "rate": "1MB"}
    | {"retention_size": "8MiB"}
}


class Reader:
    """A user who follows a page: a machine, and what the page takes for granted."""

    def __init__(self, machine: Machine, drive: Path, volume: Path) -> None:
        self.machine = machine
        self.elsewhere = Machine(machine.directory / "elsewhere", free_port())
        self.drive = drive
        self.target = volume
        self.closed = free_port()

    def prepare(self) -> None:
        """A service, a finished run, and the files that pages name."""
        self.elsewhere.directory.mkdir()
        for machine in (self.machine, self.elsewhere):
            done = machine.run("up")
            assert done.returncode == 0, done.stderr
        path = self.machine.workload("documented", soak="10m")
        done = self.machine.run("run", "start", path, "--target", "synthetic:one", "--id", "documented", "--wait")
        assert done.returncode == 0, done.stderr
        self.write("mine.yaml", {"version": 1, "name": "mine"} | FIO)
        self.write("broker-soak.yaml", self.shown_workload() | FIO)
        self.write("my-drive.yaml", yaml.safe_load(SMALL_DRIVE))
        self.write("1GBs.yaml", yaml.safe_load(FIELD_REPORT))
        self.write("driver.yaml", yaml.safe_load(DRIVER))
        shutil.copy(FILES / "pgbench-progress.txt", self.machine.directory / "pgbench.err")
        (self.machine.directory / "slack-url").write_text("https://127.0.0.1:9/services/T0/B0/secret\n")
        # A shorter version of what comes along, under the name that the page has for it.
        self.write("laptop-broker.yaml", self.built_in("laptop-broker") | STORAGE)
        assert self.machine.run("workload", "add", "laptop-broker.yaml").returncode == 0

    def write(self, name: str, document: dict[str, Any]) -> None:
        (self.machine.directory / name).write_text(yaml.safe_dump(document, sort_keys=False))

    @staticmethod
    def shown_workload() -> dict[str, Any]:
        """The workload that docs/workloads.md begins with."""
        page = (ROOT / "docs" / "workloads.md").read_text()
        shown = re.search(r"\n((?:    .*\n)+)", page)
        assert shown is not None
        document: dict[str, Any] = yaml.safe_load(shown[1])
        return document

    @staticmethod
    def built_in(name: str) -> dict[str, Any]:
        path = ROOT / "service" / "cliffwatch" / "workloads" / f"{name}.yaml"
        document: dict[str, Any] = yaml.safe_load(path.read_text())
        return document

    def typed(self, command: Command) -> str:
        """The command as this reader types it."""
        text = command.text
        for pattern, instead in INSTEAD:
            if re.search(pattern, text):
                words = {"state": self.machine.state, "drive": self.drive, "target": self.target, "closed": self.closed}
                words |= {"port": self.machine.port, "sentence": self.sentence() if "{sentence}" in instead else ""}
                text = re.sub(pattern, instead.format(**words), text)
        return text

    def sentence(self) -> str:
        order = ("run", "start", "mine.yaml", "--target", f"device:{self.drive}", "--dry-run")
        return str(self.machine.data(*order)["confirmation"])

    def follow(self, command: Command) -> Done:
        """Type the command, where the page says that it belongs."""
        text = self.typed(command)
        if " import documented.tar.zst" in text:
            shutil.copy(self.machine.directory / "documented.tar.zst", self.elsewhere.directory)
            return self.elsewhere.run(*shlex.split(text)[1:])
        if "smaller.yaml --target" in text:
            self.write("smaller.yaml", self.built_in("field-report-36h") | STORAGE)
        if text.startswith("cliffwatch ") and not re.search(r"[>|&]", text):
            return self.machine.run(*shlex.split(text)[1:], **FEW)
        environment = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
        environment |= self.machine.variables | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
        done = subprocess.run(
            ["bash", "-c", text],
            cwd=self.machine.directory,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="module")
def drive(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The backing file of a loop device, which is a drive's name that does not move."""
    backing = tmp_path_factory.mktemp("drive") / "drive.img"
    with backing.open("wb") as file:
        file.truncate(64 * 1024**2)
    losetup = ["losetup", "--find", "--show", str(backing)]
    node = subprocess.run(losetup, check=True, capture_output=True, text=True).stdout.strip()
    yield backing
    subprocess.run(["losetup", "--detach", node], check=True)


@pytest.fixture(scope="module")
def volume(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A small file system of its own, so that a page's load can neither fill nor age a disk of this machine."""
    directory = tmp_path_factory.mktemp("volume")
    image, place = directory / "image", directory / "mnt"
    place.mkdir()
    with image.open("wb") as file:
        file.truncate(512 * 1024**2)
    subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
    yield place
    subprocess.run(["umount", str(place)], check=True)


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory, drive: Path, volume: Path) -> Iterator[Reader]:
    reader = Reader(Machine(tmp_path_factory.mktemp("reader"), free_port()), drive, volume)
    try:
        reader.prepare()
        yield reader
    finally:
        for machine in (reader.machine, reader.elsewhere):
            end(machine)
            assert find_daemon(machine.state) is None


def test_every_page_begins_with_a_command() -> None:
    pages = {str(page.relative_to(ROOT)): page.read_text() for page in sorted((ROOT / "docs").rglob("*.md"))}
    without = [page for page, text in pages.items() if not BEGINS.search(text.partition("\n## ")[0])]
    # The commands themselves, and pages of which each section begins with its own.
    assert without == ["docs/cli.md", "docs/install.md", "docs/triage.md"]


def reason_not_to_run(command: Command) -> str | None:
    return next((why for text, why in NOT_RUN.items() if command.text.startswith(text)), None)


PAGES = sorted({command.page for command in shown_commands() if reason_not_to_run(command) is None})


@pytest.mark.parametrize("page", PAGES)
def test_every_command_of_a_page_does_what_it_is_shown_for(reader: Reader, page: str) -> None:
    for command in shown_commands():
        if command.page != page or reason_not_to_run(command) is not None:
            continue
        done = reader.follow(command)
        what = f"{page}:{command.line}: {reader.typed(command)}\n{done.stdout}{done.stderr}"
        if refusal := REFUSED.get(command.text):
            status, why = refusal
            assert (done.returncode, why in done.stdout + done.stderr) == (status, True), what
        elif "--watch" in command.text:
            # A second of load judges nothing; that it was executed and judged is what the page promises.
            assert done.returncode in (0, 1), what
            assert done.stdout.startswith(("verdict: pass", "verdict: invalid", "verdict: degraded")), what
        else:
            assert done.returncode == 0, what


def test_every_exception_is_of_a_command_that_is_shown() -> None:
    shown = [command.text for command in shown_commands()]
    assert [text for text in NOT_RUN if not any(each.startswith(text) for each in shown)] == []
    assert [text for text in REFUSED if text not in shown] == []
    assert [pattern for pattern, _ in INSTEAD if not any(re.search(pattern, each) for each in shown)] == []


def test_every_command_within_a_sentence_has_words_and_flags_that_exist() -> None:
    for command in inline_commands():
        look_up(command)


def test_every_command_that_the_program_itself_gives_exists() -> None:
    given = list(program_commands())
    assert {path.name for path in PROGRAM_TEXTS if path.suffix == ".html"} >= {"runs.html", "login.html", "report.html"}
    pages = {command.page for command in given}
    for page in ("runs.html", "schedules.html", "drives.html", "login.html"):
        assert f"service/cliffwatch/web/templates/{page}" in pages
    for command in given:
        look_up(command)


def test_a_command_that_does_not_exist_is_found() -> None:
    for text in ("cliffwatch schedules add", "cliffwatch schedule create", "cliffwatch run start --durations 1h"):
        with pytest.raises(AssertionError, match=r"page\.html:1"):
            look_up(Command("page.html", 1, text))


def look_up(command: Command) -> None:
    """Its words and flags are those of a real command. Of a group, only a flag may follow."""
    tree = dict(commands())
    words, *rest = command.text.split()
    while rest and f"{words} {rest[0]}" in tree:
        words = f"{words} {rest.pop(0)}"
    where = f"{command.page}:{command.line}: {command.text}"
    is_group = isinstance(tree[words], TyperGroup)
    assert not (is_group and rest and not rest[0].startswith("--")), where
    given = {word.partition("=")[0] for word in rest if word.startswith("--")}
    options = [each for each in tree[words].params if isinstance(each, TyperOption)]
    assert given <= {flag for each in options for flag in (*each.opts, *each.secondary_opts)}, where


def test_every_target_of_make_that_is_shown_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    shown = {command.text.split()[1] for command in shown_commands() if re.match(r"make [a-z]", command.text)}
    assert shown <= targets
