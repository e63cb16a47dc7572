"""A state directory for aging drives, and what of them the machine has."""

import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import httpx
from testkit.checkout import PROGRAMS

from cliffwatch.base.clock import SystemClock
from cliffwatch.labs.aging.directories import DriveDirectory
from cliffwatch.labs.aging.lifecycle import AgingDrive, AttachRequest, aging_drives, attach, detach
from cliffwatch.labs.aging.users import process_ids_of
from cliffwatch.machine.mounts import read_mounts

#: As small as is still a drive, and without waiting for flash.
SMALL = {
    "capacity": "64MiB",
    "pages-per-block": 64,
    "channels": 2,
    "dies-per-channel": 2,
    "timing": "off",
}
CLOCK = SystemClock()


@dataclass(frozen=True, slots=True)
class State:
    """A state directory in which the programs have been built."""

    directory: Path

    def make(self) -> "State":
        assert (PROGRAMS / "cliffwatch-drive").exists(), "setup/binaries builds cliffwatch-drive"
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "programs").symlink_to(PROGRAMS)
        return self

    def place(self, name: str = "one") -> DriveDirectory:
        return DriveDirectory(self.directory / "drives" / name)

    def attach(self, order: AttachRequest | None = None, name: str = "one") -> AgingDrive:
        return attach(self.directory, name, CLOCK, order)

    def detach(self, name: str = "one") -> None:
        detach(self.directory, name, CLOCK)

    def drive(self, name: str = "one") -> AgingDrive:
        (found,) = [drive for drive in aging_drives(self.directory) if drive.name == name]
        return found

    def script(self, code: str) -> "subprocess.Popen[str]":
        """A process that has everything imported and the state directory as `STATE`."""
        head = (
            "import os, signal, sys\nfrom pathlib import Path\n"
            "from cliffwatch.base.clock import SystemClock\n"
            "from cliffwatch.labs.aging import lifecycle\n"
            "from cliffwatch.labs.aging.lifecycle import *\n"
            "from cliffwatch.base.processes import ProcessIdentity\n"
            f"STATE, SMALL = Path({str(self.directory)!r}), {SMALL!r}\n"
        )
        return subprocess.Popen(
            [sys.executable, "-c", head + code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def command(self, *arguments: str, before: tuple[str, ...] = ()) -> "subprocess.CompletedProcess[str]":
        """`cliffwatch` with these arguments, run by `before` if given."""
        clean = {name: value for name, value in os.environ.items() if not name.startswith("CLIFFWATCH_")}
        return subprocess.run(
            [*before, sys.executable, "-m", "cliffwatch.cli.main", *arguments],
            env=clean | {"CLIFFWATCH_STATE_DIRECTORY": str(self.directory)},
            cwd="/",
            capture_output=True,
            text=True,
            check=False,
        )

    def server(self, name: str = "one") -> int:
        """The process that serves a drive."""
        (pid,) = process_ids_of(self.place(name).directory / "alive")
        return pid

    def kill_server(self, name: str = "one") -> None:
        os.kill(self.server(name), signal.SIGKILL)
        while self.place(name).is_served():
            CLOCK.sleep(0.01)

    def remains(self) -> list[str]:
        """What the machine still has of drives of this state directory."""
        loops = [
            entry.parent.parent.name
            for entry in Path("/sys/block").glob("loop*/loop/backing_file")
            if entry.read_text().startswith(str(self.directory))
        ]
        mounts = [str(mount.mount_point) for mount in read_mounts() if self.directory in mount.mount_point.parents]
        directories = (self.directory / "drives").glob("*")
        served = [str(pid) for entry in directories for pid in process_ids_of(entry / "alive")]
        return [*loops, *mounts, *served]

    def close(self) -> None:
        for entry in (self.directory / "drives").glob("*"):
            detach(self.directory, entry.name, CLOCK, delete=True)
        assert self.remains() == []


def metric(drive: AgingDrive, name: str) -> float:
    """A figure of the drive's own."""
    text = httpx.get(f"{drive.url}/metrics", trust_env=False).text
    (line,) = [line for line in text.splitlines() if line.startswith(f"cliffwatch_drive_{name}{{")]
    return float(line.rsplit(" ", 1)[1])
