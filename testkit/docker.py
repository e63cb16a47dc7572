"""A Docker engine for the tests only, started from Debian's docker.io and ended by process id.

It runs in its own mount and process namespaces: its mounts are not seen outside, and no container outlives it. It uses
this machine's kernel, cgroups and network, and its programs too, unless another release of Debian is requested: then
engine and clients run in a root of that release. Images and build caches are kept for later tests of any checkout.
"""

import fcntl
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from testkit.checkout import CACHE, ROOT, STATE
from testkit.debian import Debian, debian
from testkit.waiting import wait_until

#: Debian's client: another program of that name may come first on PATH.
CLIENT = "/usr/bin/docker"
COMPOSE = "/usr/bin/docker-compose"
#: Packages of a Debian release in which `docker build` and Compose are plug-ins of the client.
PACKAGES = ("docker.io", "docker-cli", "docker-buildx", "docker-compose")
#: How long the engine may take to stop: it ends its containers first.
GRACE_SECONDS = 60.0
#: Where images, layers and volumes are.
DATA = CACHE / "docker"
_CGROUP = f"cliffwatch-tests-{os.getpid()}"
#: Directories that an engine and its helpers write to regardless of their options: it gets a tmpfs in place of each.
_HIDDEN = (Path("/run/docker"), Path("/run/containerd"), Path("/etc/docker"))
#: Directories of this machine that are mounted into a root of another release.
_SHARED = ("/proc", "/sys", "/dev", "/tmp")


@dataclass(frozen=True, slots=True)
class Engine:
    """A running engine; `log` is the file of its output, `within` the command prefix that starts its clients."""

    socket: Path
    log: Path
    within: tuple[str, ...] = ()

    @property
    def environment(self) -> dict[str, str]:
        """Environment for clients of this engine, without DOCKER_ and COMPOSE_ settings of the machine's user."""
        others = {name: value for name, value in os.environ.items() if not name.startswith(("DOCKER_", "COMPOSE_"))}
        return others | {
            "DOCKER_HOST": f"unix://{self.socket}",
            "DOCKER_CONFIG": str(self.socket.parent),
            # BuildKit skips build stages that the target does not need.
            "DOCKER_BUILDKIT": "1",
            # Compose starts the client to build.
            "PATH": f"{Path(CLIENT).parent}:{os.environ['PATH']}",
        }

    @property
    def compose(self) -> list[str]:
        """Command line of docker-compose for this engine."""
        return [*self.within, COMPOSE]

    def run(self, *arguments: str | Path, stdin: "IO[bytes] | None" = None) -> str:
        """Run a `docker` command; returns its stdout. Raises AssertionError with its output when it fails."""
        done = subprocess.run(
            [*self.within, CLIENT, *arguments],
            stdin=stdin or subprocess.DEVNULL,
            capture_output=True,
            env=self.environment,
            check=False,
        )
        said = done.stdout.decode(errors="replace")
        assert done.returncode == 0, f"{said[-2000:]}{done.stderr.decode(errors='replace')[-4000:]}"
        return said.strip()

    def has(self, image: str, label: str, value: str) -> bool:
        """Whether there is an image of that name whose `label` has this value."""
        form = f'{{{{index .Config.Labels "{label}"}}}}'
        asked = [*self.within, CLIENT, "image", "inspect", "--format", form, image]
        done = subprocess.run(asked, capture_output=True, text=True, env=self.environment, check=False)
        return done.returncode == 0 and done.stdout.strip() == value


