"""The real exporter on a machine whose drives answer from files."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
from testkit.ports import free_port
from testkit.waiting import wait_until

HERE = Path(__file__).resolve().parent
DRIVES = HERE / "drives"
#: Answers from files, in place of nvme-cli.
NVME = HERE / "nvme"
PREFIX = "cliffwatch_drive_"
PATIENCE_SECONDS = 60.0
_SAMPLE = re.compile(r"(\w+)(?:\{(.*)\})? (\S+)")


@dataclass(frozen=True, slots=True)
class Machine:
    """`sys` stands for /sys, `answers` holds what each controller answers."""

    directory: Path

    @property
    def sys(self) -> Path:
        return self.directory / "sys"

    @property
    def answers(self) -> Path:
        return self.directory / "answers"

    def add(self, number: int, serial: str, answers: str | None = None, disk: str | None = None) -> Path:
        """A controller that answers like one of the drives, or not at all; gives the directory of its answers."""
        controller = self.sys / "class" / "nvme" / f"nvme{number}"
        (controller / (disk or f"nvme{number}n1")).mkdir(parents=True)
        (controller / "serial").write_text(f"{serial:<20}\n")
        directory = self.answers / f"nvme{number}"
        if answers is None:
            directory.mkdir(parents=True)
        else:
            shutil.copytree(DRIVES / answers, directory)
            (controller / "model").write_text(json.loads((directory / "id-ctrl.json").read_text())["mn"] + "\n")
        return directory

    def remove(self, number: int) -> None:
        shutil.rmtree(self.sys / "class" / "nvme" / f"nvme{number}")

    def asked(self, number: int) -> list[str]:
        """The commands that the controller was sent, in their order."""
        path = self.answers / f"nvme{number}" / "asked"
        return path.read_text().split() if path.exists() else []

    def end_sleepers(self) -> None:
        """What a hanging answer began outlives it, unless the exporter ended it."""
        for path in self.answers.glob("*/sleepers"):
            for pid in path.read_text().split():
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)


@dataclass(frozen=True, slots=True)
class Exporter:
    """A running exporter."""

    process: "subprocess.Popen[str]"
    url: str

    def text(self) -> str:
        # Proxies of the environment are for the world outside.
        return httpx.get(f"{self.url}/metrics", timeout=PATIENCE_SECONDS, trust_env=False).text

    def samples(self) -> dict[str, float]:
        return samples(self.text())

    def wait(self, condition: Callable[[Mapping[str, float]], object], what: str) -> dict[str, float]:
        """The first samples for which `condition` holds."""

        def held() -> dict[str, float] | None:
            found = self.samples()
            return found if condition(found) else None

        return wait_until(held, what)


def samples(text: str) -> dict[str, float]:
    """Values by name and labels, as they are written, of the exporter's own metrics."""
    matches = (_SAMPLE.fullmatch(line) for line in text.splitlines())
    return {
        f"{match[1]}{{{match[2] or ''}}}": float(match[3]) for match in matches if match and match[1].startswith(PREFIX)
    }


def command(machine: Machine, port: int, *flags: str) -> list[str]:
    return [
        sys.executable, "-m", "cliffwatch_drive_exporter", f"--web.listen-address=127.0.0.1:{port}",
        f"--path.sysfs={machine.sys}", f"--nvme.program={NVME}", *flags,
    ]  # fmt: skip


@contextmanager
def running(machine: Machine, *flags: str) -> Iterator[Exporter]:
    """The exporter, until the block ends; it must end with status 0 on SIGTERM."""
    port = free_port()
    process = subprocess.Popen(
        command(machine, port, *flags),
        env=os.environ | {"DRIVES": str(machine.answers)},
        stderr=subprocess.PIPE,
        text=True,
    )
    exporter = Exporter(process, f"http://127.0.0.1:{port}")
    try:

        def answers() -> bool:
            assert process.poll() is None, process.communicate()[1]
            with suppress(httpx.TransportError):
                return bool(exporter.text())
            return False

        wait_until(answers, "the exporter's answer")
        yield exporter
        process.terminate()
        assert process.wait(PATIENCE_SECONDS) == 0
    finally:
        process.kill()
        process.communicate()
        machine.end_sleepers()