@contextmanager
def engine(release: str = "") -> Iterator[Engine]:
    """Start an engine, once any other one has ended; it has the images of earlier engines of the same release, but not
    their containers or volumes. `release`: Debian release of its programs; empty for this machine's own programs."""
    DATA.mkdir(parents=True, exist_ok=True)
    with DATA.with_suffix(".lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with _started(_root(release) if release else None) as engine:
            yield engine


def _root(release: str) -> Debian:
    """Debian root of this release in which an engine is installed; made once and kept."""
    place = CACHE / f"docker-{release}"
    machine, installed = debian(release, place), place / "installed"
    if not installed.exists() or installed.read_text(encoding="utf-8") != str(PACKAGES):
        shutil.rmtree(machine.upper, ignore_errors=True)
        install = f"apt-get install --yes --no-install-recommends {' '.join(PACKAGES)}"
        done = machine.run(f"apt-get update\n{install}")
        assert done.returncode == 0, done.stdout[-4000:]
        installed.write_text(str(PACKAGES), encoding="utf-8")
    return machine


@contextmanager
def _started(root: Debian | None) -> Iterator[Engine]:
    data = root.upper.with_name("data") if root else DATA
    data.mkdir(exist_ok=True)
    made = [] if root else [place for place in _HIDDEN if not place.exists()]
    for place in made:
        place.mkdir(parents=True)
    # A unix socket's path may be 107 bytes long at most.
    with tempfile.TemporaryDirectory(prefix="cliffwatch-docker-", dir="/tmp") as directory:
        socket, log = Path(directory) / "socket", Path(directory) / "log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                _command(socket, data, root), stdout=output, stderr=output, start_new_session=True
            )
        within = ("nsenter", f"--target={process.pid}", "--mount", "--") if root else ()
        started = Engine(socket, log, within)
        try:
            wait_until(lambda: process.poll() is not None or _answers(started), lambda: _end_of(log))
            assert process.poll() is None, _end_of(log)
            _remove_what_was_left(started)
            yield started
        finally:
            _stop(process)
            for place in made:
                place.rmdir()
            _remove_cgroups()
    assert str(data) not in Path("/proc/self/mounts").read_text(), "the engine left a mount"


def _command(socket: Path, data: Path, root: Debian | None) -> list[str]:
    options = [
        # There is nothing to route: containers have this machine's network.
        *("--iptables=false", "--ip6tables=false", "--bridge=none"),
        f"--data-root={data}",
        f"--pidfile={socket.with_name('pid')}",
        f"--cgroup-parent={_CGROUP}",
        f"--host=unix://{socket}",
    ]
    prepare = _enter(root) if root else [f"mount -t tmpfs tmpfs {place}" for place in _HIDDEN]
    # Mount propagation is shared, as with systemd: a container may ask to see later mounts, made here or outside.
    inside = "\n".join(["set -eu", *prepare, "mount --make-rshared /", 'exec docker-init -- dockerd "$@"'])
    apart = ["unshare", "--mount", "--propagation=slave", "--pid", "--fork", "--kill-child", "--mount-proc"]
    path = f"PATH={os.environ['PATH']}:/usr/sbin:/sbin"
    return ["setpriv", "--pdeathsig=KILL", "env", path, *apart, "sh", "-c", inside, "sh", *options]


def _enter(root: Debian) -> list[str]:
    """Shell lines that make this root the root directory of all processes in the shell's mount namespace."""
    shared = [*_SHARED, str(ROOT), str(CACHE), *([] if STATE.is_relative_to(ROOT) else [str(STATE)])]
    return [
        root.mount_command,
        *(f"mkdir -p {root.root}{place} && mount --rbind {place} {root.root}{place}" for place in shared),
        f"mount -t tmpfs tmpfs {root.root}/run",
        f"cd {root.root}",
        "mkdir -p outside",
        "pivot_root . outside",
        "umount --lazy /outside",
    ]


def _answers(engine: Engine) -> bool:
    asked = [*engine.within, CLIENT, "version"]
    return subprocess.run(asked, capture_output=True, env=engine.environment, check=False).returncode == 0


def _remove_what_was_left(engine: Engine) -> None:
    """Remove what killed tests left: containers, which start together with the engine, volumes, and untagged images."""
    if containers := engine.run("ps", "--all", "--quiet").split():
        engine.run("rm", "--force", "--volumes", *containers)
    if volumes := engine.run("volume", "ls", "--quiet").split():
        engine.run("volume", "rm", "--force", *volumes)
    engine.run("image", "prune", "--force")


def _stop(process: "subprocess.Popen[bytes]") -> None:
    for child in _children(process.pid):
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGTERM)
    try:
        process.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        # The first process of the engine's process namespace is killed with it, and with that all others.
        process.kill()
        process.wait()


def _children(pid: int) -> Sequence[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def _remove_cgroups() -> None:
    for directory in Path("/sys/fs/cgroup").glob(f"**/{_CGROUP}"):
        for inner in sorted(directory.glob("**/"), reverse=True):
            with suppress(OSError):
                inner.rmdir()


def _end_of(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:]
